"""Switches of PyTorch's that programs set before they begin, each with as much meaning as it has here."""

from __future__ import annotations

import os
import warnings
from typing import Any, Final

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from ..context.default_device import PLACES
from ..context.size import device as Device
from ..session.current_session import current_session, get_matmul_precision, set_default_dtype, set_matmul_precision
from .tensor_types import by_name

__all__ = [
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip


class _State:
    deterministic = False
    warn_only = False
    threads: int | None = None
    between: int | None = None
    warn_always = False


_PRECISIONS: Final = ("highest", "high", "medium")
_MODES: Final = {"default": (False, False), "warn": (True, True), "error": (True, False)}


# Where new tensors live


def set_default_device(device: Device | str | int | None) -> None:
    """Where new tensors of this thread live unless they are told otherwise; None for the session's device.

    That the server has the device is checked when a tensor is made.
    """
    PLACES.default = None if device is None else (device if isinstance(device, Device) else Device(device)).wire


def get_default_device() -> Device:
    """Where new tensors live. Opens the session if it decides and none is open."""
    if PLACES.current is not None:
        return Device(PLACES.current)
    return Device(current_session().device)


def set_default_tensor_type(t: Any) -> None:
    """The dtype of new tensors, and their device, by one of PyTorch's old types: ``torch.DoubleTensor`` or its name.

    Raises:
        ArgumentTypeError: for what is no floating point type.
    """
    kind = by_name(t) if isinstance(t, str) else t
    dtype = getattr(kind, "dtype", None)
    if dtype is None or not dtype.is_floating_point:
        raise ArgumentTypeError(f"a floating point tensor type is expected, not {t!r:.60}")
    warnings.warn("set_default_tensor_type is PyTorch's former set_default_dtype: use that", UserWarning, stacklevel=2)
    set_default_dtype(dtype)


# How it is computed


def set_float32_matmul_precision(precision: str) -> None:
    """How coarse products of float32 matrices may be on a GPU of the server: 'high' and 'medium' let it round their
    operands to TF32, 10 bits behind the point, and are several times faster. On the CPU they are always float32.

    Raises:
        ArgumentError: for anything but 'highest', 'high' and 'medium'.
    """
    if precision not in _PRECISIONS:
        raise ArgumentError(f"the precision is one of {', '.join(_PRECISIONS)}, not {precision!r}")
    set_matmul_precision(precision)


def get_float32_matmul_precision() -> str:
    """What :func:`set_float32_matmul_precision` was given last."""
    return get_matmul_precision()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for the same result each time. On the server's CPU it is so anyway.

    On a GPU, sums that scatter into the same place (``index_add``, ``embedding`` backward) are in no fixed order, and
    there is no other algorithm: asking for one there gets a warning.

    Raises:
        ArgumentTypeError: for anything but bools.
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise ArgumentTypeError(f"use_deterministic_algorithms: {name} is a bool, not {value!r:.60}")
    _State.deterministic, _State.warn_only = mode, warn_only
    if mode and PLACES.current not in (None, "cpu"):
        warnings.warn(
            "on a GPU of the server, sums that scatter into one place are not deterministic; everything else is",
            UserWarning,
            stacklevel=2,
        )


def are_deterministic_algorithms_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` asked for it."""
    return _State.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was asked for with ``warn_only``."""
    return _State.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """:func:`use_deterministic_algorithms` by a name or number: default (0), warn (1), error (2).

    Raises:
        ArgumentError: for any other.
    """
    names = list(_MODES)
    if isinstance(debug_mode, int) and 0 <= debug_mode < len(names):
        debug_mode = names[debug_mode]
    if debug_mode not in _MODES:
        raise ArgumentError(f"the mode is one of {', '.join(names)} or 0, 1, 2, not {debug_mode!r}")
    _State.deterministic, _State.warn_only = _MODES[str(debug_mode)]


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as in :func:`set_deterministic_debug_mode`."""
    return list(_MODES.values()).index((_State.deterministic, _State.deterministic and _State.warn_only))


def _checked_count(name: str, count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise ArgumentError(f"{name} takes an int, not {type(count).__name__}")
    if count < 1:
        raise ArgumentError(f"{name} takes a positive number, not {count}")
    if count >= 1 << 31:
        raise ArgumentValueError(f"{name}: {count} is outside of 1 to 2**31 - 1")
    return count


def set_num_threads(num: int) -> None:
    """Accepted: how many threads compute is the server's affair (OMP_NUM_THREADS where it is started)."""
    _State.threads = _checked_count("set_num_threads", num)


def get_num_threads() -> int:
    """What :func:`set_num_threads` was given, or the number of this machine's cores."""
    return _State.threads or os.cpu_count() or 1


def set_num_interop_threads(num: int) -> None:
    """Accepted: the operations of a session are done one after another."""
    _State.between = _checked_count("set_num_interop_threads", num)


def get_num_interop_threads() -> int:
    """What :func:`set_num_interop_threads` was given, or 1."""
    return _State.between or 1


def set_flush_denormal(mode: bool) -> bool:
    """Whether tiny numbers could be made zero for speed: they are kept. Returns False where that was asked for, as
    PyTorch does on machines that cannot."""
    return not mode


def set_warn_always(mode: bool) -> None:
    """Accepted: gradwire warns each time, and Python's filters decide what is shown."""
    _State.warn_always = bool(mode)


def is_warn_always_enabled() -> bool:
    """What :func:`set_warn_always` was given."""
    return _State.warn_always
