"""Operations on each tensor of a list, of which the steps of PyTorch's optimizers are made."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import torch
from torch.autograd.graph import increment_version

from gradwire._core.dispatch.rows import RowRecorder

from .dispatch import all_given, given, kernel, name_of
from .memory import theirs


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


def _ours(argument: Any) -> Any:
    """A list with gradwire's tensors for PyTorch's, or what is the same for all."""
    return all_given(argument) if isinstance(argument, (list, tuple)) else given(argument)


def _noted(tensors: Any) -> None:
    """Count a write to each tensor, as the operation on one does in PyTorch's dispatcher."""
    increment_version([tensor for tensor in tensors if not tensor.is_inference()])


def _each(names: list[str], single: Any) -> None:
    """Register an operation on each tensor of a list as another on one tensor."""
    record = RowRecorder(name_of(single)).record
    writes = single._schema.is_mutable

    @kernel(*names)
    def call(self: Any, *arguments: Any, **scale: Any) -> Any:  # alpha, the last argument of the operation on one
        columns = [_ours(each) for each in (*arguments, *scale.values())]
        made = record(_rows(_ours(self), columns))
        return _noted(self) if writes else [theirs(one) for one in made]


def _each_scaled(names: list[str], single: Any) -> None:
    """The same, where the last argument is a factor, which the operation on one tensor takes by name."""
    record = RowRecorder(name_of(single)).record
    writes = single._schema.is_mutable

    @kernel(*names)
    def call(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
        made = record(_rows(_ours(self), (_ours(tensor1), _ours(tensor2), value)))
        return _noted(self) if writes else [theirs(one) for one in made]


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


@kernel("_foreach_copy_.default")
def copy_(self: Any, src: Any, non_blocking: bool = False) -> None:
    """Copy to each tensor of a list, from tensors that may be on this machine."""
    for target, source in _rows(self, [src]):
        torch.ops.aten.copy_.default(target, source)
