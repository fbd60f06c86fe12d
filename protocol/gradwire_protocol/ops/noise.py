"""Activations that draw: leaky rectifiers with random slopes."""

from __future__ import annotations

from ..accepts import require
from ..dtypes import FLOATING
from ..errors import ArgumentError
from ..meta import Inference
from ..shapes import elementwise
from ..table import Tensor, gradients, op


@op(results=2, grad_fn="RreluWithNoiseBackward0", differentiable=("self",), random=True, exposed=())
@gradients("grad * result1")
def rrelu(self: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False) -> Inference:
    """``self`` where positive, else ``slope * self`` (Xu et al., 2015); also the slopes, with 1 where positive.

    In ``training`` each slope is uniform in [lower, upper), otherwise all are the mean of the two.
    """
    require("rrelu", self.dtype, (FLOATING,))
    if lower > upper:
        raise ArgumentError(f"rrelu: lower is {lower}, which is above upper, {upper}")
    out = elementwise(self)
    return Inference((out.outs[0], out.outs[0]), out.compute)
