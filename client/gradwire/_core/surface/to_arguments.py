"""The arguments of ``to``, of tensors and of modules, in the three orders that PyTorch takes."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from gradwire_protocol.dtypes import OF_PYTHON_TYPES, DType
from gradwire_protocol.errors import ArgumentTypeError

from ..context.size import device as Device
from ..tensor.tensor import Tensor

_FLAGS: Final = ("non_blocking", "copy")
_ORDERS: Final = {"tensor": ("tensor", *_FLAGS), "dtype": ("dtype", *_FLAGS), "device": ("device", "dtype", *_FLAGS)}
"""What the arguments mean, by what the first one is."""


Moved = TypeVar("Moved")


def to_form(
    self: Moved, device: Device | DType | Tensor | str | int | None = None, dtype: DType | bool | None = None,
    non_blocking: bool = False, copy: bool = False, *, tensor: Tensor | None = None, memory_format: Any = None,
) -> Moved:  # fmt: skip
    """How ``to`` is called; never called itself."""
    raise NotImplementedError


def _is_dtype(value: Any) -> bool:
    return isinstance(value, DType) or (type(value) is type and value in OF_PYTHON_TYPES)


def _is_device(value: Any) -> bool:
    return isinstance(value, (str, Device)) or (isinstance(value, int) and not isinstance(value, bool))


def to_arguments(caller: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, DType | None, bool | None]:
    """Device, dtype and ``copy`` of a call of ``to``, each ``None`` where it is not given.

    Raises:
        ArgumentTypeError: for an argument of another type, at another place, or given twice.
    """
    first = args[0] if args else kwargs.get("tensor")
    order = _ORDERS["tensor" if isinstance(first, Tensor) else "dtype" if _is_dtype(first) else "device"]
    if len(args) > len(order):
        raise ArgumentTypeError(f"{caller} takes {', '.join(order)}, not {len(args)} arguments")
    given = dict(zip(order, args, strict=False))
    for name, value in kwargs.items():
        if name in given or (name not in order and name != "memory_format"):
            raise ArgumentTypeError(f"{caller} got an unexpected argument {name!r}: it takes {', '.join(order)}")
        given[name] = value
    target, dtype = given.get("device"), given.get("dtype")
    for name in _FLAGS:
        if not isinstance(given.get(name, False), bool):
            raise ArgumentTypeError(f"{caller}: {name} is True or False, not {given[name]!r:.60}")
    if dtype is not None and not _is_dtype(dtype):
        raise ArgumentTypeError(f"{caller} takes a dtype there, not {dtype!r:.60}")
    if target is not None and not _is_device(target):
        raise ArgumentTypeError(f"{caller} takes a device, a dtype or a tensor, not {target!r:.60}")
    if "tensor" in given:
        target, dtype = given["tensor"].device, given["tensor"].dtype
    return target, dtype if dtype is None or isinstance(dtype, DType) else OF_PYTHON_TYPES[dtype], given.get("copy")
