"""Views: PyTorch keeps their shapes and strides, so nothing is recorded until something is computed from one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch._prims_common import compute_required_storage_length

from .dispatch import kernel
from .dtypes import OURS
from .memory import memory_of, same_memory, view_of


@kernel("as_strided", "_reshape_alias")
def as_strided(self: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> torch.Tensor:
    """A view by shape, strides and offset."""
    offset = int(self.storage_offset()) if storage_offset is None else storage_offset
    return view_of(self, size, stride, offset)


@kernel("view", "_unsafe_view")
def view(self: torch.Tensor, size: Any) -> torch.Tensor:
    """A view in another shape."""
    return view_of(self, *_viewed(self.size(), self.stride(), tuple(size)), self.storage_offset())


@lru_cache(4096)
def _viewed(size: Any, stride: Any, wanted: Any) -> tuple[Any, Any]:
    """The size and strides of a view in another shape."""
    meta = torch.empty_strided(size, stride, device="meta").view(wanted)
    return meta.size(), meta.stride()


@kernel("unfold")
def unfold(self: torch.Tensor, dimension: int, size: int, step: int) -> torch.Tensor:
    """Overlapping parts of a dimension."""
    meta = torch.empty_strided(self.size(), self.stride(), device="meta").unfold(dimension, size, step)
    return view_of(self, meta.size(), meta.stride(), int(self.storage_offset()))


@kernel("view.dtype")
def view_dtype(self: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same bytes as numbers of another dtype."""
    meta = torch.empty_strided(self.size(), self.stride(), dtype=self.dtype, device="meta").view(dtype)
    offset = int(self.storage_offset()) * self.dtype.itemsize // dtype.itemsize
    return same_memory(self, dtype, meta.size(), meta.stride(), offset)


@kernel("view_as_real")
def view_as_real(self: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs."""
    meta = torch.view_as_real(torch.empty_strided(self.size(), self.stride(), dtype=self.dtype, device="meta"))
    return same_memory(self, meta.dtype, meta.size(), meta.stride(), 2 * int(self.storage_offset()))


@kernel("view_as_complex")
def view_as_complex(self: torch.Tensor) -> torch.Tensor:
    """Pairs as complex numbers."""
    meta = torch.view_as_complex(torch.empty_strided(self.size(), self.stride(), dtype=self.dtype, device="meta"))
    return same_memory(self, meta.dtype, meta.size(), meta.stride(), int(self.storage_offset()) // 2)


@kernel("set_.source_Tensor")
def set_to_tensor(self: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Let a tensor stand for the memory of another."""
    self.data = view_of(source, source.size(), source.stride(), int(source.storage_offset()))
    return self


@kernel("resize_")
def resize_(self: torch.Tensor, size: Any, *, memory_format: Any = None) -> torch.Tensor:
    """Another shape in the same memory, where that is large enough; else in a larger one, with what was there."""
    wanted = torch.empty(size, device="meta", memory_format=memory_format or torch.contiguous_format)
    needed = compute_required_storage_length(wanted.size(), wanted.stride(), int(self.storage_offset()))
    there = memory_of(self).root.nbytes // self.dtype.itemsize
    if needed <= there:
        self.data = view_of(self, wanted.size(), wanted.stride(), int(self.storage_offset()))
        return self
    larger = torch.zeros(needed, dtype=self.dtype, device=self.device)
    if there and memory_of(self).root.dtype is OURS[self.dtype]:
        larger[:there].copy_(view_of(self, (there,), (1,), 0))
    self.data = view_of(larger, wanted.size(), wanted.stride(), int(self.storage_offset()))
    return self


@kernel("is_set_to")
def is_set_to(self: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Whether two tensors have the same memory, offset, shape and strides."""
    return self.data_ptr() == tensor.data_ptr() and self.size() == tensor.size() and self.stride() == tensor.stride()


__all__ = ["as_strided", "view"]
