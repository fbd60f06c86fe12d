"""``torch._prims_common``: questions about tensors and dtypes that libraries ask PyTorch's reference operations."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from enum import Enum
from typing import Any

from gradwire_protocol.dtypes import DType, bfloat16, bool_, complex64, complex128, float16, float32, float64, int64

from ._core.session.current_session import get_default_dtype
from ._core.surface.global_settings import (
    are_deterministic_algorithms_enabled,
    is_deterministic_algorithms_warn_only_enabled,
)
from ._core.tensor.tensor import Tensor

TensorLike = Tensor
Number = (bool, int, float, complex)


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How the dtype of an elementwise operation follows from those of its operands."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(Enum):
    """How the dtype of a reduction follows from that of its operand."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


class RETURN_TYPE(Enum):
    """Whether a result is new memory, a view, or an operand."""

    NEW = (0,)
    VIEW = (1,)
    INPLACE = (2,)
    NONE = (3,)


def is_contiguous(a: Tensor, false_if_dde: bool = False) -> bool:
    """Whether the elements are in row-major order without gaps."""
    return a.is_contiguous()


def is_contiguous_or_false(a: Tensor) -> bool:
    """Whether the elements are in row-major order without gaps."""
    return a.is_contiguous()


def is_boolean_dtype(dtype: DType) -> bool:
    """Whether a dtype is that of truth values."""
    return dtype.name == "bool"


def is_integer_dtype(dtype: DType) -> bool:
    """Whether a dtype is that of integers; truth values are no integers."""
    return not dtype.is_floating_point and not dtype.is_complex and not is_boolean_dtype(dtype)


def is_float_dtype(dtype: DType) -> bool:
    """Whether a dtype is that of real numbers."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: DType) -> bool:
    """Whether a dtype is that of complex numbers."""
    return dtype.is_complex


def is_low_precision_dtype(dtype: DType) -> bool:
    """Whether a dtype of real numbers has fewer than 32 bits."""
    return dtype in (float16, bfloat16)


def corresponding_real_dtype(dtype: DType) -> DType:
    """The dtype of the parts of complex numbers."""
    return {complex64: float32, complex128: float64}[dtype]


def corresponding_complex_dtype(dtype: DType) -> DType:
    """The dtype of complex numbers with parts of a dtype."""
    return {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}[dtype]


def dtype_to_type(dtype: DType) -> type:
    """Python's type for the elements of a dtype."""
    if is_boolean_dtype(dtype):
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> DType:
    """The dtype of a tensor of Python's numbers of a type."""
    if typ is float:
        return get_default_dtype()
    if typ is complex:
        return corresponding_complex_dtype(get_default_dtype())
    return {bool: bool_, int: int64}[typ]


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front.

    Raises:
        IndexError: when there is no such dimension.
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    span = 1 if rank == 0 and wrap_scalar else rank
    if not -span <= idx < span:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {idx})")
    return idx + span if idx < 0 else idx


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Dimensions counted from the front, or one."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, one, wrap_scalar) for one in indices)


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a tensor in row-major order; or with its last two dimensions exchanged."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    if not row_major and len(strides) >= 2:
        strides[-2:] = [1, max(shape[-2], 1)]
    return tuple(strides)


def alert_not_deterministic(caller: str) -> None:
    """Nothing, or what ``use_deterministic_algorithms`` asks for: an error, since ``caller`` is not deterministic.

    Raises:
        RuntimeError: when deterministic algorithms are on, and not as warnings.
    """
    if not are_deterministic_algorithms_enabled():
        return
    text = f"{caller} does not have a deterministic implementation"
    if not is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(f"{text}, but you set 'torch.use_deterministic_algorithms(True)'")
    warnings.warn(f"{text}, but you set 'torch.use_deterministic_algorithms(True, warn_only=True)'", stacklevel=2)


def get_computation_dtype(dtype: DType) -> DType:
    """The dtype that a dtype is computed in."""
    return float32 if dtype in (float16, bfloat16) else dtype


def compute_required_storage_length(shape: Sequence[int], strides: Sequence[int], storage_offset: int) -> int:
    """How many elements a tensor of this shape needs at least."""
    if math.prod(shape) == 0:
        return 0
    return 1 + storage_offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
