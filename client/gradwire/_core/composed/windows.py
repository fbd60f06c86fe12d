"""The windows that are functions of ``torch`` itself: periodic by default, in any floating point dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, DTypeError

from ..context.late_signatures import takes_options
from ..context.layouts import check_layout
from ..context.numpy_dtypes import NUMPY_DTYPES
from ..session.current_session import current_session
from ..surface.creation import upload
from ..surface.methods import offer
from ..tensor.tensor import Tensor

Formula = Callable[[Any, float], Any]
"""What gives a window's values at places from the beginning of a span."""


def _window(name: str, length: Any, periodic: bool, formula: Formula, options: dict[str, Any]) -> Any:
    """A window from ``formula(places, span)``.

    Raises:
        ArgumentError: for a negative length.
        DTypeError: for a dtype that is not floating point.
    """
    wanted = options.pop("dtype", None)
    dtype = dtypes.OF_PYTHON_TYPES.get(wanted, wanted) or current_session().default_dtype
    device, requires_grad = options.pop("device", None), options.pop("requires_grad", False)
    check_layout(name, options.pop("layout", None))
    options.pop("pin_memory", None)
    if options:
        raise ArgumentTypeError(f"{name}() got an unexpected argument {sorted(options)[0]!r}")
    if isinstance(length, bool) or not hasattr(length, "__index__"):
        raise ArgumentTypeError(f"{name}: window_length is an int, not {length!r:.60}")
    length = int(length)
    if length < 0:
        raise ArgumentError(f"{name}: window_length is {length}, it must not be negative")
    if dtype.category != dtypes.FLOATING:
        raise DTypeError(f"{name} makes floating point tensors, not {dtype.name} ones")
    if length < 2:
        values = np.ones(length)
    else:
        values = formula(np.arange(length, dtype=np.float64), length if periodic else max(length - 1, 1))
    return upload(values.astype(NUMPY_DTYPES[dtype]), dtype, device, requires_grad)


def cosines(*weights: float) -> Formula:
    """A sum of cosines with alternating signs."""

    def formula(at: Any, span: float) -> Any:
        angle = at * (2 * np.pi / span)
        return sum((-1) ** i * w * np.cos(i * angle) for i, w in enumerate(weights))

    return formula


def triangle(at: Any, span: float) -> Any:
    """From 0 up to 1 and down again."""
    return 1 - np.abs(2 * at / span - 1)


def kaiser(beta: float) -> Formula:
    """The modified Bessel function of order 0 of half an ellipse, of height ``beta``."""

    def formula(at: Any, span: float) -> Any:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * at / span - 1) ** 2, 0))) / np.i0(beta)

    return formula


@takes_options
def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Hann's window, ``0.5 - 0.5 * cos(2 * pi * k / n)``; with ``periodic=False`` n is one less than the length."""
    return _window("hann_window", window_length, periodic, cosines(0.5, 0.5), options)


@takes_options
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **options: Any
) -> Tensor:
    """Hamming's window, ``alpha - beta * cos(2 * pi * k / n)``."""
    return _window("hamming_window", window_length, periodic, cosines(alpha, beta), options)


@takes_options
def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Blackman's window, ``0.42 - 0.5 * cos(2 * pi * k / n) + 0.08 * cos(4 * pi * k / n)``."""
    return _window("blackman_window", window_length, periodic, cosines(0.42, 0.5, 0.08), options)


@takes_options
def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Tensor:
    """Bartlett's window, a triangle that begins at 0."""
    return _window("bartlett_window", window_length, periodic, triangle, options)


@takes_options
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any) -> Tensor:
    """Kaiser's window, made of the modified Bessel function of order 0."""
    return _window("kaiser_window", window_length, periodic, kaiser(beta), options)


for _function in (hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window):
    offer(_function, method=False)
