"""``torch._utils``: small functions that libraries import from PyTorch's internals."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from ._C._nn import flatten_dense_tensors as _flatten_dense_tensors
from ._C._nn import unflatten_dense_tensors as _unflatten_dense_tensors
from ._core.context.argument_types import Device
from ._core.context.size import device as DeviceType
from ._core.pickles.rebuilding import (  # noqa: F401
    _rebuild_from_type_v2,
    _rebuild_generator,
    _rebuild_meta_tensor_no_storage,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
)
from ._core.surface import stand_ins
from ._core.surface.creation import from_numpy
from ._core.tensor.tensor import Tensor

__all__ = ["ExceptionWrapper", "_element_size", "_flatten_dense_tensors", "_get_device_index",
           "_unflatten_dense_tensors"]  # fmt: skip


def _element_size(dtype: DType) -> int:
    """The bytes of an element.

    Raises:
        RuntimeError: for what is no dtype.
    """
    if not isinstance(dtype, DType):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Tensors, whose order is right within each type, in the order of others of the same types."""
    by_type: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_type.setdefault(tensor.type(), []).append(tensor)
    queues = {kind: iter(found) for kind, found in by_type.items()}
    return tuple(next(queues[tensor.type()]) for tensor in ordered_tensors)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one type, in order, each of at most ``size_limit`` bytes unless a tensor alone is larger."""
    groups: dict[Any, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        group, total = groups.get(kind, ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        group.append(tensor)
        groups[kind] = (group, total + size)
    yield from (group for group, _ in groups.values() if group)


class KeyErrorMessage(str):
    """A message that a ``KeyError`` shows as it is, with its line ends."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception of another thread, and its traceback as text.

    Attributes:
        exc_type: the exception's class.
        exc_msg: the traceback.
        where: where it was raised, as in "in DataLoader worker process 0".
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the same class, with the traceback in its message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None  # a class with other arguments
        raise error


def cpu_count() -> int | None:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _get_available_device_type() -> str | None:
    """``"cuda"`` where the server has a GPU, else None."""
    from . import cuda

    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> ModuleType:
    """The module of a kind of device, such as ``torch.cuda``.

    Raises:
        RuntimeError: when there is none.
    """
    found = getattr(sys.modules["gradwire"], device_type, None)
    if not isinstance(found, ModuleType):
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module in 'torch'.")
    return found


def _get_current_device_index() -> int:
    """The number of the GPU that ``cuda`` means; -1 where the server has none."""
    from . import cuda

    return cuda.current_device() if cuda.is_available() else -1


get_current_device_index = _get_current_device_index


def _get_all_device_indices() -> list[int]:
    """The numbers of the server's GPUs."""
    from . import cuda

    return list(range(cuda.device_count()))


def _get_device_index(device: Device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device.

    Args:
        device: a device, its name or its number.
        optional: whether a device without a number is the current one.
        allow_cpu: whether the CPU is -1, and no error.

    Raises:
        ArgumentValueError: for the CPU, or a device without a number, where that is not allowed.
    """
    found = DeviceType(device) if isinstance(device, str) else device
    if isinstance(found, int):
        return found
    if isinstance(found, DeviceType):
        if found.type == "cpu":
            if not allow_cpu:
                raise ArgumentValueError(f"Expected a non cpu device, but got: {found}")
            return -1
        if found.index is not None:
            return found.index
    if not optional:
        raise ArgumentValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )  # fmt: skip
    return _get_current_device_index()


def _handle_complex(tensor: Tensor) -> Tensor:
    """A complex tensor as a view of pairs; others as they are."""
    from .nn.parameter import UninitializedParameter

    if isinstance(tensor, UninitializedParameter) or not tensor.is_complex():
        return tensor
    return sys.modules["gradwire"].view_as_real(tensor)


def _rebuild_device_tensor_from_numpy(data: Any, dtype: DType, device: Device, requires_grad: bool) -> Tensor:
    """A tensor on a device, from an array."""
    made = from_numpy(data).to(device=device, dtype=dtype)
    made.requires_grad = requires_grad
    return made


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Set the attributes of an object: a dictionary, or a pair of one and one of slots."""
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(obj, name, value)
    return obj


def _import_dotted_name(name: str) -> Any:
    """What ``package.module.name`` means, once the package is imported."""
    first, *rest = name.split(".")
    found: Any = __import__(first)
    for part in rest:
        found = getattr(found, part)
    return found


def try_import(module_name: str) -> ModuleType | None:
    """A module, or None where there is none."""
    try:
        return import_module(module_name)
    except ModuleNotFoundError:
        return None


class _ClassPropertyDescriptor:
    """A property of a class itself."""

    def __init__(self, fget: Any) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def classproperty(func: Any) -> _ClassPropertyDescriptor:
    """A decorator: a property of a class itself."""
    return _ClassPropertyDescriptor(func if isinstance(func, (classmethod, staticmethod)) else classmethod(func))


def _dummy_type(name: str) -> type:
    """A class that stands for one that this installation lacks; making an instance raises."""

    def refuse(cls: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"Tried to instantiate dummy base class {name}")

    return type(name, (object,), {"__init__": refuse, "__new__": refuse})


def render_call(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A call as text."""
    parts = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in kwargs.items()]
    return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', fn)}({', '.join(parts)})".lstrip(".")


def _type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """``self.type(dtype)``."""
    if kwargs:
        raise ArgumentTypeError(f"type() got unexpected arguments {sorted(kwargs)}")
    return self.type(dtype, non_blocking)


stand_ins.fill(
    __name__,
    ("_flatten_sparse_tensors", "_rebuild_nested_tensor", "_rebuild_qtensor", "_rebuild_sparse_tensor",
     "_rebuild_wrapper_subclass", "_unflatten_sparse_tensors"),
    "there are no sparse, nested and quantized tensors",
)  # fmt: skip
