"""Fourier transforms, through SciPy (pocketfft on the CPU, cuFFT on a GPU); putting frames together."""

from __future__ import annotations

from gradwire_protocol.errors import KernelError
from gradwire_protocol.ops.fourier import clipped

from ..autograd.functional import F
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics.axes import waits
from ..numerics.scientific import scipy_of
from ..runtime.arrays import Array, Namespace

_FORWARD = {"none": "backward", "root": "ortho", "count": "forward"}
_INVERSE = {"none": "forward", "root": "ortho", "count": "backward"}


@kernel("fft_c2c")
def fft_c2c(xp: Namespace, x: Array, dim: tuple[int, ...], scale: str, forward: bool) -> Array:
    fft = scipy_of(xp, "fft")
    if forward:
        return fft.fftn(x, axes=dim, norm=_FORWARD[scale])
    return fft.ifftn(x, axes=dim, norm=_INVERSE[scale])


@kernel("fft_r2c")
def fft_r2c(xp: Namespace, x: Array, dim: tuple[int, ...], scale: str, onesided: bool) -> Array:
    fft = scipy_of(xp, "fft")
    transform = fft.rfftn if onesided else fft.fftn
    return transform(x, axes=dim, norm=_FORWARD[scale])


@kernel("fft_c2r")
def fft_c2r(xp: Namespace, x: Array, dim: tuple[int, ...], scale: str, last_size: int) -> Array:
    size = (*[x.shape[d] for d in dim[:-1]], last_size)
    return scipy_of(xp, "fft").irfftn(x, s=size, axes=dim, norm=_INVERSE[scale])


def _by_real(s: Saved, g: Tensor) -> Tensor:
    """The real part of the inverse transform; frequencies that were left out have no gradient."""
    if s.onesided:
        last = s.dim[-1] % g.ndim
        size = list(g.shape)
        size[last] = s.meta("self").shape[last]
        g = F.slice_backward(g, tuple(size), last, 0, g.shape[last], 1)
    return F.real(F.fft_c2c(g, s.dim, s.scale, False))


def _by_frequencies(s: Saved, g: Tensor) -> Tensor:
    """The one-sided transform, twice where a frequency counted for its negative, too."""
    found = F.fft_r2c(g, s.dim, s.scale, True)
    last = s.dim[-1] % g.ndim
    count = found.shape[last]
    paired = g.shape[last] - count
    if paired == 0:
        return found
    at = g.engine.call("arange", count, device=g.device)
    weight = F.where((at >= 1) & (at <= paired), 2, 1)
    return found * F.reshape(weight, tuple(count if d == last else 1 for d in range(g.ndim)))


derivative("fft_c2c", self=lambda s, g: F.fft_c2c(g, s.dim, s.scale, not s.forward))
derivative("fft_r2c", self=_by_real)
derivative("fft_c2r", self=_by_frequencies)


@kernel("overlap_add")
def overlap_add(xp: Namespace, x: Array, step: int, start: int, end: int | None, least: float) -> Array:
    frames, size = x.shape[-2:]
    length = size + step * (frames - 1) if frames else 0
    signal = xp.zeros((*x.shape[:-2], length), x.dtype)
    # One pass for each place in the frame: there frames never overlap themselves.
    for i in range(size if frames else 0):
        signal[..., i : i + (frames - 1) * step + 1 : step] += x[..., i]
    first, last = clipped(length, start, end)
    signal = signal[..., first:last].copy()
    if least > 0 and not waits(xp) and bool((xp.abs(signal) <= least).any()):
        raise KernelError(f"overlap_add: the sum of the windows is not above {least} everywhere")
    return signal


def _by_frames(s: Saved, g: Tensor) -> Tensor:
    *lead, frames, size = s.meta("self").shape
    if not frames:
        return g.engine.call("zeros", s.meta("self").shape, g.dtype, g.device)
    length = size + s.step * (frames - 1)
    first, last = clipped(length, s.start, s.end)
    whole = F.slice_backward(g, (*lead, length), g.ndim - 1, first, last, 1)
    return F.unfold(whole, -1, size, s.step)


derivative("overlap_add", self=_by_frames)
