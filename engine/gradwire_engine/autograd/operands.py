"""What a kernel is given of operands, and what is made of its result: dtypes, numbers, memory order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import FLOATING, INTEGRAL, DType
from gradwire_protocol.errors import DeviceError, InternalError
from gradwire_protocol.meta import Meta

from ..runtime.arrays import Array, Native, native
from ..runtime.backends import Backend
from ..runtime.casting import FOREIGN, cast
from .tensor import Tensor

UNDONE: Final = (MemoryError, OverflowError, ValueError, ZeroDivisionError)
"""What a kernel may raise on a short way. The long way does it once more, and has words for it."""


def operand(tensor: Tensor, target: Native | None, via: Native | None, backend: Backend) -> Array:
    """The operand's array in the target dtype, rounded to the dtype ``via`` on the way."""
    array = tensor.array
    if type(array) is not backend.array_type:
        if tensor.meta.shape:
            raise DeviceError(f"operands are on different devices, {tensor.device} and {backend.device}")
        array = backend.from_host(array)
    if target is None or via is None or (target is via and array.dtype == target):
        return array
    return cast_operand(array, target, via)


def cast_operand(array: Array, target: Native, via: Native) -> Array:
    """The array in the dtype ``target``, rounded to the dtype ``via`` on the way."""
    if array.dtype == target:
        return array.astype(via).astype(target)
    if array.dtype.kind == "c" and target.kind != "c":
        array = array.real
    return cast(array, target) if target is via or array.dtype == via else cast(cast(array, via), target)


def widened(value: Any, narrow: Native | None) -> Any:
    """What a kernel that takes no half precision gets of what another one was given, which took it."""
    if type(value) is list:
        return [widened(v, narrow) for v in value]
    return value.astype(native(dtypes.float32)) if getattr(value, "dtype", None) == narrow else value


def wrapped_number(value: int, compute: DType) -> int | float:
    """A Python int as the integer dtype holds it: modulo 2**bits, as PyTorch does. One that no integer dtype holds is
    a float among floats, since array libraries would make an object of it."""
    if compute.category == INTEGRAL:
        bits = 8 * compute.itemsize
        value &= (1 << bits) - 1
        if compute.is_signed and value >> (bits - 1):
            value -= 1 << bits
    elif compute.category >= FLOATING and not -(1 << 63) <= value < 1 << 64:
        return float(value) if abs(value) < 1 << 1023 else math.copysign(math.inf, value)
    return value


def lay_out(array: Array, out: Meta, backend: Backend, operands: Iterable[Array]) -> Array:
    """The kernel's result in the dtype and memory order that the rule announced, in memory of its own: not in that of
    an operand."""
    wanted = native(out.dtype)
    if type(array) is not backend.array_type:
        if wanted.num >= FOREIGN and hasattr(array, "dtype"):  # a cast saturates, which a conversion does not
            array = cast(array, wanted)
        array = backend.asarray(array, wanted)
    elif array.dtype != wanted:
        array = cast(array, wanted)
    if array.shape != out.shape:
        if array.size != out.numel:
            raise InternalError(f"a kernel returned shape {list(array.shape)} instead of {list(out.shape)}")
        array = array.reshape(out.shape)
    if out.contiguous:
        in_order = array.flags.c_contiguous
    else:
        in_order = array.strides == tuple(s * out.dtype.itemsize for s in out.stride)
    if in_order and (array.base is None or (getattr(array.flags, "writeable", True) and _is_own(array, operands))):
        return array
    fresh = backend.view(backend.empty_bytes(out.nbytes), out.shape, out.stride, 0, out.dtype)
    fresh[...] = array
    return fresh


def _is_own(array: Array, operands: Iterable[Array]) -> bool:
    """Whether an array that views other memory is alone in it: of its full size, and not an operand's."""
    owner = _owner(array)
    return owner.nbytes == array.nbytes and all(owner is not _owner(each) for each in operands)


def _owner(array: Array) -> Array:
    """The array that holds the memory; what is below it (bytes of a message) is no array."""
    while isinstance(array.base, type(array)):
        array = array.base
    return array
