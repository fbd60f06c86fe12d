# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from collections.abc import Sequence
from gradwire._core.composed.fourier import fftshift as fftshift, ifftshift as ifftshift
from gradwire._core.tensor.tensor import Tensor
from typing import Any

def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The transform along a dimension: ``X[k] = sum(x[j] * exp(-2j * pi * j * k / n))``. The result is complex."""
def fft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`fftn` along two dimensions, the last two by default."""
def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """The frequencies of :func:`fft` of n points at a distance d, in cycles a unit; ``dtype``, ``device``,
    ``requires_grad`` as for ``arange``."""
def fftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`fft` along several dimensions, all by default; ``s`` has the number of points of each."""
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`fft` of the first half of numbers whose other half are the conjugates: n real frequencies."""
def hfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`hfftn` along two dimensions, the last two by default."""
def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`fftn` of numbers of which the last dimension holds one half, the other being the conjugates: real."""
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`fft`. The result is complex."""
def ifft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`ifftn` along two dimensions, the last two by default."""
def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`fftn`."""
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`hfft`: of n real frequencies the first ``n // 2 + 1`` numbers."""
def ihfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`ihfftn` along two dimensions, the last two by default."""
def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`hfftn`: half of the last dimension."""
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`rfft`: n real numbers, by default ``2 * (extent - 1)``, which is even."""
def irfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`irfftn` along two dimensions, the last two by default."""
def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`rfftn`, real; ``s[-1]`` tells an odd number of points from an even one."""
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`fft` of real numbers: only the ``n // 2 + 1`` frequencies that are not negative."""
def rfft2(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`rfftn` along two dimensions, the last two by default."""
def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """The frequencies of :func:`rfft`: those of :func:`fftfreq` that are not negative, and the highest one."""
def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """:func:`fftn` of real numbers: the last dimension has only the frequencies that are not negative."""
__all__ = ['fft', 'fft2', 'fftfreq', 'fftn', 'fftshift', 'hfft', 'hfft2', 'hfftn', 'ifft', 'ifft2', 'ifftn', 'ifftshift', 'ihfft', 'ihfft2', 'ihfftn', 'irfft', 'irfft2', 'irfftn', 'rfft', 'rfft2', 'rfftfreq', 'rfftn']
