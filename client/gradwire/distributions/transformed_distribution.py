"""The distribution of a transform of a random variable."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .library import gw
from .parameters import sum_rightmost
from .transforms import ComposeTransform, Transform

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """``transforms[-1](... transforms[0](x))`` for x of a base distribution.

    Args:
        base_distribution: of x.
        transforms: a transform or a list of them, the first applied first.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("transforms",)

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms is a Transform or a list of them, not {transforms!r}")
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_event_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"the transforms take events of {whole.domain.event_dim} dimensions, the base distribution has the "
                f"shape {list(base_shape)}"
            )
        forward_shape = whole.forward_shape(base_shape)
        expanded = tuple(whole.inverse_shape(forward_shape))
        if expanded != base_shape:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        moved = whole.domain.event_dim - base_event_dim
        if moved > 0:
            base_distribution = Independent(base_distribution, moved)
        self.base_dist = base_distribution
        growth = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, base_event_dim + growth)
        cut = len(forward_shape) - event_dim
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self._event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        extra = len(self._event_shape) - found.event_dim
        return constraints.independent(found, extra) if extra > 0 else found

    @property
    def has_rsample(self) -> Any:
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples without gradients."""
        with gw.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples with gradients, where the base distribution has them."""
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        """The density of the base distribution where the value came from, over the volume it was stretched to."""
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self._event_shape)
        result: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            stretched = transform.log_abs_det_jacobian(x, y)
            result = result - sum_rightmost(stretched, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return result + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Any) -> Any:
        """The other tail, where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        """The base distribution's, where the value came from; of monotonic transforms."""
        if self._validate_args:
            self._validate_sample(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        """The transformed quantile of the base distribution; of monotonic transforms."""
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
