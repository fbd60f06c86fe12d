"""Memory that runs out at any moment: a typed error, values that are right or poisoned, and a usable session."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.runtime.backends import Backends, NumpyBackend
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_protocol.frames import Frame, Payload, Reply


@pytest.fixture(scope="module", autouse=True)
def _a_small_heap() -> Iterator[None]:
    """Each lack of memory collects garbage, which takes long beside all that a process of tests has loaded: set it
    aside."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Scarce:
    """NumPy, whose functions can run out of memory.

    Attributes:
        calls: how many were made so far.
        fails: whether the call of this number fails.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.fails: Callable[[int], bool] = lambda call: False

    def take(self) -> None:
        self.calls += 1
        if self.fails(self.calls):
            raise MemoryError("there is none")


class ScarceLibrary:
    """A module or one of its functions, each call of which may find no memory. Types and constants are as they are."""

    def __init__(self, module: Any, memory: Scarce) -> None:
        self._module, self._memory = module, memory

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            return ScarceLibrary(found, self._memory)
        if isinstance(found, type) or not callable(found):
            return found
        return ScarceLibrary(found, self._memory)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._memory.take()
        return self._module(*args, **kwargs)


class ScarceBackend(NumpyBackend):
    def __init__(self, memory: Scarce) -> None:
        self.xp = ScarceLibrary(np, memory)
        self.memory = memory

    def empty_bytes(self, nbytes: int) -> Any:
        self.memory.take()
        return super().empty_bytes(nbytes)

    def to_host(self, array: Any) -> Any:
        self.memory.take()
        return super().to_host(array)


def human(session: Session, *ops: Any, reads: Any = (), **fields: Any) -> Reply:
    structure = msgspec.json.encode({"ops": list(ops), "reads": list(reads)})
    reply, _ = session.apply(Frame(structure=msgspec.Raw(structure), **fields), human=True)
    return reply


def prepared(seed: int = 1) -> tuple[Session, Scarce]:
    """A session with two parameters of a small network, with gradients from a first step, and Adam's memory for them.

    Ids: 1 and 2 are the parameters, 3 to 6 Adam's moments, 7 is the input, 8 what it should give.
    """
    memory = Scarce()
    session = Session(Limits(), seed=seed, backends=Backends(cpu=ScarceBackend(memory)))
    shapes = ([5, 4], [3, 5])
    uploads = [["upload", ["payload", "float32", shape]] for shape in (*shapes, *shapes, *shapes, [6, 4], [6, 3])]
    random = np.random.default_rng(0)
    values = [random.standard_normal(s).tolist() for s in shapes]
    values += [np.zeros(s).tolist() for s in (*shapes, *shapes)]
    values += [random.standard_normal(s).tolist() for s in ([6, 4], [6, 3])]
    modes = [["requires_grad_", [0]], ["requires_grad_", [1]]]
    human(session, *uploads, *modes, payloads=[Payload(values=v) for v in values], first=1)
    assert step(session).errors == []
    return session, memory


def step(session: Session) -> Reply:
    """Forward with dropout, backward, gradients, an optimizer's step, and an in-place op; all are read."""
    w1, w2, m1, m2, v1, v2, x, y = range(-1, -9, -1)
    ops: list[Any] = [
        ["linear", [x, w1]],
        ["relu", [0]],
        ["dropout", [1, 0.5, True]],
        ["linear", [2, w2]],
        ["mse_loss", [4, y]],
        ["backward", [[5], [None]]],
        ["grad_of", [w1]],
        ["grad_of", [w2]],
        [
            "adam_step",
            [[w1, w2], [m1, m2], [v1, v2], [None, None], "float", "float", "float", "float", "float", "float"],
        ],
        ["mul_", [x, "float"]],
        ["clone", [w1]],
        ["clone", [w2]],
    ]
    scalars = [0.1, 0.9, 0.999, 1e-8, 0.0, 2.0, 1.5]
    return human(session, *ops, reads=[5, 6, 7, w1, w2, x, 8, 9], external=list(range(1, 9)), scalars=scalars)


def values(reply: Reply) -> list[Any]:
    """What was read; None where it could not be."""
    return [None if value.error is not None else value.values for value in reply.values]


def state(session: Session) -> list[Any]:
    return values(human(session, reads=list(range(-1, -9, -1)), external=list(range(1, 9))))


@pytest.fixture(scope="module")
def undisturbed() -> tuple[list[Any], list[Any], int]:
    """What the step reads, what is there after it, and how many calls may find no memory."""
    session, memory = prepared()
    before = memory.calls
    reply = step(session)
    assert reply.errors == [] and all(v is not None for v in values(reply))
    count = memory.calls - before
    return values(reply), state(session), count


def failures(count: int) -> Iterator[int]:
    yield from range(1, count + 1)


def test_a_moment_without_memory_is_passed_or_told(undisturbed: tuple[list[Any], list[Any], int]) -> None:
    """Each call fails once in turn. Room is made and the op tried again, so that hardly any of them is noticed."""
    expected, after, count = undisturbed
    unnoticed = 0
    for k in failures(count):
        session, memory = prepared()
        at = memory.calls + k
        memory.fails = lambda call, at=at: call == at  # type: ignore[misc]
        reply = step(session)
        assert {error.code for error in reply.errors} <= {"out_of_memory"}, (k, reply.errors)
        for got, wanted in zip(values(reply), expected, strict=True):
            assert got is None or got == wanted, k
        unnoticed += not reply.errors
        if not reply.errors:
            assert state(session) == after, k
        assert step(session).errors == [], k
    assert unnoticed > count // 3


def test_without_any_memory_each_value_is_right_or_missing(undisturbed: tuple[list[Any], list[Any], int]) -> None:
    """From the k-th call on nothing is to be had, until the frame is over."""
    expected, _, count = undisturbed
    for k in failures(count):
        session, memory = prepared()
        held = state(session)
        since = memory.calls + k
        memory.fails = lambda call, since=since: call >= since  # type: ignore[misc]
        reply = step(session)
        memory.fails = lambda call: False
        assert reply.refused is None and reply.errors, k
        assert {error.code for error in reply.errors} == {"out_of_memory"}, (k, reply.errors)
        for got, wanted in zip(values(reply), expected, strict=True):
            assert got is None or got == wanted, k
        left = state(session)
        assert all(v is not None for v in left), k
        assert left[6:] == [held[6], held[7]] or left[6] == expected[5], k
        assert step(session).errors == [], k


def test_a_failed_backward_leaves_gradients_as_they_were() -> None:
    session, memory = prepared()
    human(session, ["set_grad", [-1, None]], ["set_grad", [-2, None]], external=[1, 2])
    ops = [["linear", [-3, -1]], ["linear", [0, -2]], ["sum", [1]], ["backward", [[2], [None]]]]
    human(session, *ops, external=[1, 2, 7])
    before = human(session, ["grad_of", [-1]], ["grad_of", [-2]], reads=[0, 1], external=[1, 2])
    human(session, ["set_grad", [-1, None]], ["set_grad", [-2, None]], external=[1, 2])
    start = memory.calls
    human(session, *ops, external=[1, 2, 7])
    count = memory.calls - start
    human(session, ["set_grad", [-1, None]], ["set_grad", [-2, None]], external=[1, 2])
    for k in failures(count):
        since = memory.calls + k
        memory.fails = lambda call, since=since: call >= since  # type: ignore[misc]
        failed = human(session, *ops, external=[1, 2, 7])
        memory.fails = lambda call: False
        assert [e.code for e in failed.errors] == ["out_of_memory"], k
        after = human(session, ["grad_of", [-1]], ["grad_of", [-2]], reads=[0, 1], external=[1, 2])
        assert [v.values for v in after.values] == [None, None], k
    human(session, *ops, external=[1, 2, 7])
    again = human(session, ["grad_of", [-1]], ["grad_of", [-2]], reads=[0, 1], external=[1, 2])
    assert values(again) == values(before)


def test_random_numbers_of_an_op_that_failed_are_not_spent() -> None:
    plain, _ = prepared()
    session, memory = prepared()
    memory.fails = lambda call: True
    assert human(session, ["rand", [[100]]]).errors[0].code == "out_of_memory"
    memory.fails = lambda call: False
    drawn = [human(each, ["rand", [[3]]], reads=[0]).values[0].values for each in (plain, session)]
    assert drawn[0] == drawn[1]
