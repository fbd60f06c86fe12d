"""Operations on each tensor of a list, of which the steps of PyTorch's optimizers are made."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import torch
from torch.autograd.graph import increment_version

from .dispatch import found_for, kernel
from .found import FOUND


def _rows(tensors: Any, arguments: Any) -> Any:
    """The arguments of each tensor: lists give one each, all else is the same for all.

    Raises:
        RuntimeError: for no tensors, and for lists of different lengths.
    """
    if not tensors:
        raise RuntimeError("there is no tensor in the list")
    columns: list[Any] = []
    for each in arguments:
        if isinstance(each, (list, tuple)):
            if len(each) != len(tensors):
                raise RuntimeError(f"the lists have different lengths: {len(tensors)} and {len(each)}")
            columns.append(each)
        else:
            columns.append(repeat(each))
    return zip(tensors, *columns, strict=False)


def _noted(tensors: Any) -> None:
    """Count a write to each tensor, as the operation on one does in PyTorch's dispatcher."""
    increment_version([tensor for tensor in tensors if not tensor.is_inference()])


def _each(names: list[str], single: Any) -> None:
    """Register an operation on each tensor of a list as another on one tensor."""
    writes = single._schema.is_mutable

    @kernel(*names)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        one = FOUND.get(id(single)) or found_for(single)
        made = [one(*row, **options) for row in _rows(self, arguments)]
        return _noted(self) if writes else made


def _each_scaled(names: list[str], single: Any) -> None:
    """The same, where the last argument is a factor, which the operation on one tensor takes by name."""
    writes = single._schema.is_mutable

    @kernel(*names)
    def call(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
        one = FOUND.get(id(single)) or found_for(single)
        rows = _rows(self, (tensor1, tensor2, value))
        made = [one(tensor, first, second, value=factor) for tensor, first, second, factor in rows]
        return _noted(self) if writes else made


def _register(end: str) -> None:
    """Register the operations that write (``_``), or those that make new tensors."""
    aten = torch.ops.aten
    for base in ("add", "sub", "mul", "div"):
        overloads = ("Scalar", "List", "ScalarList", *(() if base == "sub" else ("Tensor",)))
        name = f"_foreach_{base}{end}"
        _each([f"{name}.{overload}" for overload in overloads], getattr(aten, base + end).Tensor)
    name = f"_foreach_lerp{end}"
    _each([f"{name}.Scalar", f"{name}.ScalarList"], getattr(aten, f"lerp{end}").Scalar)
    _each([f"{name}.List"], getattr(aten, f"lerp{end}").Tensor)
    for base in ("addcmul", "addcdiv"):
        name = f"_foreach_{base}{end}"
        _each_scaled([f"{name}.Scalar", f"{name}.ScalarList"], getattr(aten, base + end).default)
    for base in ("sqrt", "neg", "reciprocal"):
        _each([f"_foreach_{base}{end}.default"], getattr(aten, base + end).default)


_register("_")
_register("")
_each(["_foreach_zero_.default"], torch.ops.aten.zero_.default)
_each(["_foreach_copy_.default"], torch.ops.aten.copy_.default)
