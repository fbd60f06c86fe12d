"""The short-time Fourier transform and its inverse.

Griffin and Lim, "Signal estimation from modified short-time Fourier transform", IEEE Trans. ASSP 32 (1984), for the
inverse: frames are weighted by the window once more, added up, and divided by the sum of the squared windows.
"""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, DTypeError, ShapeError, Unsupported

from ..dispatch.dispatch import call
from ..surface.methods import offer
from ..tensor.tensor import Tensor

_LEAST = 1e-11
"""Squared windows add up to more than this, or a signal cannot be recovered."""


def _warn_without(name: str, window: Tensor | None) -> None:
    if window is None:
        warnings.warn(f"{name}: without a window frames are cut off sharply, which smears their spectrum", stacklevel=3)


def _lengths(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop < 1:
        raise ArgumentError(f"{name}: hop_length is {hop}, frames begin at least 1 apart")
    if not 0 < width <= n_fft:
        raise ArgumentError(f"{name}: win_length is {width}, it must be from 1 to n_fft, {n_fft}")
    return hop, width


def _window(name: str, window: Tensor | None, width: int, n_fft: int, like: Tensor) -> Any:
    """The window, ones by default, in the middle of a frame of zeros; ``None`` for one that changes nothing."""
    if window is None:
        if width == n_fft:
            return None
        real = like.dtype.to_real() if like.dtype.is_complex else like.dtype
        window = call("ones", (width,), dtype=real, device=like._form.device)
    elif tuple(window.shape) != (width,):
        raise ShapeError(f"{name}: the window has shape {list(window.shape)}, it must be a vector of {width}")
    if width == n_fft:
        return window
    before = (n_fft - width) // 2
    return call("pad", window, (before, n_fft - width - before), "constant", 0.0)


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of frames of a signal (time,) or of several (batch, time): (batch, frequency, frame).

    Raises:
        ArgumentError: for lengths that do not fit, a one-sided transform of complex numbers, or when it is not said
            whether the result of real operands is complex.
        DTypeError: for integers and bools.
    """
    _warn_without("stft", window)
    if input.dtype.category < dtypes.FLOATING:
        raise DTypeError(f"stft takes floating point and complex tensors, not {input.dtype.name}")
    if input.ndim not in (1, 2):
        raise ShapeError(f"stft takes a signal (time,) or signals (batch, time), got shape {list(input.shape)}")
    if align_to_window:
        raise Unsupported("stft(align_to_window=True) is not supported by gradwire")
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise ArgumentError("stft: say return_complex=True, or False for pairs of real numbers")
        return_complex = True
    hop, width = _lengths("stft", n_fft, hop_length, win_length)
    x = call("unsqueeze", input, 0) if input.ndim == 1 else input
    if center:
        border = (n_fft // 2, n_fft // 2)
        x = call("squeeze", call("pad", call("unsqueeze", x, 0), border, pad_mode, None), 0)
    if not 0 < n_fft <= x.shape[-1]:
        raise ArgumentError(f"stft: n_fft is {n_fft}, it must be from 1 to the signal's {x.shape[-1]} elements")
    frames = call("unfold", x, -1, n_fft, hop)
    weights = _window("stft", window, width, n_fft, input)
    if weights is not None:
        frames = call("mul", frames, weights)
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise ArgumentError("stft: a transform of complex numbers has two sides, onesided=True does not fit")
    scale = "root" if normalized else "none"
    if is_complex:
        found = call("fft_c2c", frames, (2,), scale, True)
    else:
        found = call("fft_r2c", frames, (2,), scale, onesided)
    found = call("transpose", found, 1, 2)
    if input.ndim == 1:
        found = call("squeeze", found, 0)
    return found if return_complex else call("view_as_real", found)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signals whose :func:`stft` is nearest to ``input``, of shape (frequency, frame) or with a batch before.

    Raises:
        ArgumentError: for lengths that do not fit. Windows that do not cover the signal are a RuntimeError when it is
            read.
        DTypeError: when the input is not complex.
    """
    _warn_without("istft", window)
    if not input.dtype.is_complex:
        raise DTypeError(f"istft takes the complex result of stft(return_complex=True), not {input.dtype.name}")
    if input.ndim not in (2, 3) or input.numel() == 0:
        raise ShapeError(f"istft takes (frequency, frame) or (batch, frequency, frame), got {list(input.shape)}")
    hop, width = _lengths("istft", n_fft, hop_length, win_length)
    if hop > width:
        raise ArgumentError(f"istft: frames {hop} apart do not cover a signal with windows of {width}")
    points, frames = input.shape[-2], input.shape[-1]
    onesided = points != n_fft if onesided is None else onesided
    if points != (n_fft // 2 + 1 if onesided else n_fft):
        kind = "one-sided" if onesided else "two-sided"
        raise ArgumentError(f"istft: {points} frequencies are not those of a {kind} transform of {n_fft} points")
    if onesided and return_complex:
        raise ArgumentError("istft: a one-sided transform is of real numbers, return_complex=True does not fit")
    if window is not None and window.dtype.is_complex and not return_complex:
        raise ArgumentError("istft: with a complex window the signal is complex: say return_complex=True")
    weights = _window("istft", window, width, n_fft, input)
    x = call("transpose", input if input.ndim == 3 else call("unsqueeze", input, 0), 1, 2)
    scale = "root" if normalized else "count"
    if return_complex:
        parts = call("fft_c2c", x, (2,), scale, False)
    else:
        parts = call("fft_c2r", x if onesided else call("slice", x, 2, 0, n_fft // 2 + 1, 1), (2,), scale, n_fft)
    whole = n_fft + hop * (frames - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - n_fft // 2 if center else whole
    if end <= start:
        raise ArgumentError(f"istft: no element of the signal is left between {start} and {end}")
    if weights is None:
        weights = call("ones", (n_fft,), dtype=parts.dtype, device=input._form.device)
    else:
        parts = call("mul", parts, weights)
    signal = call("overlap_add", parts, hop, start, min(end, whole))
    squares = call("expand", call("square", weights), (frames, n_fft))
    signal = call("div", signal, call("overlap_add", squares, hop, start, min(end, whole), _LEAST))
    if end > whole:
        warnings.warn(f"istft: length {length} is beyond the frames; the signal ends with zeros", stacklevel=2)
        signal = call("pad", signal, (0, end - whole), "constant", 0.0)
    return signal if input.ndim == 3 else call("squeeze", signal, 0)


offer(stft)
offer(istft)
