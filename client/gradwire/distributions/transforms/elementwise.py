"""Transforms of single numbers."""

from __future__ import annotations

from math import log
from typing import Any

from gradwire_protocol.shapes import broadcast

from ..._core.context.argument_types import Shape
from ..._core.tensor.tensor import Tensor
from .. import constraints
from ..library import gw
from ..parameters import Values, as_size, lazy_property, log1p_exp, precision, sum_rightmost
from .transform import ParameterFree, Transform


class ExpTransform(ParameterFree):
    """``y = exp(x)``."""

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``y = x ** exponent``, of positive numbers."""

    domain, codomain = constraints.positive, constraints.positive
    bijective = True

    def __init__(self, exponent: Values, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent: Tensor = exponent if isinstance(exponent, Tensor) else gw.tensor(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Tensor:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Shape) -> Shape:
        return as_size(broadcast(tuple(shape), tuple(self.exponent.shape)))

    inverse_shape = forward_shape


class SigmoidTransform(ParameterFree):
    """``y = 1 / (1 + exp(-x))``; what rounds to 0 or 1 is kept a little away from it."""

    domain, codomain = constraints.real, constraints.unit_interval
    bijective, sign = True, 1

    def _call(self, x: Tensor) -> Tensor:
        eps, tiny = precision(x.dtype)
        return gw.sigmoid(x).clamp(tiny, 1 - eps)

    def _inverse(self, y: Tensor) -> Tensor:
        eps, tiny = precision(y.dtype)
        inner = y.clamp(tiny, 1 - eps)
        return inner.log() - (-inner).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -log1p_exp(-x) - log1p_exp(x)


class SoftplusTransform(ParameterFree):
    """``y = log(1 + exp(x))``; it is x where x is above 20."""

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, 1

    def _call(self, x: Tensor) -> Tensor:
        return gw.nn.functional.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -gw.nn.functional.softplus(-x)


class TanhTransform(ParameterFree):
    """``y = tanh(x)``. It has no inverse at 1 and -1: ``cache_size=1`` spares the need for one."""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    bijective, sign = True, 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return gw.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # 1 - tanh(x)**2 as 4 exp(-2x) / (1 + exp(-2x))**2, which does not cancel.
        return 2 * (log(2) - x - log1p_exp(-2 * x))


class AbsTransform(ParameterFree):
    """``y = |x|``; its inverse is the positive one."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """``y = loc + scale * x``.

    Args:
        loc, scale: numbers or tensors.
        event_dim: of how many dimensions an event consists.
    """

    loc: Tensor | float
    scale: Tensor | float

    bijective = True

    def __init__(self, loc: Values, scale: Values, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    def _whole(self) -> Any:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return self._whole()

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:
        return self._whole()

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _alike(self.loc, other.loc) and _alike(self.scale, other.scale)

    @property
    def sign(self) -> Tensor | int:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return 1 if self.scale > 0 else -1 if self.scale < 0 else 0

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log()
        else:
            result = gw.full_like(x, log(abs(self.scale)) if self.scale else -float("inf"))
        shape = tuple(x.shape)
        if self._event_dim:
            result = sum_rightmost(result.expand(broadcast(tuple(result.shape), shape)), self._event_dim)
            shape = shape[: -self._event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Shape) -> Shape:
        shape = tuple(shape)
        for part in (self.loc, self.scale):
            shape = broadcast(shape, tuple(getattr(part, "shape", ())))
        return as_size(shape)

    inverse_shape = forward_shape


def _alike(a: Any, b: Any) -> bool:
    same = a == b
    return bool(same.all()) if isinstance(same, Tensor) else bool(same)


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution of numbers: it makes samples uniform."""

    bijective, sign = True, 1
    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution: Any = distribution

    @property
    def domain(self) -> constraints.Constraint:
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
