"""Programs that are interrupted at any moment, and the conditions that must hold afterwards.

:func:`interrupted_at` raises at the n-th point at which the interpreter checks for signals, so that a test can try
all of them.
"""

from __future__ import annotations

import dis
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import gradwire
import gradwire_protocol

_OURS = tuple(str(Path(each.__file__).parent) + "/" for each in (gradwire, gradwire_protocol))


_another = itertools.count(7)
"""Extents that nothing had before, so that a call has a form that is not known."""


class Interrupted(BaseException):
    """Stands for Ctrl-C."""


class _Watch:
    """Counts the places at which CPython looks for signals in gradwire's modules, and raises at one of them."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.count = 0

    def enter(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_OURS):
            return None
        frame.f_trace_opcodes = True
        looked = -1

        def instruction(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal looked
            if event == "opcode":
                at = frame.f_lasti
                opcode = code.co_code[at]
                if opcode == _RESUME or (looked >= 0 and _handler(code, looked) == _handler(code, at)):
                    self.count += 1
                    if self.count == self.number:
                        raise Interrupted
                looked = at if opcode in _LOOKING else -1
            return instruction

        return instruction

    def run(self, statement: Callable[[], Any]) -> None:
        before = sys.gettrace()
        sys.settrace(self.enter)
        try:
            statement()
        finally:
            sys.settrace(before)


_RESUME = dis.opmap["RESUME"]
_LOOKING = {code for name, code in dis.opmap.items() if name.startswith(("CALL", "JUMP_BACKWARD"))}
"""Behind these instructions, and at the beginning of a function, CPython looks whether a signal has come. Nowhere else:
a lock that ``with`` takes is let go of."""


@lru_cache(None)
def _handler(code: CodeType, at: int) -> int:
    """Where an exception of this instruction goes. What raises behind a call counts as the call itself."""
    for start, end, target, _, _ in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        if start <= at < end:
            return int(target)
    return -1


def interrupted_at(number: int, statement: Callable[[], Any]) -> bool:
    """Run a statement, with an exception at the n-th place where one may come. Whether it came that far."""
    watch = _Watch(number)
    try:
        watch.run(statement)
    except Interrupted:
        return True
    return watch.count >= number  # where it was swallowed: nothing leaves a destructor


@dataclass(frozen=True)
class Program:
    """A statement to be interrupted.

    Attributes:
        prepare: makes what the statement needs.
        statement: is given that.
        check: what must hold then, besides that the session goes on; is given what was prepared.
    """

    prepare: Callable[[], Any]
    statement: Callable[[Any], Any]
    check: Callable[[Any], Any] = lambda _: None


def goes_on(session: Any) -> None:
    """The session computes what it should: values, a write in place, gradients; and no lock is held."""
    gradwire.set_grad_enabled(True)  # a mode whose end was interrupted stays on, as in PyTorch
    free: list[bool] = []

    def look() -> None:
        for lock in (session.lock, session.link.lock):
            free.append(lock.acquire(timeout=5))
            if free[-1]:
                lock.release()

    other = threading.Thread(target=look)
    other.start()
    other.join()
    assert free == [True, True], "an interrupt left a lock taken"
    x = gradwire.tensor([1.0, 2.0])
    w = gradwire.tensor([3.0, 4.0], requires_grad=True)
    y = (x * 3 + w) * w
    x.add_(1)
    y.sum().backward()
    assert (y * 1).tolist() == [18.0, 40.0]
    assert x.tolist() == [2.0, 3.0]
    assert w.grad.tolist() == [9.0, 14.0]


def _leaf() -> Any:
    return gradwire.tensor([1.0, 2.0, 3.0], requires_grad=True)


def _warm(make: Callable[[], Any], statement: Callable[[Any], Any]) -> Callable[[], Any]:
    """Prepares what was done before, so that the statement takes the fast path."""

    def prepare() -> Any:
        for _ in range(3):
            statement(make())
        return make()

    return prepare


def _unchanged(x: Any) -> None:
    assert x.tolist() == [1.0, 2.0, 3.0]


def _written(x: Any) -> None:
    """The write has happened or not, and what is written next is written to that."""
    values = x.tolist()
    assert values in ([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])
    x.add_(1)
    assert x.tolist() == [value + 1 for value in values]


def _written_with_history(pair: Any) -> None:
    x, y = pair
    values = y.tolist()
    assert values in ([1.0, 2.0, 3.0], [1.0, 4.0, 9.0])
    y.sum().backward()
    assert x.grad.tolist() == ([1.0, 1.0, 1.0] if values[1] == 2 else [2.0, 4.0, 6.0])


def _view_written(pair: Any) -> None:
    x, y, view = pair
    values = y.tolist()
    assert values in ([2.0, 4.0, 6.0], [8.0, 16.0, 6.0])
    assert view.tolist() == values[:2]
    y.sum().backward()
    assert x.grad.tolist() == ([2.0, 2.0, 2.0] if values[0] == 2 else [8.0, 8.0, 2.0])


def _stepped(pair: Any) -> None:
    w, optimizer = pair
    before = w.tolist()
    assert before in ([1.0, 2.0, 3.0], [0.5, 1.0, 1.5])
    optimizer.zero_grad()
    (w * 2).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(w.tolist(), np.array(before) - 0.5)


def _with_gradient() -> Any:
    w = _leaf()
    optimizer = gradwire.optim.SGD([w], lr=0.25)
    (w * w).sum().backward()
    return w, optimizer


def _gradient(x: Any) -> None:
    """The gradient was added once or not at all, and what comes next is added to that, or begins anew."""
    found = None if x.grad is None else x.grad.tolist()
    assert found in (None, [2.0, 4.0, 6.0])
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def _lost(_: Any) -> None:
    """Tensors that are gone while frames are cut."""
    for _ in range(3):
        gradwire.ones(3).exp()


def _dropping(session: Any) -> None:
    gradwire.ones(3).exp()
    session.flush()


def _compiled() -> Any:
    step = gradwire.compile(lambda x: (x * 2).sum())
    x = gradwire.ones(3)
    for _ in range(4):
        step(x)
    return step, x


def programs(session: Any) -> dict[str, Program]:
    """What is interrupted, by name."""

    def squared(x: Any) -> Any:
        return (x * x).sum()

    def quick(statement: Callable[[Any], Any], check: Callable[[Any], Any] = _unchanged) -> Program:
        return Program(_warm(_leaf, statement), statement, check)

    def backward() -> Any:
        x = _leaf()
        return x, squared(x)

    return {
        "an op for the first time": Program(_leaf, lambda x: x[0].expand(next(_another)), _unchanged),
        "an op": quick(lambda x: x.exp()),
        "two operands": quick(lambda x: x * x),
        "a number": quick(lambda x: x * 2),
        "a view": quick(lambda x: x[1:]),
        "several results": quick(lambda x: x.chunk(3)),
        "a list": quick(lambda x: gradwire.cat([x, x])),
        "without gradients": quick(lambda x: _under_no_grad(x)),
        "a write": Program(lambda: gradwire.tensor([1.0, 2.0, 3.0]), lambda x: x.add_(1), _written),
        "a write with history": Program(
            lambda: (x := _leaf(), x * 1), lambda pair: pair[1].mul_(pair[0]), _written_with_history
        ),
        "a write to a view": Program(_base_and_view, lambda pair: pair[2].mul_(4), _view_written),
        "backward": Program(backward, lambda pair: pair[1].backward(), lambda pair: _gradient(pair[0])),
        "backward, once more": Program(
            lambda: [squared(_leaf()).backward() for _ in range(3)] and backward(),
            lambda pair: pair[1].backward(),
            lambda pair: _gradient(pair[0]),
        ),
        "a step": Program(_with_gradient, lambda pair: pair[1].step(), _stepped),
        "an upload": Program(lambda: None, lambda _: gradwire.tensor([1.0, 2.0, 3.0])),
        "a read": Program(_leaf, lambda x: (x * 2).tolist(), _unchanged),
        "a frame is sent": Program(_leaf, lambda x: ((x * 2).exp(), session.flush()), _unchanged),
        "tensors go": Program(lambda: _lost(None), lambda _: _dropping(session)),
        "a replay": Program(_compiled, lambda pair: pair[0](pair[1]), lambda pair: _replayed(pair)),
    }


def _under_no_grad(x: Any) -> Any:
    with gradwire.no_grad():
        return x + x


def _base_and_view() -> Any:
    x = _leaf()
    y = x * 2
    return x, y, y[:2]


def _replayed(pair: Any) -> None:
    step, x = pair
    assert step(x).item() == 6
    assert x.tolist() == [1.0, 1.0, 1.0]


def length(program: Program) -> int:
    """At how many places a program may be interrupted."""
    watch, prepared = _Watch(), program.prepare()
    watch.run(lambda: program.statement(prepared))
    return watch.count


def tried(session: Any, program: Program, numbers: Iterable[int], until: float = inf) -> int:
    """Interrupt a program at each of these places, and look each time; how many there were.

    Raises:
        AssertionError: for a session that does not go on, with the place.
    """
    count = 0
    for number in numbers:
        prepared = program.prepare()
        if time.monotonic() > until or not interrupted_at(number, lambda given=prepared: program.statement(given)):  # type: ignore[misc]
            break
        count += 1
        try:
            program.check(prepared)
            goes_on(session)
        except BaseException as error:
            raise AssertionError(f"after an interrupt at place {number}: {type(error).__name__}: {error}") from error
    return count
