"""Discrete Fourier transforms and what belongs to them: the functions of ``gradwire.fft``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, DTypeError, IndexOutOfRange
from gradwire_protocol.shapes import canonical_dim

from ..dispatch.dispatch import call
from ..dispatch.out_argument import accepts_out
from ..session.current_session import current_session
from ..surface.creation import arange
from ..tensor.tensor import Tensor

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_SCALES = {
    None: ("none", "count"),
    "backward": ("none", "count"),
    "ortho": ("root", "root"),
    "forward": ("count", "none"),
}
"""The scale of a transform and of its inverse, by ``norm``."""


def _scale(norm: Any, forward: bool) -> str:
    if norm not in _SCALES:
        raise ArgumentError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    return _SCALES[norm][not forward]


def _prepared(name: str, input: Tensor, kind: str) -> Tensor:
    """The input in a dtype that can be transformed; ``kind`` is "complex", "real" (and stays so) or "any"."""
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(f"{name} takes a tensor, not {type(input).__name__}")
    dtype = input.dtype
    if dtype.is_low_precision:
        raise DTypeError(f"{name} is not defined for {dtype.name}: cast to float32")
    if kind == "real" and dtype.is_complex:
        raise DTypeError(f"{name} takes real numbers, not {dtype.name}")
    wanted = current_session().default_dtype if dtype.category <= dtypes.INTEGRAL else dtype
    if kind == "complex":
        wanted = wanted.to_complex()
    return input if wanted is dtype else input.to(wanted)


def _resized(name: str, x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Cut or filled up with zeros to a size along each dimension; -1 leaves it as it is."""
    padding = [0] * (2 * x.ndim)
    for d, size in zip(dims, sizes, strict=True):
        extent = x.shape[d]
        if (size != -1 and size < 1) or (size == -1 and extent < 1):
            raise ArgumentError(f"{name}: there is no transform of {extent if size == -1 else size} points")
        if extent > size != -1:
            x = call("slice", x, d, 0, size, 1)
        padding[2 * (x.ndim - 1 - d) + 1] = max(size - extent, 0)
    return call("pad", x, tuple(padding), "constant", 0.0) if any(padding) else x


def _size(name: str, n: Any) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise ArgumentTypeError(f"{name}: a number of points is an int, not {n!r:.60}")
    return int(n)


def _one(name: str, input: Tensor, n: Any, dim: int, kind: str) -> tuple[Tensor, int]:
    """The prepared and resized input of a transform along one dimension, and that dimension."""
    x = _prepared(name, input, kind)
    if not x.ndim:
        raise IndexOutOfRange(f"{name}: a tensor without dimensions has no dimension {dim}")
    dim = canonical_dim(dim, x.ndim)
    size = -1 if n is None else _size(name, n)
    if n is not None and size < 1:
        raise ArgumentError(f"{name}: there is no transform of {size} points")
    return _resized(name, x, (dim,), (size,)), dim


def _to_real(name: str, input: Tensor, n: Any, dim: int, scale: str, conjugated: bool) -> Any:
    x = _prepared(name, input, "complex")
    if not x.ndim:
        raise IndexOutOfRange(f"{name}: a tensor without dimensions has no dimension {dim}")
    dim = canonical_dim(dim, x.ndim)
    size = 2 * (x.shape[dim] - 1) if n is None else _size(name, n)
    if size < 1:
        raise ArgumentError(f"{name}: there is no transform to {size} points")
    x = _resized(name, x, (dim,), (size // 2 + 1,))
    return call("fft_c2r", call("conj", x) if conjugated else x, (dim,), scale, size)


@accepts_out
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform along a dimension: ``X[k] = sum(x[j] * exp(-2j * pi * j * k / n))``. The result is complex."""
    scale = _scale(norm, True)
    x, dim = _one("fft", input, n, dim, "any")
    if x.dtype.is_complex:
        return call("fft_c2c", x, (dim,), scale, True)
    return call("fft_r2c", x, (dim,), scale, False)


@accepts_out
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`fft`. The result is complex."""
    scale = _scale(norm, False)
    x, dim = _one("ifft", input, n, dim, "any")
    if x.dtype.is_complex:
        return call("fft_c2c", x, (dim,), scale, False)
    return call("conj", call("fft_r2c", x, (dim,), scale, False))


@accepts_out
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """:func:`fft` of real numbers: only the ``n // 2 + 1`` frequencies that are not negative."""
    scale = _scale(norm, True)
    x, dim = _one("rfft", input, n, dim, "real")
    return call("fft_r2c", x, (dim,), scale, True)


@accepts_out
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`rfft`: n real numbers, by default ``2 * (extent - 1)``, which is even."""
    return _to_real("irfft", input, n, dim, _scale(norm, False), conjugated=False)


@accepts_out
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """:func:`fft` of the first half of numbers whose other half are the conjugates: n real frequencies."""
    return _to_real("hfft", input, n, dim, _scale(norm, True), conjugated=True)


@accepts_out
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`hfft`: of n real frequencies the first ``n // 2 + 1`` numbers."""
    scale = _scale(norm, False)
    x, dim = _one("ihfft", input, n, dim, "real")
    return call("conj", call("fft_r2c", x, (dim,), scale, True))


def _ints(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    return (int(value),) if hasattr(value, "__index__") else tuple(int(v) for v in value)


def _dims_and_sizes(name: str, x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """The dimensions and the sizes wanted there; by default all, or as many of the last as there are sizes."""
    sizes, given = _ints(s), _ints(dim)
    if given is not None:
        dims = [canonical_dim(d, x.ndim) for d in given]
        if len(set(dims)) < len(dims):
            raise ArgumentError(f"{name}: dimensions {list(given)} name one dimension twice")
        if sizes is not None and len(sizes) != len(dims):
            raise ArgumentError(f"{name}: {len(sizes)} sizes for {len(dims)} dimensions")
    elif sizes is not None:
        if len(sizes) > x.ndim:
            raise ArgumentError(f"{name}: {len(sizes)} sizes for a tensor of {x.ndim} dimensions")
        dims = list(range(x.ndim - len(sizes), x.ndim))
    else:
        dims = list(range(x.ndim))
    return dims, list(sizes) if sizes is not None else [-1] * len(dims)


def _need_dims(name: str, dims: list[int]) -> None:
    if not dims:
        raise ArgumentError(f"{name} transforms at least one dimension")


def _complex_nd(name: str, input: Tensor, s: Any, dim: Any, norm: Any, forward: bool) -> Any:
    x = _prepared(name, input, "complex")
    dims, sizes = _dims_and_sizes(name, x, s, dim)
    x = _resized(name, x, dims, sizes)
    scale = _scale(norm, forward)
    return call("fft_c2c", x, tuple(dims), scale, forward) if dims else call("clone", x)


@accepts_out
def fftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """:func:`fft` along several dimensions, all by default; ``s`` has the number of points of each."""
    return _complex_nd("fftn", input, s, dim, norm, True)


@accepts_out
def ifftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """The inverse of :func:`fftn`."""
    return _complex_nd("ifftn", input, s, dim, norm, False)


@accepts_out
def rfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """:func:`fftn` of real numbers: the last dimension has only the frequencies that are not negative."""
    x = _prepared("rfftn", input, "real")
    dims, sizes = _dims_and_sizes("rfftn", x, s, dim)
    _need_dims("rfftn", dims)
    return call("fft_r2c", _resized("rfftn", x, dims, sizes), tuple(dims), _scale(norm, True), True)


def _to_real_nd(name: str, input: Tensor, s: Any, dim: Any) -> tuple[Tensor, list[int], int]:
    """The prepared input, its dimensions and how many points the last one gets."""
    x = _prepared(name, input, "complex")
    dims, sizes = _dims_and_sizes(name, x, s, dim)
    _need_dims(name, dims)
    last = sizes[-1] if s is not None and sizes[-1] != -1 else 2 * (x.shape[dims[-1]] - 1)
    if last < 1:
        raise ArgumentError(f"{name}: there is no transform to {last} points")
    return _resized(name, x, dims, [*sizes[:-1], last // 2 + 1]), dims, last


@accepts_out
def irfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """The inverse of :func:`rfftn`, real; ``s[-1]`` tells an odd number of points from an even one."""
    x, dims, last = _to_real_nd("irfftn", input, s, dim)
    return call("fft_c2r", x, tuple(dims), _scale(norm, False), last)


@accepts_out
def hfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """:func:`fftn` of numbers of which the last dimension holds one half, the other being the conjugates: real."""
    x, dims, last = _to_real_nd("hfftn", input, s, dim)
    scale = _scale(norm, True)
    if len(dims) > 1:
        x = call("fft_c2c", x, tuple(dims[:-1]), scale, True)
    return call("fft_c2r", call("conj", x), (dims[-1],), scale, last)


@accepts_out
def ihfftn(
    input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> Tensor:
    """The inverse of :func:`hfftn`: half of the last dimension."""
    x = _prepared("ihfftn", input, "real")
    dims, sizes = _dims_and_sizes("ihfftn", x, s, dim)
    _need_dims("ihfftn", dims)
    scale = _scale(norm, False)
    halves = call("conj", call("fft_r2c", _resized("ihfftn", x, dims, sizes), (dims[-1],), scale, True))
    return call("fft_c2c", halves, tuple(dims[:-1]), scale, False) if len(dims) > 1 else halves


def _planar(name: str, whole: Callable[..., Any]) -> Callable[..., Any]:
    def plane(
        input: Tensor,
        s: Sequence[int] | None = None,
        dim: int | Sequence[int] = (-2, -1),
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        return whole(input, s, dim, norm, out=out)

    plane.__name__ = plane.__qualname__ = name
    plane.__doc__ = f":func:`{whole.__name__}` along two dimensions, the last two by default."
    return plane


fft2 = _planar("fft2", fftn)
ifft2 = _planar("ifft2", ifftn)
rfft2 = _planar("rfft2", rfftn)
irfft2 = _planar("irfft2", irfftn)
hfft2 = _planar("hfft2", hfftn)
ihfft2 = _planar("ihfft2", ihfftn)


def _rolled(name: str, input: Tensor, dim: Any, up: int) -> Any:
    given = _ints(dim)
    dims = tuple(range(input.ndim)) if given is None else tuple(canonical_dim(d, input.ndim) for d in given)
    if not dims:
        raise ArgumentError(f"{name} moves along at least one dimension")
    return call("roll", input, tuple((input.shape[d] + up) // 2 for d in dims), dims)


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Frequency 0 moved to the middle of each dimension, or of those given."""
    return _rolled("fftshift", input, dim, 0)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return _rolled("ifftshift", input, dim, 1)


def _frequencies(name: str, n: Any, d: float, half: bool, options: dict[str, Any]) -> Any:
    n = _size(name, n)
    dtype = options.pop("dtype", None) or current_session().default_dtype
    if dtype.category < dtypes.FLOATING:
        raise DTypeError(f"{name}: frequencies are floating point numbers, not {dtype.name}")
    if n < 0:
        raise ArgumentError(f"{name}: there are no {n} frequencies")
    requires = options.pop("requires_grad", False)
    count = arange(0, n // 2 + 1 if half else (n + 1) // 2, dtype=dtype, **options)
    if not half:
        count = call("cat", [count, arange(-(n // 2), 0, dtype=dtype, **options)], 0)
    span = n * d
    made = call("mul", count, 1 / span if span else math.copysign(math.inf, span))
    return made.requires_grad_() if requires else made


@accepts_out
def fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of :func:`fft` of n points at a distance d, in cycles a unit; ``dtype``, ``device``,
    ``requires_grad`` as for ``arange``."""
    return _frequencies("fftfreq", n, d, False, options)


@accepts_out
def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """The frequencies of :func:`rfft`: those of :func:`fftfreq` that are not negative, and the highest one."""
    return _frequencies("rfftfreq", n, d, True, options)
