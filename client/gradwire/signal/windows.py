"""Windows, as ``torch.signal.windows`` names them: symmetric by default, periodic with ``sym=False``.

Each is a new tensor of ``M`` numbers in float32 or float64, computed here and uploaded. The formulas are those of
Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", Proc. IEEE 66 (1978).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from .._core.composed import windows as formulas
from .._core.context.layouts import layout as Layout
from .._core.context.layouts import strided
from .._core.session.current_session import current_session
from .._core.surface.creation import upload
from .._core.tensor.tensor import Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


class _Window:
    """The arguments that all windows share, checked; and what every formula needs."""

    def __init__(
        self, name: str, M: Any, sym: bool, dtype: DType | None, layout: Layout, device: Any, requires_grad: bool
    ) -> None:
        self.dtype = dtype or current_session().default_dtype
        self.device, self.requires_grad = device, requires_grad
        if isinstance(M, bool) or not hasattr(M, "__index__"):
            raise ArgumentTypeError(f"{name}: the window's length is an int, not {M!r:.60}")
        self.length = int(M)
        if self.length < 0:
            raise ArgumentValueError(f"{name}: the window's length is {self.length}, it must not be negative")
        if layout is not strided:
            raise ArgumentValueError(f"{name} makes strided tensors, not ones of layout {layout!r}")
        if self.dtype not in (dtypes.float32, dtypes.float64):
            raise ArgumentValueError(f"{name} makes float32 and float64 tensors, not {self.dtype.name}")
        self.periodic = not sym and self.length > 1
        self.span = max(self.length if self.periodic else self.length - 1, 1)
        """How many steps one period has."""
        self.at = np.arange(self.length, dtype=np.float64)

    def made(self, values: Any) -> Tensor:
        """The tensor; a window of one element is 1."""
        if self.length == 1:
            values = np.ones(1)
        return upload(values.astype(self.dtype.name), self.dtype, self.device, self.requires_grad)


def _options(
    dtype: DType | None = None, layout: Layout = strided, device: Any = None, requires_grad: bool = False
) -> tuple[Any, ...]:
    return dtype, layout, device, requires_grad


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """``exp(-|k - center| / tau)``; the centre may be chosen for periodic windows only.

    Raises:
        ArgumentValueError: for a ``tau`` that is not positive, or a centre of a symmetric window.
    """
    window = _Window("exponential", M, sym, *_options(**options))
    if tau <= 0:
        raise ArgumentValueError(f"exponential: tau is positive, not {tau}")
    if sym and center is not None:
        raise ArgumentValueError(f"exponential: a symmetric window has its centre in the middle, not at {center}")
    middle = window.span / 2 if center is None else center
    return window.made(np.exp(-np.abs(window.at - middle) / tau))


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a period of a sine: ``sin(pi * (k + 0.5) / M)``."""
    window = _Window("cosine", M, sym, *_options(**options))
    return window.made(np.sin((window.at + 0.5) * (math.pi / (window.span + 1))))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """A bell curve of standard deviation ``std``.

    Raises:
        ArgumentValueError: for a ``std`` that is not positive.
    """
    window = _Window("gaussian", M, sym, *_options(**options))
    if std <= 0:
        raise ArgumentValueError(f"gaussian: std is positive, not {std}")
    return window.made(np.exp(-0.5 * ((window.at - window.span / 2) / std) ** 2))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """Kaiser's window, made of the modified Bessel function of order 0; ``beta`` shapes it.

    Raises:
        ArgumentValueError: for a negative ``beta``.
    """
    window = _Window("kaiser", M, sym, *_options(**options))
    if beta < 0:
        raise ArgumentValueError(f"kaiser: beta is not negative, it is {beta}")
    return window.made(formulas.kaiser(beta)(window.at, window.span))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """``sum((-1) ** i * a[i] * cos(2 * pi * i * k / span))``.

    Raises:
        ArgumentTypeError: when the coefficients are not a sequence.
        ArgumentValueError: when there are none.
    """
    return _cosines("general_cosine", M, a, sym, options)


def _cosines(name: str, M: Any, a: Any, sym: bool, options: dict[str, Any]) -> Any:
    window = _Window(name, M, sym, *_options(**options))
    if not isinstance(a, Iterable):
        raise ArgumentTypeError(f"{name}: the coefficients are a list or a tuple, not {type(a).__name__}")
    weights = [float(w) for w in a]
    if not weights:
        raise ArgumentValueError(f"{name} needs at least one coefficient")
    return window.made(formulas.cosines(*weights)(window.at, window.span))


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """``alpha - (1 - alpha) * cos(2 * pi * k / span)``."""
    return _cosines("general_hamming", M, [alpha, 1 - alpha], sym, options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Hamming's window: :func:`general_hamming` with 0.54."""
    return _cosines("hamming", M, [0.54, 0.46], sym, options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Hann's window: :func:`general_hamming` with 0.5, a raised cosine."""
    return _cosines("hann", M, [0.5, 0.5], sym, options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Blackman's window, of three cosines."""
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Nuttall's window of four cosines, minimal in its highest side lobe."""
    return _cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Bartlett's window, a triangle with zeros at its ends."""
    window = _Window("bartlett", M, sym, *_options(**options))
    return window.made(formulas.triangle(window.at, window.span))
