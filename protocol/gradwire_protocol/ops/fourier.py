"""Discrete Fourier transforms, the three that all others are made of: complex, of real numbers, to real numbers; and
the sum of overlapping frames, which turns transforms of frames into a signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..costs import SORTING
from ..dtypes import DType, float32, float64
from ..errors import ArgumentError, DTypeError, ShapeError
from ..meta import Inference, Meta, Shape, contiguous_stride, new
from ..shapes import canonical_dim
from ..table import Ints, Tensor, gradients, op

SCALES: Final = ("none", "root", "count")
"""What a transform divides by: nothing, the square root of the number of points, that number."""


def _transformed(name: str, self: Meta, dim: Ints, scale: str) -> list[int]:
    """The transformed dimensions, checked.

    Raises:
        ArgumentError: when there is none, one is named twice, or the scale is not known.
        ShapeError: for a dimension without elements.
    """
    if scale not in SCALES:
        raise ArgumentError(f"{name}: scale must be one of {', '.join(SCALES)}, not {scale!r}")
    dims = [canonical_dim(d, self.ndim) for d in dim]
    if not dims or not self.shape:
        raise ArgumentError(f"{name} transforms at least one dimension of a tensor, got {list(dim)} of {self!r}")
    if len(set(dims)) < len(dims):
        raise ArgumentError(f"{name}: dimensions {list(dim)} contain a duplicate")
    for d in dims:
        if self.shape[d] == 0:
            raise ShapeError(f"{name}: dimension {d} of shape {list(self.shape)} has no points to transform")
    return dims


def _result(self: Meta, shape: Shape, dtype: DType, innermost: Sequence[int]) -> Inference:
    """A result in which the transformed dimensions are the inner ones, as transform libraries leave them."""
    if not self.known:
        return new(shape, dtype, self.device, compute=self.dtype)
    outer = sorted((d for d in range(self.ndim) if d not in innermost), key=lambda d: -self.stride[d])
    order = [*outer, *innermost]
    packed = contiguous_stride(tuple(shape[d] for d in order))
    stride = tuple(packed[order.index(d)] for d in range(self.ndim))
    return new(shape, dtype, self.device, compute=self.dtype, stride=stride)


def _real(name: str, self: Meta) -> None:
    if self.dtype not in (float32, float64):
        raise DTypeError(f"{name} takes float32 and float64 tensors, not {self.dtype.name}")


def _complex(name: str, self: Meta) -> None:
    if not self.dtype.is_complex:
        raise DTypeError(f"{name} takes complex tensors, not {self.dtype.name}")


@op(grad_fn="FftC2CBackward0", exposed=(), linear=True, along=True, cost=SORTING)
@gradients("fft_c2c(grad)")
def fft_c2c(self: Tensor, dim: Ints, scale: str = "none", forward: bool = True) -> Inference:
    """The discrete Fourier transform of complex numbers along dimensions; the inverse one without ``forward``.

    ``scale`` says what is divided by: ``"none"``, ``"root"`` (of the number of points) or ``"count"``.
    """
    _complex("fft_c2c", self)
    dims = _transformed("fft_c2c", self, dim, scale)
    return _result(self, self.shape, self.dtype, sorted(dims, key=lambda d: -self.stride[d]))


@op(grad_fn="FftR2CBackward0", exposed=(), linear=True, along=True, cost=SORTING)
@gradients("real(fft_c2c(grad if not onesided else slice_backward(grad)))")
def fft_r2c(self: Tensor, dim: Ints, scale: str = "none", onesided: bool = True) -> Inference:
    """The discrete Fourier transform of real numbers along dimensions, scaled as by :func:`fft_c2c`.

    With ``onesided`` the last of the dimensions has the ``n // 2 + 1`` frequencies that are not negative, which are
    the conjugates of the others; without, it has all n.
    """
    _real("fft_r2c", self)
    dims = _transformed("fft_r2c", self, dim, scale)
    shape = list(self.shape)
    if onesided:
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    inner = [*sorted(dims[:-1], key=lambda d: -self.stride[d]), dims[-1]]
    return _result(self, tuple(shape), self.dtype.to_complex(), inner)


@op(grad_fn="FftC2RBackward0", exposed=(), linear=True, along=True, cost=SORTING)
@gradients("fft_r2c(grad) if keeps_shape(self) else fft_r2c(grad) * c")
def fft_c2r(self: Tensor, dim: Ints, scale: str = "none", last_size: int = 1) -> Inference:
    """The inverse transform along dimensions to real numbers, of which the last dimension gets ``last_size``.

    There ``last_size // 2 + 1`` frequencies are taken; the negative ones count as their conjugates.
    """
    _complex("fft_c2r", self)
    dims = _transformed("fft_c2r", self, dim, scale)
    if last_size < 1:
        raise ArgumentError(f"fft_c2r: there is no transform to {last_size} points")
    if self.known and self.shape[dims[-1]] != last_size // 2 + 1:
        raise ShapeError(
            f"fft_c2r: {last_size} points come of {last_size // 2 + 1} frequencies, "
            f"dimension {dims[-1]} has {self.shape[dims[-1]]}"
        )
    shape = list(self.shape)
    shape[dims[-1]] = last_size
    inner = [*sorted(dims[:-1], key=lambda d: -self.stride[d]), dims[-1]]
    return _result(self, tuple(shape), self.dtype.to_real(), inner)


@op(grad_fn="UnfoldBackwardBackward0", exposed=(), linear=True, total=False)
@gradients("unfold(slice_backward(grad))")
def overlap_add(self: Tensor, step: int, start: int = 0, end: int | None = None, least: float = 0.0) -> Inference:
    """The sum of windows that begin ``step`` apart, between two places: what makes a signal of its frames.

    The last two dimensions, frames and their elements, become one. An element of the sum whose size is not above
    ``least`` is an error when the result is read; 0 accepts all of them.
    """
    if self.ndim < 2:
        raise ShapeError(f"overlap_add takes frames in the last two dimensions, got {self!r}")
    if step < 1:
        raise ArgumentError(f"overlap_add: frames begin at least 1 apart, not {step}")
    frames, size = self.shape[-2:]
    length = size + step * (frames - 1) if frames else 0
    first, last = clipped(length, start, end)
    return new((*self.shape[:-2], last - first), self.dtype, self.device, compute=self.dtype)


def clipped(length: int, start: int, end: int | None) -> tuple[int, int]:
    """The part of a signal from ``start`` to ``end``, which counts from the signal's end if it is negative."""
    last = length if end is None else end + length if end < 0 else end
    last = min(max(last, 0), length)
    return min(max(start, 0), last), last
