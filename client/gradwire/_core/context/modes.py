"""Whether gradients are recorded: ``no_grad`` and its kin, one setting per thread."""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast, overload

from gradwire_protocol.ops.control import ANOMALY_MODE, GRAD_MODE, INFERENCE_MODE

Function = TypeVar("Function", bound=Callable[..., Any])


_SPECIAL: Final = -1
_THREADS: Final = count(1).__next__


class _Modes(threading.local):
    """``key`` is one number for the thread and its flags, or below 0 while an operation is more than its record: while
    it is mapped, cast, packed, watched, repeated, or left to a class of the program's. So one comparison tells whether
    the fast path may be taken."""

    flags = GRAD_MODE
    key: int
    thread: int
    maps: tuple[Any, ...] = ()  # the vmaps being run, the outermost first
    anomaly = (False, True)  # whether anomalies are detected, and whether NaN is one
    region: Any = None  # the checkpointed stretch being run
    packing: tuple[Any, ...] = ()  # the hooks around what operations save, the innermost last
    mutations: Any = None  # what is copied before it is changed in place
    casts: Any = None  # what autocast puts before operations, while it is on
    no_packing: str | None = None  # why such hooks are not allowed here
    scopes: tuple[Any, ...] = ()  # the function transforms being run, the innermost last
    capture: Any = None  # the call that is being recorded for replays
    classes = False  # whether there are tensors of the program's own classes, which ops may be left to; in all threads
    functions: tuple[Any, ...] = ()  # the modes that ops are left to, the innermost last
    inference_leaves = False  # whether there are leaves that were made in inference mode; in all threads
    inference_gradients = False  # whether there are gradients that were made in inference mode; in all threads
    without_classes = False  # whether ops are not left to classes just now
    multithreading = True  # whether the program lets backward use several threads

    def __init__(self) -> None:
        super().__setattr__("thread", _THREADS() << 1)
        super().__setattr__("key", _SPECIAL if self.classes or self.inference_leaves else self.thread | GRAD_MODE)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        special = (
            self.flags & ~GRAD_MODE or self.maps or self.packing or self.casts is not None
            or self.mutations is not None or self.region is not None or self.capture is not None
            or self.classes or self.functions or self.inference_leaves
        )  # fmt: skip
        super().__setattr__("key", _SPECIAL if special else self.thread | self.flags)

    def expect_inference_leaves(self) -> None:
        """From now on, look at each op for tensors that were made in inference mode and require grad."""
        type(self).inference_leaves = True
        self.flags = self.flags

    def expect_inference_gradients(self) -> None:
        """From now on, look at what gradients are added to."""
        type(self).inference_gradients = True

    def leave_to_classes(self) -> None:
        """From now on, look at each op for tensors of the program's own classes."""
        type(self).classes = True
        self.flags = self.flags


MODES = _Modes()


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded for backward."""
    return bool(MODES.flags & GRAD_MODE)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return bool(MODES.flags & INFERENCE_MODE)


class _Mode:
    """A context manager and decorator that changes the flags for its extent. Works on generators too."""

    def __init__(self, clear: int, add: int) -> None:
        self._clear = clear
        self._add = add
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(MODES.flags)
        MODES.flags = MODES.flags & ~self._clear | self._add

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        MODES.flags = self._before.pop()

    def clone(self) -> _Mode:
        return _Mode(self._clear, self._add)

    def __call__(self, function: Function) -> Function:
        if inspect.isclass(function):
            warnings.warn(
                f"a mode decorates functions: around the class {function.__name__} it holds for __init__ alone",
                FutureWarning,
                stacklevel=2,
            )
            setattr(function, "__init__", self(getattr(function, "__init__")))  # noqa: B009, B010
            return function
        if inspect.isgeneratorfunction(function):
            return cast(Function, self._wrap_generator(function))

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return cast(Function, inside)

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, argument = generator.send, None
            while True:
                try:
                    with self.clone():
                        item = step(argument)
                except StopIteration as stop:
                    return stop.value
                try:
                    argument = yield item
                    step = generator.send
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    step, argument = generator.throw, error

        return inside


class no_grad(_Mode):
    """Do not record operations. A context manager, and a decorator with or without parentheses."""

    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: Function) -> Function: ...  # type: ignore[misc]  # as a decorator

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(GRAD_MODE, 0)


class enable_grad(_Mode):
    """Record operations, also inside ``no_grad``."""

    @overload
    def __new__(cls, orig_func: None = None) -> Self: ...
    @overload
    def __new__(cls, orig_func: Function) -> Function: ...  # type: ignore[misc]  # as a decorator

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)

    def __init__(self) -> None:
        super().__init__(0, GRAD_MODE)


class set_grad_enabled(_Mode):
    """Record operations or not, from this call on; as a context manager, until its end."""

    def __init__(self, mode: bool) -> None:
        super().__init__(GRAD_MODE, GRAD_MODE if mode else 0)
        self._outside = MODES.flags
        MODES.flags = MODES.flags & ~self._clear | self._add

    def __enter__(self) -> None:
        self._before.append(self._outside)
        MODES.flags = MODES.flags & ~self._clear | self._add

    def __call__(self, function: Function) -> Function:
        MODES.flags = self._outside  # as a decorator it changes nothing now
        return super().__call__(function)


class inference_mode(_Mode):
    """Like ``no_grad``, and what is made inside can never take part in backward."""

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: Function) -> Function: ...  # type: ignore[misc]  # as a decorator

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(GRAD_MODE if mode else INFERENCE_MODE, INFERENCE_MODE if mode else GRAD_MODE)


class set_multithreading_enabled(_Mode):
    """Accepted for PyTorch's sake, from this call on or for a ``with``: how backward runs is the server's affair."""

    def __init__(self, mode: bool) -> None:
        super().__init__(0, 0)
        self.mode: bool = mode
        self._was, MODES.multithreading = MODES.multithreading, mode

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        MODES.multithreading = self._was


def is_multithreading_enabled() -> bool:
    """What :class:`set_multithreading_enabled` was told last."""
    return MODES.multithreading


class _AnomalyMode(_Mode):
    def __init__(self, mode: bool, check_nan: bool) -> None:
        super().__init__(ANOMALY_MODE, ANOMALY_MODE if mode and check_nan else 0)
        self._wanted = (mode, check_nan or not mode)
        self._replaced: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        super().__enter__()
        self._replaced.append(MODES.anomaly)
        MODES.anomaly = self._wanted

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        MODES.anomaly = self._replaced.pop()

    def clone(self) -> _Mode:
        return _AnomalyMode(*self._wanted)


class set_detect_anomaly(_AnomalyMode):
    """Detect anomalies or not, from this call on; as a context manager, until its end. See :class:`detect_anomaly`."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode, check_nan)
        self._outside = MODES.flags, MODES.anomaly
        super().__enter__()

    def __enter__(self) -> None:
        """It is set already."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        MODES.flags, MODES.anomaly = self._outside

    def __call__(self, function: Function) -> Function:
        MODES.flags, MODES.anomaly = self._outside  # as a decorator it changes nothing now
        return super().__call__(function)


class detect_anomaly(_AnomalyMode):
    """Look for NaN in every gradient that a backward computes, and raise an error that names the operation and the
    line of the program it comes from. Slow: every gradient is looked at.

    With ``check_nan=False`` nothing is looked for. A derivative that fails names its line in any case.
    """

    def __init__(self, check_nan: bool = True) -> None:
        warnings.warn(
            "anomaly detection is on: every gradient is searched for NaN, which makes backward slower. Use it to debug",
            UserWarning,
            stacklevel=2,
        )
        super().__init__(True, check_nan)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Detect anomalies or not, in this thread from now on. See :class:`detect_anomaly`."""
    set_detect_anomaly(enabled, check_nan)


def is_anomaly_enabled() -> bool:
    """Whether this thread detects anomalies in backward."""
    return MODES.anomaly[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Whether detecting anomalies looks for NaN."""
    return MODES.anomaly[1]
