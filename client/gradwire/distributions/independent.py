"""A distribution of which some batch dimensions count as part of the event."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .distribution import Distribution
from .parameters import sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """The last ``reinterpreted_batch_ndims`` batch dimensions of ``base_distribution`` as one event.

    Raises:
        ValueError: where it has fewer.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    _batched: ClassVar[dict[str, int]] = {}
    _carried: ClassVar[tuple[str, ...]] = ("reinterpreted_batch_ndims",)

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        have = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > have:
            raise ValueError(f"{reinterpreted_batch_ndims} batch dimensions are to be an event's, there are {have}")
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        cut = have - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_inner(self, new: Any, batch_shape: Any) -> None:
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand((*batch_shape, *inner))

    @property
    def has_rsample(self) -> Any:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> Any:
        return False if self.reinterpreted_batch_ndims > 0 else self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        found = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(found, n) if n else found

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples of the base distribution."""
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples of the base distribution, with gradients."""
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """The sum over the event of the base distribution's."""
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        """The sum over the event of the base distribution's."""
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        """The base distribution's, where no dimension was taken over.

        Raises:
            NotImplementedError: where one was: the product of supports is too large to list.
        """
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Independent does not list the product of the supports of its dimensions")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
