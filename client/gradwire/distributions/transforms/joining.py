"""Transforms of the parts of a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor.tensor import Tensor
from .. import constraints
from ..library import gw
from ..parameters import sum_rightmost
from .transform import Transform


class CatTransform(Transform):
    """A transform for each stretch of a dimension, ``lengths`` long."""

    def __init__(
        self, tseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms: list[Any] = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.lengths: list[int] = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(f"{len(self.transforms)} transforms need as many lengths, not {len(self.lengths)}")
        self.dim: int = dim

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The extent of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Tensor) -> list[Any]:
        if not -value.ndim <= self.dim < value.ndim or value.shape[self.dim] != self.length:
            raise ValueError(f"CatTransform takes {self.length} elements along dimension {self.dim}: {value.shape}")
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [value.narrow(self.dim, s, n) for s, n in zip(starts, self.lengths, strict=True)]

    def _call(self, x: Tensor) -> Tensor:
        return gw.cat([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return gw.cat([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        found: Any = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            part = t.log_abs_det_jacobian(before, after)
            found.append(sum_rightmost(part, self.event_dim - t.event_dim))
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        return gw.cat(found, dim) if dim < 0 else sum(found)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """A transform for each position of a dimension."""

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms: list[Any] = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim: int = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, value: Tensor) -> list[Any]:
        if not -value.ndim <= self.dim < value.ndim or value.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform takes {len(self.transforms)} elements along dimension {self.dim}: {value.shape}"
            )
        return [value.select(self.dim, i) for i in range(len(self.transforms))]

    def _call(self, x: Tensor) -> Tensor:
        return gw.stack([t(part) for t, part in zip(self.transforms, self._slice(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return gw.stack([t.inv(part) for t, part in zip(self.transforms, self._slice(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._slice(x), self._slice(y), strict=True)
        return gw.stack([t.log_abs_det_jacobian(before, after) for t, before, after in parts], self.dim)

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
