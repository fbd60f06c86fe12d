"""Parameters of distributions: numbers made tensors, shapes matched, probabilities and logits exchanged."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeAlias, TypeVar, overload

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentValueError
from gradwire_protocol.shapes import broadcast

from .._core.context.argument_types import Device, Shape
from .._core.context.size import Size
from .._core.tensor.tensor import Tensor
from .library import gw

Values: TypeAlias = Tensor | float
"""A parameter, as a program says it."""
Kept = TypeVar("Kept")

euler_constant: Final = 0.57721566490153286060


def number_of(value: Any) -> bool | int | float | None:
    """The number that a parameter was made of, if it was: what can be checked without asking the server."""
    if isinstance(value, (bool, int, float)):
        return value
    found: bool | int | float | None = getattr(value, "_made_of", None)
    return found


def filled(number: Any, shape: Shape, dtype: DType, device: Device) -> Tensor:
    """A tensor that is one number everywhere, and remembers it."""
    number = number.item() if isinstance(number, np.number) else number
    made = gw.full(tuple(shape), number, dtype=dtype, device=device)
    made._made_of = number
    return made


def broadcast_all(*values: Values) -> tuple[Tensor, ...]:
    """Tensors of one shape. Numbers take the dtype of floating point tensors, and the device of tensors.

    Where there is no such tensor they have the default dtype (integers the dtype of other tensors).

    Raises:
        ValueError: for what is neither a number nor a tensor.
    """
    tensors = [v for v in values if isinstance(v, Tensor)]
    for value in values:
        if not isinstance(value, (bool, int, float, Tensor, np.number)):
            raise ArgumentValueError(f"parameters are numbers and tensors, not {value!r:.60}")
    shape: tuple[int, ...] = ()
    for tensor in tensors:
        shape = broadcast(shape, tuple(tensor.shape))
    dtype = gw.get_default_dtype()
    if tensors:
        floating = [t.dtype for t in tensors if t.is_floating_point()]
        whole = not any(isinstance(v, (float, np.floating)) for v in values)
        dtype = floating[0] if floating else tensors[0].dtype if whole else dtype
    device = tensors[0].device if tensors else None
    return tuple(_stretched(v, shape) if isinstance(v, Tensor) else filled(v, shape, dtype, device) for v in values)


def _stretched(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return tensor if tuple(tensor.shape) == shape else tensor.expand(shape)


def precision(dtype: DType) -> tuple[float, float]:
    """(the distance of 1 to the next number, the smallest normal number) of a floating point dtype."""
    if dtype is dtypes.bfloat16:
        return 2.0**-7, 2.0**-126
    found = np.finfo(dtype.name)
    return float(found.eps), float(found.tiny)


def largest(dtype: DType) -> float:
    """The largest number of a floating point dtype."""
    return (2 - 2.0**-7) * 2.0**127 if dtype is dtypes.bfloat16 else float(np.finfo(dtype.name).max)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved off 0 and 1, as far as the dtype tells them apart."""
    eps = precision(probs.dtype)[0]
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of probabilities of two outcomes, logarithms of those of several (along the last dimension)."""
    inner = clamp_probs(probs)
    return inner.log() - (-inner).log1p() if is_binary else inner.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds, or of unnormalised logarithms along the last dimension."""
    return gw.sigmoid(logits) if is_binary else gw.softmax(logits, -1)


def log1p_exp(x: Tensor) -> Tensor:
    """``log(1 + exp(x))``, accurate in float64, too."""
    return gw.nn.functional.softplus(x, threshold=40.0)


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """The sum over the last ``dims`` dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


if TYPE_CHECKING:

    class moment:
        """A mean, mode, variance or the like, by a formula."""

        def __init__(self, formula: Callable[[Any], Any]) -> None: ...
        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> Tensor: ...
        def __get__(self, instance: object, owner: type | None = None) -> Tensor | Self: ...

else:
    moment = property


class lazy_property(Generic[Kept]):
    """A property computed at first use and kept, with gradients whatever the mode is then."""

    def __init__(self, wrapped: Callable[[Any], Kept]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Kept: ...

    def __get__(self, instance: object, owner: type | None = None) -> Kept | Self:
        if instance is None:
            return self
        with gw.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of matrices, row by row, as vectors; up to the diagonal ``diag`` of them."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ArgumentValueError(f"a matrix of {n} rows has no diagonal {diag}: from {-n} to {n - 1}")
    return mat.reshape(*mat.shape[:-2], n * n).index_select(-1, _triangle(n, diag, mat.device))


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of :func:`tril_matrix_to_vec`: matrices with zeros above."""
    count, size = vec.shape[-1], max(1, -diag)
    while _below(size, diag) < count:
        size += 1
    if _below(size, diag) != count:
        raise ArgumentValueError(f"{count} elements fill no lower triangle up to the diagonal {diag}")
    zeros = gw.zeros((*vec.shape[:-1], size * size), dtype=vec.dtype, device=vec.device)
    return zeros.index_add(-1, _triangle(size, diag, vec.device), vec).reshape(*vec.shape[:-1], size, size)


def _triangle(size: int, diag: int, device: Device) -> Tensor:
    """Where the elements of a lower triangle are in a flattened square matrix, row by row."""
    rows, columns = np.tril_indices(size, diag)
    return gw.tensor((rows * size + columns).tolist(), dtype=gw.int64, device=device)


def _below(size: int, diag: int) -> int:
    """How many elements a square matrix has up to a diagonal."""
    left = max(size - diag - 1, 0)  # columns above that diagonal in the first row
    return size * size - left * (left + 1) // 2 if diag >= 0 else (size + diag) * (size + diag + 1) // 2


def as_size(shape: Shape) -> Size:
    """A shape as a ``Size``."""
    return Size(tuple(shape))


def noise(shape: Shape, like: Tensor) -> Tensor:
    """Standard normal numbers, in dtype and device of a parameter."""
    return gw.randn(tuple(shape), dtype=like.dtype, device=like.device)


def uniform(shape: Shape, like: Tensor) -> Tensor:
    """Numbers uniform in [0, 1), in dtype and device of a parameter."""
    return gw.rand(tuple(shape), dtype=like.dtype, device=like.device)
