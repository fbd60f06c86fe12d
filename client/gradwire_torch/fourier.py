"""Fourier transforms."""

from __future__ import annotations

from typing import Any, Final

from gradwire._core.dispatch.dispatch import call

from .dispatch import computes

_SCALES: Final = ("none", "root", "count")


@computes("_fft_c2c")
def c2c(self: Any, dim: Any, normalization: int, forward: bool) -> Any:
    return call("fft_c2c", self, tuple(dim), _SCALES[normalization], forward) if dim else self.clone()


@computes("_fft_r2c")
def r2c(self: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    return call("fft_r2c", self, tuple(dim), _SCALES[normalization], onesided)


@computes("_fft_c2r")
def c2r(self: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    return call("fft_c2r", self, tuple(dim), _SCALES[normalization], last_dim_size)
