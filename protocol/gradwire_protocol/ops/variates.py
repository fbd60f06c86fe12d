"""Random numbers whose distribution follows parameters in tensors: gamma, Dirichlet, Poisson, binomial.

Like all random ops they draw from the session's generator. Where rejection is part of the method, how many numbers
an op takes from it does not depend on what is rejected.
"""

from __future__ import annotations

from typing import Final

from ..accepts import require
from ..costs import each
from ..dtypes import FLOATING
from ..errors import DTypeError, ShapeError
from ..meta import Inference, Meta, new
from ..shapes import common_device, elementwise
from ..table import Tensor, gradients, op

ONCE: Final = "how a sample moves with its parameters can be differentiated once, not twice"


@op(random=True, grad_fn="StandardGammaBackward0", exposed=(), elementwise=True, cost=each(60))
@gradients("grad * standard_gamma_grad(self, result)")
def standard_gamma(self: Tensor) -> Inference:
    """A number of the gamma distribution with rate 1 for each concentration in ``self``, which are positive.

    The gradient is that of the sample at a fixed quantile: how it moves when the concentration does (implicit
    reparametrisation, Figurnov, Mohamed and Mnih 2018).
    """
    require("standard_gamma", self.dtype, (FLOATING,))
    return elementwise(self)


@op(random=True, grad_fn="DirichletBackward0", exposed=(), cost=each(60))
@gradients("dirichlet_grad(result, self, expand(sum_dim(self))) * (grad - sum_dim(result * grad))")
def sample_dirichlet(self: Tensor) -> Inference:
    """Points of a simplex from the Dirichlet distributions whose concentrations are the last dimension of ``self``.

    The gradient moves one component along the quantiles of its marginal Beta distribution and lets the others
    share the rest in unchanged proportions (Jankowiak and Obermeyer 2018).
    """
    require("sample_dirichlet", self.dtype, (FLOATING,))
    if not self.ndim:
        raise ShapeError("sample_dirichlet takes concentrations along a last dimension, not a number alone")
    return elementwise(self)


@op(random=True, grad_fn="PoissonBackward0", exposed=("function",), elementwise=True, cost=each(60))
@gradients("c")
def poisson(self: Tensor) -> Inference:
    """A number of the Poisson distribution for each rate in ``self``, which are not negative; in its dtype.

    The gradient is zero.
    """
    require("poisson", self.dtype, (FLOATING,))
    return elementwise(self)


@op(
    random=True,
    grad_fn="BinomialBackward0",
    differentiable=("prob",),
    exposed=("function",),
    elementwise=True,
    cost=each(60),
)
@gradients("c")
def binomial(count: Tensor, prob: Tensor) -> Inference:
    """How many of ``count`` independent trials succeed, each with probability ``prob``; the operands broadcast.

    Both are floating point tensors of one dtype. The gradient for the probability is zero.
    """
    if count.dtype is not prob.dtype or count.dtype.category != FLOATING:
        raise DTypeError(
            f"binomial takes counts and probabilities of one floating point dtype, not {count.dtype.name} and "
            f"{prob.dtype.name}"
        )
    return elementwise(count, prob)


@op(random=True, exposed=(), elementwise=True, cost=each(60))
def sample_von_mises(self: Tensor) -> Inference:
    """An angle from -pi to pi of the von Mises distribution around 0 for each concentration in ``self``, which are
    positive. It carries no gradient."""
    require("sample_von_mises", self.dtype, (FLOATING,))
    return elementwise(self)


# Derivatives, which clients offer nowhere by name


@op(grad_fn="StandardGammaGradBackward0", exposed=(), underivable=ONCE, cost=each(60))
def standard_gamma_grad(self: Tensor, sample: Tensor) -> Inference:
    """How a gamma variate moves with its concentration ``self`` at a fixed quantile."""
    _need_alike("standard_gamma_grad", self, sample)
    return elementwise(self, sample)


def _need_alike(name: str, *operands: Meta) -> None:
    """Check that operands are real and of one shape."""
    for operand in operands:
        require(name, operand.dtype, (FLOATING,))
        if operand.shape != operands[0].shape and operand.known and operands[0].known:
            listed = ", ".join(str(list(o.shape)) for o in operands)
            raise ShapeError(f"{name}: the operands have one shape; they have {listed}")


@op(grad_fn="DirichletGradBackward0", exposed=(), underivable=ONCE, cost=each(200))
def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Inference:
    """How a component ``x`` of a Dirichlet variate moves with its concentration ``alpha``, over ``1 - x``; ``total``
    is the sum of the concentrations."""
    _need_alike("dirichlet_grad", x, alpha, total)
    return new(x.shape, x.dtype, common_device(x, alpha, total), compute=x.dtype)
