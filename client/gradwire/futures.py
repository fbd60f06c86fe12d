"""``torch.futures``: values that another thread gives later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from gradwire_protocol.errors import GraphError

from ._core.context.argument_types import Device

Value = TypeVar("Value")
Next = TypeVar("Next")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[Value]):
    """A value that some thread sets, once, and that others wait for.

    Args:
        devices: as in PyTorch; without effect, since a tensor's values are waited for where they are read.
    """

    def __init__(self, *, devices: Sequence[Device] | None = None) -> None:
        self._set = threading.Condition()
        self._done = False
        self._value: Value | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[Value]], object]] = []

    def done(self) -> bool:
        """Whether it has a value or an error."""
        return self._done

    def wait(self) -> Value:
        """Wait for the value. Raises the error, if that was set instead."""
        with self._set:
            while not self._done:
                self._set.wait()
        return self.value()

    def value(self) -> Value:
        """The value of a future that is done. Raises its error, if that was set instead.

        Raises:
            RuntimeError: when it is not done.
        """
        if not self._done:
            raise GraphError("Future.value: the future is not done; wait() waits for it")
        if self._error is not None:
            raise self._error
        return cast("Value", self._value)

    def then(self, callback: Callable[[Future[Value]], Next]) -> Future[Next]:
        """A future of what ``callback`` makes of this one, called when this one is done.

        If the callback raises, that future's ``wait`` raises a ``RuntimeError`` with the error as its cause.
        """
        made: Future[Next] = Future()

        def follow(done: Future[Value]) -> None:
            try:
                value = callback(done)
            except Exception as error:
                failed = GraphError(f"Future.then: the callback raised {type(error).__name__}: {error}")
                failed.__cause__ = error
                made._finish(None, failed)
            else:
                made._finish(value, None)

        self.add_done_callback(follow)
        return made

    def add_done_callback(self, callback: Callable[[Future[Value]], object]) -> None:
        """Call ``callback`` with this future when it is done: now if it is, else in the thread that sets it."""
        with self._set:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: Value) -> None:
        """Give it its value.

        Raises:
            RuntimeError: when it has one, or an error.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give it an error, which ``wait`` raises.

        Raises:
            RuntimeError: when it has a value or an error.
        """
        assert isinstance(result, Exception), f"{result!r:.60} is of type {type(result).__name__}, not an Exception."
        self._finish(None, result)

    def _finish(self, value: Value | None, error: BaseException | None) -> None:
        with self._set:
            if self._done:
                raise GraphError("Future: a result or an exception is set already, and is set once")
            self._value, self._error, self._done = value, error, True
            self._set.notify_all()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of all of them, done when they all are; with the first error among them, in their order."""
    made: Future[list[Future[Any]]] = Future()
    left = len(futures)
    counting = threading.Lock()

    def finish() -> None:
        errors = [future._error for future in futures if future._error is not None]
        made._finish(futures, errors[0] if errors else None)

    def count(_: Future[Any]) -> None:
        nonlocal left
        with counting:
            left -= 1
            last = left == 0
        if last:
            finish()

    if not futures:
        finish()
    for future in futures:
        future.add_done_callback(count)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all of them. Returns their values, or raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
