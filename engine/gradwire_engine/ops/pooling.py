"""Pooling: separable reductions over windows, dimension by dimension, with contiguous inner loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gradwire_protocol.meta import Shape
from gradwire_protocol.ops.convolution import spatial
from gradwire_protocol.shapes import window_extent

from ..autograd.functional import F
from ..autograd.registry import derivative, joint_derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import place_of_extreme, total
from ..numerics.windows import Ints, Where, Windows
from ..runtime.arrays import Array, Namespace, Native

PORTION = 1 << 15
"""Elements that backward works on at a time."""


def windows_of(
    count: int, shape: Shape, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None,
    padding: int | tuple[int, ...], dilation: int | tuple[int, ...], ceil_mode: bool,
) -> Windows:  # fmt: skip
    """The windows of a pooling called with these arguments on an input of this shape."""
    kernel_size = spatial("pooling", kernel_size, count, "kernel_size")
    stride = kernel_size if stride is None or stride == () else spatial("pooling", stride, count, "stride")
    padding = spatial("pooling", padding, count, "padding")
    dilation = spatial("pooling", dilation, count, "dilation")
    extents = tuple(shape[-count:])
    outputs = tuple(
        window_extent(n, k, s, p, d, ceil_mode)
        for n, k, s, p, d in zip(extents, kernel_size, stride, padding, dilation, strict=True)
    )
    return Windows(extents, outputs, kernel_size, stride, padding, dilation)


def reduce_windows(x: Any, windows: Windows, combine: Callable[..., Any]) -> Array:
    """Every window of a padded input reduced by a ufunc, one dimension after the other."""
    count = len(windows.kernel)
    for axis in range(count):
        after = (slice(None),) * (count - 1 - axis)
        parts = [x[(..., where, *after)] for where in windows.along(axis)]
        if len(parts) == 1:
            x = parts[0]
            continue
        x = combine(parts[0], parts[1])
        for part in parts[2:]:
            combine(x, part, out=x)
    return x


def spread_windows(xp: Namespace, g: Any, windows: Windows) -> Array:
    """Every window's value added to all its elements: the transpose of a sum by :func:`reduce_windows`."""
    count = len(windows.kernel)
    for axis in reversed(range(count)):
        after = (slice(None),) * (count - 1 - axis)
        shape = list(g.shape)
        shape[axis - count] = windows.padded[axis]
        target = xp.zeros(shape, g.dtype)
        for where in windows.along(axis):
            target[(..., where, *after)] += g
        g = target
    return g[(..., *windows.inside)]


# Maxima. Backward finds them again, by comparing every tap with the result: cheaper than remembering them.


def _pad_lowest(xp: Namespace, x: Array, windows: Windows) -> Array:
    return windows.pad(xp, x, np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf)


Tap = tuple[Ints, tuple[slice, ...], Any]
"""A tap's place in the window, what it meets in a padded input, and in which windows it is not padding (None: all)."""


def _taps(xp: Namespace, windows: Windows) -> list[Tap]:
    return [(tap, where, _inside(xp, windows, tap)) for tap, where in windows.taps()]


def _inside(xp: Namespace, windows: Windows, tap: Ints) -> Array | None:
    if windows.padded == windows.extents:
        return None
    mask: Any = True
    count = len(tap)
    for axis, t in enumerate(tap):
        place = np.arange(windows.outputs[axis]) * windows.stride[axis] + t * windows.dilation[axis]
        place -= windows.padding[axis]
        shape = [1] * count
        shape[axis] = -1
        mask = mask & ((place >= 0) & (place < windows.extents[axis])).reshape(shape)
    return None if mask.all() else xp.asarray(mask)


def _hits(
    xp: Namespace, x: Array, out: Array, windows: Windows, taps: list[Tap]
) -> Iterator[tuple[Ints, Where, Array]]:
    """For each tap: its place in the window and in the padded input, and which windows have their maximum there.

    A window's maximum may be hit by several taps; NaN is hit by NaN.
    """
    padded: Any = _pad_lowest(xp, x, windows)
    lost = out != out if out.dtype.kind == "f" else None
    if lost is not None and xp is np and not lost.any():
        lost = None
    for tap, where, inside in taps:
        part = padded[(..., *where)]
        hit = part == out
        if lost is not None:
            hit |= lost & (part != part)
        if inside is not None:
            hit &= inside
        yield tap, where, hit


def _first_hits(
    xp: Namespace, x: Array, out: Array, windows: Windows, taps: list[Tap]
) -> Iterator[tuple[Where, Array]]:
    """As :func:`_hits`, with every window hit by one tap only."""
    done = None
    for _, where, hit in _hits(xp, x, out, windows, taps):
        if done is None:
            done = hit.copy()
        else:
            # True where it is hit now and was not before.
            first = xp.greater(hit, done)
            done |= hit
            hit = first
        yield where, hit


def _with_indices(xp: Namespace, x: Array, windows: Windows) -> tuple[Array, Array]:
    out = reduce_windows(_pad_lowest(xp, x, windows), windows, xp.maximum)
    indices = xp.zeros(out.shape, np.int64)
    step = 1
    steps: list[int] = []
    for extent in reversed(windows.extents):
        steps.insert(0, step)
        step *= extent
    start: Any = 0
    for axis, s in enumerate(steps):
        shape = [1] * len(steps)
        shape[axis] = -1
        place = xp.arange(windows.outputs[axis], dtype=np.int64) * windows.stride[axis] - windows.padding[axis]
        start = start + (place * s).reshape(shape)
    hits = [(tap, hit) for tap, _, hit in _hits(xp, x, out, windows, _taps(xp, windows))]
    # The first of equal maxima, but PyTorch takes the last NaN.
    lost = out != out
    for tap, hit in (*reversed(hits), *((tap, hit & lost) for tap, hit in hits)):
        offset = sum(t * d * s for t, d, s in zip(tap, windows.dilation, steps, strict=True))
        xp.copyto(indices, start + offset, where=hit)
    return out.copy() if out.base is not None else out, indices


def _laid(count: int, s: Saved, g: Tensor) -> Tensor:
    """A gradient for maxima, added up in the places that ``result1`` says they were found in."""
    meta = s.meta("self")
    lead = meta.shape[:-count]
    flat: Tensor = g.engine.call("zeros", (*lead, prod(meta.shape[-count:])), dtype=g.dtype, device=g.device)
    places = (*lead, prod(g.shape[-count:]))
    laid = F.scatter_add(flat, -1, F.reshape(s.result1, places), F.reshape(g, places))
    return F.reshape(laid, meta.shape)


def _register_max(count: int) -> None:
    @kernel(f"max_pool{count}d")
    def max_pool(
        xp: Namespace, x: Array, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None,
        padding: int | tuple[int, ...], dilation: int | tuple[int, ...], ceil_mode: bool,
    ) -> Array:  # fmt: skip
        windows = windows_of(count, x.shape, kernel_size, stride, padding, dilation, ceil_mode)
        out = xp.empty((*x.shape[:-count], *windows.outputs), x.dtype)
        for part, found in _planes(xp, windows, x, out):
            found[...] = reduce_windows(_pad_lowest(xp, part, windows), windows, xp.maximum)
        return out

    @kernel(f"max_pool{count}d_with_indices")
    def max_pool_with_indices(
        xp: Namespace, x: Array, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None,
        padding: int | tuple[int, ...], dilation: int | tuple[int, ...], ceil_mode: bool,
    ) -> tuple[Array, Array]:  # fmt: skip
        windows = windows_of(count, x.shape, kernel_size, stride, padding, dilation, ceil_mode)
        return _with_indices(xp, x, windows)

    def gradient(s: Saved, g: Tensor, result: Tensor | None) -> Tensor:
        if result is None:  # it was changed in place: the maxima are found once more
            result = g.engine.call(
                f"max_pool{count}d", s.self, s.kernel_size, s.stride, s.padding, s.dilation, s.ceil_mode
            )
        windows = windows_of(count, s.self.shape, s.kernel_size, s.stride, s.padding, s.dilation, s.ceil_mode)
        found: Tensor = F.max_pool_backward(
            g, s.self, result, windows.kernel, windows.stride, windows.padding, windows.dilation
        )
        return found

    derivative(f"max_pool{count}d", self=("self result?", lambda s, g: gradient(s, g, s.result)))
    # Who has the indices can write to them, which backward then refuses: they are what it reads.
    derivative(f"max_pool{count}d_with_indices", self=("self result1", lambda s, g, _: _laid(count, s, g)))


for _count in (1, 2, 3):
    _register_max(_count)


def _pairing(x: Array, out: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Windows:
    count = len(kernel_size)
    return Windows(x.shape[-count:], out.shape[-count:], kernel_size, stride, padding, dilation)


def _planes(xp: Namespace, windows: Windows, *arrays: Array) -> Iterator[tuple[Array, ...]]:
    """The arrays in portions of as many planes as a CPU's cache holds for several passes; a GPU takes all at once."""
    count = len(windows.kernel)
    lead = prod(arrays[0].shape[:-count])
    flat = [a.reshape((lead, *a.shape[-count:])) for a in arrays]
    step = max(1, PORTION // max(prod(windows.padded), 1)) if xp is np else max(lead, 1)
    for start in range(0, lead, step):
        yield tuple(a[start : start + step] for a in flat)


@kernel("max_pool_backward")
def max_pool_backward(
    xp: Namespace, g: Array, x: Array, out: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Array:
    if not x.size:  # however many taps there would be
        return xp.zeros(x.shape, g.dtype)
    windows = _pairing(x, out, kernel_size, stride, padding, dilation)
    result, taps = xp.empty(x.shape, g.dtype), _taps(xp, windows)
    for g_part, x_part, out_part, found in _planes(xp, windows, g, x, out, result):
        # Where windows cover the input once, there is nothing to add to and nothing to leave out.
        whole = windows.complete and windows.padded == windows.extents
        target: Any = found if whole else xp.zeros((found.shape[0], *windows.padded), g.dtype)
        for where, hit in _first_hits(xp, x_part, out_part, windows, taps):
            if whole:
                xp.multiply(g_part, hit, out=target[(..., *where)])
            else:
                target[(..., *where)] += g_part * hit
        if not whole:
            found[...] = target[(..., *windows.inside)]
    return result


@kernel("max_pool_pick")
def max_pool_pick(
    xp: Namespace, tangent: Array, x: Array, out: Array, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Array:
    windows = _pairing(x, out, kernel_size, stride, padding, dilation)
    padded: Any = windows.pad(xp, tangent)
    picked = xp.zeros(out.shape, tangent.dtype)
    for where, hit in _first_hits(xp, x, out, windows, _taps(xp, windows)):
        picked += padded[(..., *where)] * hit
    return picked


def _geometry(s: Saved) -> tuple[Ints, Ints, Ints, Ints]:
    return s.kernel_size, s.stride, s.padding, s.dilation


derivative("max_pool_backward", grad=("self result", lambda s, g: F.max_pool_pick(g, s.self, s.result, *_geometry(s))))
derivative(
    "max_pool_pick", tangent=("self result", lambda s, g: F.max_pool_backward(g, s.self, s.result, *_geometry(s)))
)


# Means


def _divisors(xp: Namespace, windows: Windows, include_pad: bool, divisor: int | None, dtype: Native) -> Array | int:
    """What each window's sum is divided by: one number, or an array of the outputs' extents."""
    if divisor is not None:
        return divisor
    if windows.padded == windows.extents:
        return prod(windows.kernel)
    result: Any = 1
    count = len(windows.kernel)
    for axis in range(count):
        n, p, k = windows.extents[axis], windows.padding[axis], windows.kernel[axis]
        start = np.arange(windows.outputs[axis]) * windows.stride[axis] - p
        end = np.minimum(start + k, n + p)
        members = end - start if include_pad else np.minimum(end, n) - np.maximum(start, 0)
        shape = [1] * count
        shape[axis] = -1
        result = result * members.reshape(shape)
    return xp.asarray(result.astype(dtype))


def _divided(xp: Namespace, sums: Array, divisor: Array | int) -> Array:
    if sums.dtype.kind in "iu":
        # Integers are divided towards zero.
        divisor = xp.asarray(divisor)
        return xp.sign(sums) * xp.sign(divisor) * (xp.abs(sums) // xp.abs(divisor))
    return xp.divide(sums, divisor)


def _register_mean(count: int) -> None:
    def avg_pool(
        xp: Namespace, x: Array, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None,
        padding: int | tuple[int, ...], ceil_mode: bool, count_include_pad: bool, divisor_override: int | None = None,
    ) -> Array:  # fmt: skip
        windows = windows_of(count, x.shape, kernel_size, stride, padding, 1, ceil_mode)
        sums = reduce_windows(windows.pad(xp, x), windows, xp.add)
        return _divided(xp, sums, _divisors(xp, windows, count_include_pad, divisor_override, sums.dtype))

    def gradient(s: Saved, g: Tensor) -> Tensor:
        shape = s.meta("self").shape
        windows = windows_of(count, shape, s.kernel_size, s.stride, s.padding, 1, s.ceil_mode)
        override = s.divisor_override if count > 1 else None
        found: Tensor = F.avg_pool_backward(
            g, windows.extents, windows.kernel, windows.stride, windows.padding, s.count_include_pad, override
        )
        return found

    kernel(f"avg_pool{count}d")(avg_pool)
    derivative(f"avg_pool{count}d", self=gradient)


for _count in (1, 2, 3):
    _register_mean(_count)


@kernel("avg_pool_backward")
def avg_pool_backward(
    xp: Namespace, g: Array, extents: Ints, kernel_size: Ints, stride: Ints, padding: Ints, count_include_pad: bool,
    divisor_override: int | None,
) -> Array:  # fmt: skip
    count = len(extents)
    if not g.size:
        return xp.zeros((*g.shape[:-count], *extents), g.dtype)
    windows = Windows(extents, g.shape[-count:], kernel_size, stride, padding, (1,) * count)
    return spread_windows(
        xp, xp.divide(g, _divisors(xp, windows, count_include_pad, divisor_override, g.dtype)), windows
    )


def _avg_pool_backward(s: Saved, g: Tensor) -> Tensor:
    # A plain mean of the same windows. Whether the last of them came from ceil_mode shows in how many there are.
    count = len(s.extents)
    outputs = s.meta("grad").shape[-count:]
    for ceil_mode in (False, True):
        windows = windows_of(count, s.extents, s.kernel_size, s.stride, s.padding, 1, ceil_mode)
        if windows.outputs == tuple(outputs):
            break
    rest = (s.kernel_size, s.stride, s.padding, ceil_mode, s.count_include_pad)
    if count == 1:
        found: Tensor = F.avg_pool1d(g, *rest)
    else:
        found = (F.avg_pool2d if count == 2 else F.avg_pool3d)(g, *rest, s.divisor_override)
    return found


derivative("avg_pool_backward", grad=_avg_pool_backward)


# Adaptive pooling


def _spans(xp: Namespace, extent: int, outputs: int) -> tuple[Array, Array]:
    """Where each output's window starts and ends, as columns."""
    numbers = xp.arange(outputs)[:, None]
    return numbers * extent // outputs, -(-(numbers + 1) * extent // outputs)


def _averaging(extent: int, outputs: int) -> np.ndarray[Any, Any]:
    """The matrix, ``(outputs, extent)``, whose rows take the mean of a window. Small ones are kept."""
    return (_kept_matrix if extent * outputs <= _KEPT_ELEMENTS else _matrix)(extent, outputs)


def _matrix(extent: int, outputs: int) -> np.ndarray[Any, Any]:
    starts, ends = _spans(np, extent, outputs)
    at = np.arange(extent)
    matrix = ((at >= starts) & (at < ends)) / (ends - starts)
    matrix.flags.writeable = False
    return matrix


_KEPT_ELEMENTS = 1 << 14
_kept_matrix = lru_cache(maxsize=64)(_matrix)


def _apply(xp: Namespace, x: Array, matrices: list[Array]) -> Array:
    """Multiply a matrix onto each of the last dimensions."""
    count = len(matrices)
    for axis, matrix in enumerate(matrices):
        at = x.ndim - count + axis
        lead, trail = x.shape[:at], x.shape[at + 1 :]
        matrix = xp.asarray(matrix.astype(x.dtype))
        flat = x.reshape(prod(lead), x.shape[at], prod(trail))
        x = xp.matmul(matrix, flat).reshape((*lead, matrix.shape[0], *trail))
    return x


def _sizes(extents: Ints, output_size: int | tuple[int | None, ...]) -> Ints:
    sizes = (output_size,) if isinstance(output_size, int) else output_size
    sizes = sizes * len(extents) if len(sizes) == 1 else sizes
    return tuple(n if m is None else m for m, n in zip(sizes, extents, strict=True))


def _register_adaptive(count: int) -> None:
    @kernel(f"adaptive_avg_pool{count}d")
    def adaptive_avg_pool(xp: Namespace, x: Array, output_size: int | tuple[int | None, ...]) -> Array:
        extents = x.shape[-count:]
        outputs = _sizes(extents, output_size)
        if prod(outputs) == 1:
            axes = tuple(range(x.ndim - count, x.ndim))
            return xp.divide(total(xp, x, axes, True), prod(extents))
        return _apply(xp, x, [_averaging(n, m) for n, m in zip(extents, outputs, strict=True)])

    derivative(
        f"adaptive_avg_pool{count}d", self=lambda s, g: F.adaptive_avg_pool_backward(g, s.meta("self").shape[-count:])
    )

    @kernel(f"adaptive_max_pool{count}d")
    def adaptive_max_pool(xp: Namespace, x: Array, output_size: int | tuple[int | None, ...]) -> tuple[Array, Array]:
        return _adaptive_max(xp, x, _sizes(x.shape[-count:], output_size))

    @joint_derivative(f"adaptive_max_pool{count}d", saves="result1")
    def gradient(s: Saved, g: Tensor, _: object) -> Tensor:
        return _laid(count, s, g)


for _count in (1, 2, 3):
    _register_adaptive(_count)


@kernel("adaptive_avg_pool_backward")
def adaptive_avg_pool_backward(xp: Namespace, g: Array, extents: Ints) -> Array:
    outputs = g.shape[-len(extents) :]
    if prod(outputs) == 1:
        return xp.broadcast_to(xp.divide(g, prod(extents)), (*g.shape[: -len(extents)], *extents))
    return _apply(xp, g, [_averaging(n, m).T for n, m in zip(extents, outputs, strict=True)])


def _adaptive_avg_pool_backward(s: Saved, g: Tensor) -> Tensor:
    count = len(s.extents)
    pool = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[count - 1]
    pooled: Tensor = pool(g, tuple(s.meta("grad").shape[-count:]))
    return pooled


derivative("adaptive_avg_pool_backward", grad=_adaptive_avg_pool_backward)


def _adaptive_max(xp: Namespace, x: Array, outputs: Ints) -> tuple[Array, Array]:
    if not x.size or 0 in outputs:  # however many windows there would be
        empty = (*x.shape[: x.ndim - len(outputs)], *outputs)
        return xp.zeros(empty, x.dtype), xp.zeros(empty, xp.int64)
    # One dimension after the other, the last one first: of equal elements the first in memory is found.
    extents, first = x.shape[x.ndim - len(outputs) :], x.ndim - len(outputs)
    indices: Any = None
    for axis in reversed(range(len(outputs))):
        at, extent, windows = first + axis, extents[axis], outputs[axis]
        starts, ends = _spans(xp, extent, windows)
        reach = xp.minimum(starts + xp.arange(int((ends - starts).max())), ends - 1)
        shown = xp.take(x, reach, axis=at)
        place = xp.expand_dims(place_of_extreme(xp, shown, at + 1, largest=True), at + 1)
        x = xp.take_along_axis(shown, place, axis=at + 1).squeeze(at + 1)
        found = place.squeeze(at + 1) + starts.reshape(-1, *[1] * (x.ndim - at - 1))
        if indices is not None:
            inner = xp.take_along_axis(xp.take(indices, reach, axis=at), place, axis=at + 1).squeeze(at + 1)
            found = found * prod(extents[axis + 1 :]) + inner
        indices = found
    return x, indices
