"""Storages of the device: made anew, filled, and taken by ``set_``, as saving and loading do."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.storage import UntypedStorage, _StorageBase

import gradwire as gw

from . import devices
from .device_type import NAME
from .dispatch import kernel
from .memory import on_storage, theirs


def _of_bytes(nbytes: int, index: int) -> UntypedStorage:
    made = theirs(gw.zeros(nbytes, dtype=gw.uint8, device=devices.names()[index]))
    return made.untyped_storage()


@kernel("set_.source_Storage")
def set_storage(self: torch.Tensor, source: UntypedStorage) -> torch.Tensor:
    """Let a tensor stand for all of a storage."""
    length = source.nbytes() // self.dtype.itemsize
    self.data = on_storage(source, self.device.index, self.dtype, (length,), (1,), 0)
    return self


@kernel("set_.source_Storage_storage_offset")
def set_part_of_storage(
    self: torch.Tensor, source: UntypedStorage, storage_offset: int, size: Any, stride: Any = ()
) -> torch.Tensor:
    """Let a tensor stand for a part of a storage."""
    strides = stride or torch.empty(size, device="meta").stride()
    self.data = on_storage(source, self.device.index, self.dtype, size, strides, storage_offset)
    return self


_plain_new: Final[Any] = UntypedStorage.__new__


def _new(cls: type[UntypedStorage], *args: Any, device: Any = None, **kwargs: Any) -> UntypedStorage:
    """PyTorch has no allocator for the device, and would end the process."""
    if device is not None and torch.device(device).type == NAME:
        (size,) = (int(one) for one in args) if args else (int(kwargs.pop("size", 0)),)
        return _of_bytes(size, devices.index_of(device))
    return _plain_new(cls, *args, **kwargs) if device is None else _plain_new(cls, *args, device=device, **kwargs)


def _to_device(self: Any, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
    """The storage on the device: itself if it is there, or a copy."""
    index = devices.index_of(device)
    if self.device.type == NAME and self.device.index == index:
        return self
    source = self if isinstance(self, UntypedStorage) else self.untyped()
    there = torch.empty(0, dtype=torch.uint8, device=source.device).set_(source)
    return there.to(torch.device(NAME, index)).untyped_storage()


_plain_write: Final[Any] = UntypedStorage._write_file


def _write_file(self: UntypedStorage, *args: Any, **kwargs: Any) -> Any:
    """PyTorch would read from the address."""
    return _plain_write(self.cpu() if self.device.type == NAME else self, *args, **kwargs)


_plain_fill: Final[Any] = UntypedStorage._set_from_file


def _set_from_file(self: UntypedStorage, *args: Any, **kwargs: Any) -> Any:
    """PyTorch would write to the address."""
    if self.device.type != NAME:
        return _plain_fill(self, *args, **kwargs)
    read = UntypedStorage(self.nbytes())
    _plain_fill(read, *args, **kwargs)
    source = torch.empty(0, dtype=torch.uint8).set_(read)
    on_storage(self, self.device.index, torch.uint8, (self.nbytes(),), (1,), 0).copy_(source)
    return self


def install() -> None:
    """Let PyTorch make, copy and write storages of the device."""
    storage: Any = UntypedStorage
    storage._set_from_file, storage._write_file = _set_from_file, _write_file
    storage.__new__ = staticmethod(_new)
    setattr(_StorageBase, NAME, _to_device)
