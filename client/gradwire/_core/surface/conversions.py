"""Methods that convert a tensor, and those that make another in its dtype and on its device."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError

from ..context.late_signatures import called_as, show_as
from ..context.layouts import asked_order, contiguous_format, memory_format, preserve_format, suggested_order
from ..context.size import device as Device
from ..dispatch.class_conversion import like
from ..dispatch.dispatch import call
from ..dispatch.mapped_tensors import with_samples_of
from ..tensor.tensor import Tensor
from .creation import empty as make_empty
from .creation import full, place, tensor
from .creation import ones as make_ones
from .creation import zeros as make_zeros
from .methods import attach
from .to_arguments import to_arguments


def _to_form(
    self: Tensor, dtype: DType | Device | str | int | Tensor | None = None, *args: Any,
    device: Device | str | int | None = None, non_blocking: bool = False, copy: bool = False,
    memory_format: memory_format | None = None, other: Tensor | None = None,
) -> Tensor:  # fmt: skip
    raise NotImplementedError


@called_as(_to_form)
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """In another dtype, on another device, or like another tensor; itself where nothing changes."""
    device, dtype, copy = to_arguments("to()", args, kwargs)
    where = None if device is None else place(device)
    order = kwargs.get("memory_format")
    if order is None:
        if (dtype is None or dtype is self.dtype) and (where is None or where == self._form.device) and not copy:
            return self
        return call("to", self, dtype, where, bool(copy))
    return reordered(self, order, dtype, where, bool(copy))


def reordered(
    self: Tensor, order: memory_format, dtype: DType | None = None, device: str | None = None, copy: bool = False
) -> Tensor:
    """In a memory order, a dtype and on a device; itself where nothing changes, by what its strides suggest."""
    asked = asked_order(order, self.ndim, bool(self._levels))
    if (dtype is None or dtype is self.dtype) and (device is None or device == self._form.device) and not copy:
        if not asked or suggested_order(self._known_meta()) is order:
            return self
    return call("to", self, dtype, device, copy, **asked)


attach("to", to)

_CASTS = {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}  # fmt: skip


def _cast(name: str, dtype: DType) -> None:
    def method(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
        return to(self, dtype) if memory_format is None else reordered(self, memory_format, dtype)

    method.__name__, method.__doc__ = name, f"In dtype {dtype.name}."
    attach(name, method)


for _name, _dtype in _CASTS.items():
    _cast(_name, _dtype)


def _method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def give(function: Callable[..., Any]) -> Callable[..., Any]:
        attach(name, function)
        return function

    return give


@_method("contiguous")
def _contiguous(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Itself if it lies in row-major order, or the one that is named, else a copy that does.

    Raises:
        ArgumentError: for a memory format that is for another number of dimensions, or that keeps one.
    """
    if memory_format is None or memory_format is contiguous_format:
        return self if self.is_contiguous() else call("contiguous", self)
    asked = asked_order(memory_format, self.ndim, bool(self._levels))
    if self.is_contiguous(memory_format):
        return self
    if memory_format is preserve_format:
        raise ArgumentError("contiguous: preserve_format keeps an order, it is none")
    return call("clone", self, **asked)


@_method("cpu")
def _cpu(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """On the server's CPU."""
    return to(self, device="cpu", memory_format=memory_format)


@_method("cuda")
def _cuda(
    self: Tensor, device: Device | str | int | None = None, non_blocking: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:  # fmt: skip
    """On a GPU of the server."""
    return to(self, device="cuda" if device is None else device, memory_format=memory_format)


@_method("type_as")
def _type_as(self: Tensor, other: Tensor) -> Tensor:
    """In the dtype of another tensor."""
    return to(self, other.dtype)


def _of_tensor(made: inspect.Signature) -> inspect.Signature:
    """The signature of a method, from that of the function that makes tensors."""
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor")
    return made.replace(parameters=[this, *(p for p in made.parameters.values() if p.name != "out")])


def _new(name: str, make: Callable[..., Any]) -> None:
    def method(self: Tensor, *size: Any, **options: Any) -> Tensor:
        options.setdefault("dtype", self.dtype)
        options.setdefault("device", self.device)
        made = make(*size, **options)
        if type(self) is not Tensor:
            made = like(made, self)
        return with_samples_of(made, self) if self._levels else made

    method.__name__, method.__doc__ = name, f"Like gradwire.{name[4:]}, with this tensor's dtype and device."
    show_as(method, lambda: _of_tensor(inspect.signature(make)))
    attach(name, method)


for _name, _maker in (
    ("new_zeros", make_zeros),
    ("new_ones", make_ones),
    ("new_empty", make_empty),
    ("new_full", full),
    ("new_tensor", tensor),
):
    _new(_name, _maker)
