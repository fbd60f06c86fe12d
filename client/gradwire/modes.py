"""Whether gradients are recorded: ``no_grad`` and its kin, one setting per thread."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from gradwire_protocol.ops.control import ANOMALY_MODE, GRAD_MODE, INFERENCE_MODE

Function = TypeVar("Function", bound=Callable[..., Any])


class _Modes(threading.local):
    flags = GRAD_MODE


MODES = _Modes()


def is_grad_enabled() -> bool:
    """Whether operations of this thread are recorded for backward."""
    return MODES.flags & (GRAD_MODE | INFERENCE_MODE) == GRAD_MODE


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

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(GRAD_MODE, 0)


class enable_grad(_Mode):
    """Record operations, also inside ``no_grad``."""

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

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

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(GRAD_MODE if mode else INFERENCE_MODE, INFERENCE_MODE if mode else GRAD_MODE)


class set_detect_anomaly(_Mode):
    """Look for NaN in gradients during backward, from this call on or for the extent of a ``with``."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(ANOMALY_MODE, ANOMALY_MODE if mode and check_nan else 0)
        self._outside = MODES.flags
        MODES.flags = MODES.flags & ~self._clear | self._add

    def __enter__(self) -> None:
        self._before.append(self._outside)
        MODES.flags = MODES.flags & ~self._clear | self._add


class detect_anomaly(_Mode):
    """Look for NaN in gradients during backward."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(ANOMALY_MODE, ANOMALY_MODE if check_nan else 0)
