"""The state of autocast, one per thread, and the casts that it puts before an operation.

While it is off for all devices, ``MODES.casts`` is None and an operation learns so from one look.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from gradwire_protocol.autocast import Precision
from gradwire_protocol.dtypes import DType, bfloat16, float16, float32, float64
from gradwire_protocol.errors import ArgumentError

from ..context.modes import MODES
from ..tensor.tensor import Tensor
from .dispatch import call

DEFAULTS: Final = {"cuda": float16, "cpu": bfloat16}
_ELSEWHERE: Final = {
    "mps": float16, "xpu": float16, "privateuseone": float16, "ipu": float16,
    "mtia": float16, "hpu": bfloat16, "xla": bfloat16, "maia": bfloat16,
}  # fmt: skip
"""Devices that PyTorch has autocast for and the server is not: it is off on them, and cannot be switched on."""


class _State(threading.local):
    def __init__(self) -> None:
        self.dtypes: dict[str, DType] = dict(DEFAULTS)
        self.enabled: dict[str, bool] = dict.fromkeys(DEFAULTS, False)
        self.nesting = 0
        self.caching = True
        self.cache: dict[tuple[int, DType, int], tuple[Tensor, Any]] = {}


STATE: Final = _State()


def kind_of(device_type: str) -> str:
    """A kind of device that autocast knows.

    Raises:
        ArgumentError: for any other.
    """
    kind = str(device_type).partition(":")[0]
    if kind not in DEFAULTS:
        raise ArgumentError(f"autocast knows {' and '.join(DEFAULTS)}, not {device_type!r}")
    return kind


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether operations on this kind of device are cast in this thread; on the GPU where none is named."""
    return device_type not in _ELSEWHERE and STATE.enabled[kind_of(device_type or "cuda")]


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Cast operations on this kind of device (on the GPU where only a bool is given), or stop to."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if device_type in _ELSEWHERE and not enabled:
        return
    STATE.enabled[kind_of(device_type)] = bool(enabled)
    MODES.casts = before_op if any(STATE.enabled.values()) else None


def get_autocast_dtype(device_type: str) -> DType:
    """The lower precision on this kind of device."""
    return _ELSEWHERE.get(device_type) or STATE.dtypes[kind_of(device_type)]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Choose the lower precision on this kind of device."""
    STATE.dtypes[kind_of(device_type)] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether a parameter is cast once within an autocast region, rather than at each use."""
    return STATE.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Cast a parameter once within a region, or at each use."""
    STATE.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the casts of parameters."""
    STATE.cache.clear()


def autocast_increment_nesting() -> int:
    """Enter one more region; returns how many are open."""
    STATE.nesting += 1
    return STATE.nesting


def autocast_decrement_nesting() -> int:
    """Leave a region; returns how many are open."""
    STATE.nesting -= 1
    return STATE.nesting


class AsNow:
    """A ``with`` inside of which autocast is as it was when this was made: what is run a second time runs the same."""

    def __init__(self) -> None:
        self._state = self._taken()
        self._before: list[Any] = []

    @staticmethod
    def _taken() -> tuple[dict[str, bool], dict[str, DType], bool]:
        return dict(STATE.enabled), dict(STATE.dtypes), STATE.caching

    @staticmethod
    def _set(state: tuple[dict[str, bool], dict[str, DType], bool]) -> None:
        enabled, dtypes, STATE.caching = state
        STATE.enabled, STATE.dtypes = dict(enabled), dict(dtypes)
        MODES.casts = before_op if any(enabled.values()) else None

    def __enter__(self) -> None:
        self._before.append(self._taken())
        self._set(self._state)

    def __exit__(self, *_: object) -> None:
        self._set(self._before.pop())


def _eligible(value: Any, kind: str) -> bool:
    if not isinstance(value, Tensor):
        return False
    described = value._form
    return described.dtype.is_floating_point and described.dtype is not float64 and described.device.startswith(kind)


def _cast(tensor: Any, dtype: DType) -> Any:
    if tensor._form.dtype is dtype:
        return tensor
    state = STATE
    # A checkpointed stretch makes the same records when it is run again, whatever the cache holds then.
    keep = (
        state.caching and state.nesting and dtype is not float32 and tensor._form.dtype is float32
        and tensor._requires and tensor._base_tensor is None and tensor.is_leaf and MODES.region is None
    )  # fmt: skip
    if not keep:
        return call("to", tensor, dtype)
    # What was cast without history does not serve where there must be one.
    key = (id(tensor), dtype, MODES.flags)
    found = state.cache.get(key)
    if found is None:
        found = state.cache[key] = (tensor, call("to", tensor, dtype))
    return found[1]


def _tensors(values: list[Any], places: tuple[int, ...]) -> list[Any]:
    found: list[Any] = []
    for i in places:
        value = values[i]
        if isinstance(value, (list, tuple)):
            found.extend(value)
        else:
            found.append(value)
    return found


def before_op(entry: Any, values: list[Any]) -> list[Any]:
    """The values of an operation, cast as autocast wants them."""
    first = next((t for t in _tensors(values, entry.tensors) if isinstance(t, Tensor)), None)
    if first is None:
        return values
    kind = first._form.device.partition(":")[0]
    if not STATE.enabled[kind]:
        return values
    precision: Precision = getattr(entry.op.autocast, kind)
    if precision is Precision.GIVEN:
        return values
    if precision is Precision.FIRST:
        return _as_first(entry, values)
    if precision is Precision.REFUSED:
        raise ArgumentError(
            f"{entry.op.name} is not safe under autocast, its logarithm overflows: use "
            "binary_cross_entropy_with_logits, or leave autocast around it"
        )
    wanted = [t for t in _tensors(values, entry.tensors) if _eligible(t, kind)]
    if not wanted:
        return values
    if precision is Precision.LOWER:
        dtype = STATE.dtypes[kind]
    elif precision is Precision.FLOAT32:
        dtype = float32
    else:
        found = {t._form.dtype for t in wanted}
        dtype = float32 if len(found) > 1 else found.pop()
    values = list(values)
    for i in entry.tensors:
        value = values[i]
        if isinstance(value, (list, tuple)):
            values[i] = [_cast(v, dtype) if _eligible(v, kind) else v for v in value]
        elif _eligible(value, kind):
            values[i] = _cast(value, dtype)
    return values


def _as_first(entry: Any, values: list[Any]) -> list[Any]:
    """A normalization that runs in what it is given takes its weights in the same precision."""
    dtype = values[0]._form.dtype
    if not dtype.is_low_precision:
        return values
    values = list(values)
    for i in entry.tensors[1:]:
        if isinstance(values[i], Tensor) and values[i]._form.dtype is float32:
            values[i] = _cast(values[i], dtype)
    return values


# The names that programs written for older PyTorch use


def is_autocast_cpu_enabled() -> bool:
    """``is_autocast_enabled("cpu")``."""
    return STATE.enabled["cpu"]


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """``set_autocast_enabled("cpu", enabled)``."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> DType:
    """``get_autocast_dtype("cpu")``."""
    return STATE.dtypes["cpu"]


def set_autocast_cpu_dtype(dtype: DType) -> None:
    """``set_autocast_dtype("cpu", dtype)``."""
    STATE.dtypes["cpu"] = dtype


def get_autocast_gpu_dtype() -> DType:
    """``get_autocast_dtype("cuda")``."""
    return STATE.dtypes["cuda"]


def set_autocast_gpu_dtype(dtype: DType) -> None:
    """``set_autocast_dtype("cuda", dtype)``."""
    STATE.dtypes["cuda"] = dtype
