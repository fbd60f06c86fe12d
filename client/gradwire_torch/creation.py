"""New tensors, copies between this machine and the server, and reading."""

from __future__ import annotations

from typing import Any

import torch
from torch._prims_common import is_non_overlapping_and_dense_or_false

import gradwire as gw
from gradwire._core.dispatch.dispatch import call

from .devices import place
from .dispatch import MEMORY_FORMATS, kernel
from .dtypes import OURS
from .memory import download, ours, plain, theirs, upload, view_of


@kernel("empty.memory_format")
def empty(size: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None, **_: Any) -> torch.Tensor:
    """Zeros: gradwire has no uninitialised memory."""
    wanted = OURS[dtype or torch.get_default_dtype()]
    if memory_format in (None, torch.contiguous_format, torch.preserve_format):
        return theirs(_empty(tuple(size), wanted, place(device)))
    return theirs(
        gw.empty(tuple(size), dtype=wanted, device=place(device), memory_format=MEMORY_FORMATS[memory_format])
    )


@kernel("empty_strided")
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    """Zeros with strides, in memory that reaches as far as they do."""
    held = 0 if 0 in size else 1 + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    made = theirs(_empty((held,), OURS[dtype or torch.get_default_dtype()], place(device)))
    return view_of(made, size, stride, 0)


def _empty(size: tuple[int, ...], dtype: Any, where: str) -> gw.Tensor:
    made: gw.Tensor = call("empty", size, dtype=dtype, device=where)
    return made


@kernel("clone")
def clone(self: torch.Tensor, *, memory_format: Any = None) -> torch.Tensor:
    """A copy. It is neither conjugated nor negated where PyTorch sees the tensor so."""
    made = ours(self).clone(memory_format=MEMORY_FORMATS[memory_format or torch.preserve_format])
    if self.is_conj():
        made.conj_physical_()
    return theirs(made.neg_() if self.is_neg() else made)


def _like(name: str, function: Any) -> None:
    """Register a function that makes a tensor in the form of another."""

    @kernel(name)
    def made(self: torch.Tensor, *values: Any, dtype: Any = None, device: Any = None, **options: Any) -> torch.Tensor:
        chosen: dict[str, Any] = {} if dtype is None else {"dtype": OURS[dtype]}
        if device is not None and torch.device(device) != self.device:
            chosen["device"] = place(torch.device(device))
        if options.get("memory_format") is not None:
            chosen["memory_format"] = MEMORY_FORMATS[options["memory_format"]]
        return theirs(function(ours(self), *values, **chosen))


for _name, _function in {"zeros_like": gw.zeros_like, "ones_like": gw.ones_like, "full_like": gw.full_like}.items():
    _like(_name, _function)


@kernel("_copy_from")
def copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between devices, or within one, into a tensor that exists."""
    if dst.device.type == "cpu":
        dst.copy_(download(plain(self)))
    elif self.device.type == "cpu":
        plain_write(dst, upload(self, place(dst.device)))
    else:
        plain_write(dst, plain(self))
    return dst


def plain_write(target: torch.Tensor, values: gw.Tensor) -> None:
    """Write values to a tensor that PyTorch may see conjugated or negated."""
    if target.is_conj():
        values = values.conj_physical()
    ours(target).copy_(-values if target.is_neg() else values)


@kernel("_copy_from_and_resize")
def copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    """Copy into a tensor that takes the shape."""
    if dst.shape != self.shape:
        dst.resize_(self.shape)
    return dst.copy_(self)


@kernel("copy_")
def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Write the values of another tensor."""
    return copy_from(src if src.shape == self.shape else src.expand(self.shape), self)


@kernel("_to_copy")
def to_copy(
    self: torch.Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    non_blocking: bool = False, memory_format: Any = None,
) -> torch.Tensor:  # fmt: skip
    """A copy in another dtype or on another device."""
    wanted = self.device if device is None else torch.device(device)
    order = {} if memory_format is None else {"memory_format": memory_format}
    if self.device.type == "cpu":
        return _sent(self, dtype, memory_format, place(wanted))
    if wanted.type == "cpu":
        found = download(plain(self))
        return found if dtype is None else found.to(dtype, **order)
    return theirs(_in(plain(self), dtype, memory_format, True, None if wanted == self.device else place(wanted)))


def _sent(source: torch.Tensor, dtype: Any, memory_format: Any, where: str) -> torch.Tensor:
    """A copy of a tensor of the CPU; one whose strides only permute its dimensions keeps them."""
    kept = memory_format in (None, torch.preserve_format) and not source.is_contiguous() and source.numel() > 1
    if not (kept and is_non_overlapping_and_dense_or_false(source)):
        return theirs(_in(upload(source, where), dtype, memory_format, False))
    order = sorted(range(source.ndim), key=lambda i: source.stride(i), reverse=True)
    made = theirs(_in(upload(source.permute(order), where), dtype, torch.contiguous_format, False))
    return view_of(made, source.size(), source.stride(), 0)


def _in(tensor: gw.Tensor, dtype: Any, memory_format: Any, copy: bool, where: str | None = None) -> gw.Tensor:
    wanted = tensor.dtype if dtype is None else OURS[dtype]
    order = MEMORY_FORMATS[memory_format or torch.preserve_format]
    if where is None:
        return tensor.to(wanted, copy=copy, memory_format=order)
    return tensor.to(where, wanted, copy=copy, memory_format=order)


@kernel("_local_scalar_dense")
def local_scalar_dense(self: torch.Tensor) -> Any:
    """The number of a tensor of one."""
    return ours(self).item()


@kernel("equal")
def equal(self: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same shape and values."""
    return self.shape == other.shape and bool(ours(self).eq(ours(other)).all())


@kernel("_pin_memory")
def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """The tensor itself: what is sent to the server is copied at once."""
    return self


@kernel("is_pinned")
def is_pinned(self: torch.Tensor, device: Any = None) -> bool:
    """No memory is pinned."""
    return False


__all__ = ["copy_from", "empty", "to_copy"]
