"""What a kernel is given of operands, and what is made of its result: dtypes, numbers, memory order."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import FLOATING, INTEGRAL, DType
from gradwire_protocol.errors import DeviceError, InternalError
from gradwire_protocol.meta import Meta

from .backends import native
from .casting import cast
from .tensor import Tensor


def operand(tensor: Tensor, target: Any, via: Any, backend: Any) -> Any:
    """The operand's array in the target dtype, rounded to the dtype ``via`` on the way."""
    array = tensor.array
    if type(array) is not backend.array_type:
        if tensor.meta.shape:
            raise DeviceError(f"a tensor on {tensor.device} meets one on {backend.device}")
        array = backend.from_host(array)
    return array if target is via and (target is None or array.dtype == target) else cast_operand(array, target, via)


def cast_operand(array: Any, target: Any, via: Any) -> Any:
    """The array in the dtype ``target``, rounded to the dtype ``via`` on the way."""
    if array.dtype == target:
        return array.astype(via).astype(target)
    if array.dtype.kind == "c" and target.kind != "c":
        array = array.real
    return cast(array, target) if target is via or array.dtype == via else cast(cast(array, via), target)


def widened(value: Any, narrow: Any) -> Any:
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


def lay_out(array: Any, out: Meta, backend: Any, operands: list[Tensor]) -> Any:
    """The kernel's result in the dtype and memory order that the rule announced, in memory of its own."""
    wanted = native(out.dtype)
    if type(array) is not backend.array_type:
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


def _is_own(array: Any, operands: list[Tensor]) -> bool:
    """Whether an array that views other memory is alone in it: of its full size, and not an operand's."""
    owner = _owner(array)
    return owner.nbytes == array.nbytes and all(
        owner is not _owner(t.array) for t in operands
    )  # fmt: skip


def _owner(array: Any) -> Any:
    """The array that holds the memory; what is below it (bytes of a message) is no array."""
    while isinstance(array.base, type(array)):
        array = array.base
    return array
