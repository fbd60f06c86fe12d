"""``autocast``: operations in the precision that suits each, within a region. And what custom Functions need there."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, overload

import numpy as np

from gradwire_protocol.dtypes import DType, bfloat16, float16, float64
from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError

from .._core.context.modes import Function
from .._core.dispatch import autocasting as casting
from .._core.dispatch.autocasting import STATE, kind_of
from .._core.surface.server_devices import gpu_count
from .._core.tensor.tensor import Tensor

_OTHER_KINDS: Final = ("hpu", "ipu", "maia", "meta", "mps", "mtia", "xla", "xpu")


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for this kind of device.

    Raises:
        ArgumentError: for a word that is no kind of device of PyTorch's.
    """
    if device_type in _OTHER_KINDS:
        return False
    return bool(kind_of(device_type))


class autocast:
    """Within the region, matrix products and convolutions run in a lower precision, sums and losses in float32.

    A context manager and a decorator. It holds for this thread, for tensors on this kind of device, and not in
    backward, which runs each operation in the precision that its forward had.

    Args:
        device_type: ``"cuda"`` or ``"cpu"``.
        dtype: the lower precision, float16 on the GPU and bfloat16 on the CPU unless given.
        enabled: whether it casts; with False, a region inside another that does not.
        cache_enabled: cast each parameter once within the region.

    Raises:
        ArgumentValueError: for a device type that is not a string.
        ArgumentError: for one that autocast does not know.
    """

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ArgumentValueError(f"device_type is 'cuda' or 'cpu', not a {type(device_type).__name__}")
        self.device: str = kind_of(device_type)
        self.fast_dtype: DType = casting.get_autocast_dtype(self.device) if dtype is None else dtype
        if enabled and self.device == "cuda" and not gpu_count():
            warnings.warn("the server has no GPU: autocast('cuda') changes nothing", UserWarning, stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in (bfloat16, float16):
            warnings.warn(
                f"autocast computes in bfloat16 or float16, not in {self.fast_dtype.name}: it changes nothing",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._cache_enabled = STATE.caching if cache_enabled is None else cache_enabled
        self._before: list[tuple[bool, DType, bool]] = []

    def __enter__(self) -> autocast:
        kind = self.device
        self._before.append((STATE.enabled[kind], STATE.dtypes[kind], STATE.caching))
        casting.set_autocast_enabled(kind, self._enabled)
        STATE.dtypes[kind] = self.fast_dtype
        STATE.caching = self._cache_enabled
        casting.autocast_increment_nesting()
        return self

    def __exit__(self, *_: object) -> None:
        if casting.autocast_decrement_nesting() == 0:
            casting.clear_autocast_cache()
        enabled, STATE.dtypes[self.device], STATE.caching = self._before.pop()
        casting.set_autocast_enabled(self.device, enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise ArgumentTypeError(
                f"autocast decorates functions, not {type(function).__name__}; around lines it is a 'with'"
            )

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside


def _converted(value: Any, kind: str, dtype: DType) -> Any:
    """A value with its floating point tensors (but float64) in another dtype, also within containers."""
    if isinstance(value, Tensor):
        wanted = value.is_floating_point() and value.dtype is not float64 and value.device.type == kind
        return value.to(dtype) if wanted else value
    if isinstance(value, Mapping):
        return {_converted(k, kind, dtype): _converted(v, kind, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, (str, bytes, np.ndarray)):
        return type(value)(_converted(v, kind, dtype) for v in value)
    return value


@overload
def custom_fwd(
    fwd: None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Callable[[Function], Function]: ...
@overload
def custom_fwd(fwd: Function, *, device_type: str, cast_inputs: DType | None = None) -> Function: ...


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None) -> Any:
    """Decorate the ``forward`` of a custom Function, so that its ``backward`` finds the same autocast state.

    Args:
        cast_inputs: within autocast, give ``forward`` its tensors in this dtype, and run it without autocast.
    """
    if not isinstance(device_type, str):
        raise ArgumentValueError(f"device_type is 'cuda' or 'cpu', not a {type(device_type).__name__}")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    kind = kind_of(device_type)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        context, enabled = args[0], STATE.enabled[kind]
        context._dtype = STATE.dtypes[kind]
        context._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(kind, enabled=False):
            return fwd(*_converted(args, kind, cast_inputs), **_converted(kwargs, kind, cast_inputs))

    return forward


@overload
def custom_bwd(bwd: None = None, *, device_type: str) -> Callable[[Function], Function]: ...
@overload
def custom_bwd(bwd: Function, *, device_type: str) -> Function: ...


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate the ``backward`` of a custom Function: it runs with the autocast state of its ``forward``."""
    if not isinstance(device_type, str):
        raise ArgumentValueError(f"device_type is 'cuda' or 'cpu', not a {type(device_type).__name__}")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return bwd(*args, **kwargs)

    return backward


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    """Tensors of floating point on a kind of device in a dtype, in nested containers, too. float64 stays."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype is not float64
        return value.to(dtype) if fits else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(v, device_type, dtype) for v in value])
    return value


def _enter_autocast(*vals: Any) -> autocast:
    """Enter :class:`autocast`, and return it for :func:`_exit_autocast`."""
    mode = autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: autocast) -> None:
    mode.__exit__(None, None, None)


def autocast_decorator(autocast_instance: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs inside of :class:`autocast`."""

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return inside
