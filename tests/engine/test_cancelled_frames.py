"""A cancelled frame is rolled back: the session is as before, and its results are poisoned."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.numerics.matmul import matmul
from gradwire_engine.runtime import deadline
from gradwire_engine.runtime.deadline import Clock
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import take
from gradwire_protocol import envelope
from gradwire_protocol.errors import Cancelled
from gradwire_protocol.frames import Frame, Reply, Structure, structure_hash


class Program:
    """Frames of one client on a session, with the numbers that they need."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.seq = 0

    def frame(self, *ops: Any, reads: Any = (), hashed: bool = False, **fields: Any) -> Frame:
        self.seq += 1
        structure = envelope.encode_part(Structure(ops=list(ops), reads=list(reads)))
        key = structure_hash(structure) if hashed else b""
        return Frame(seq=self.seq, structure=msgspec.Raw(structure), hash=key, **fields)

    def run(self, *ops: Any, clock: Clock | None = None, **fields: Any) -> Reply:
        return self.session.apply(self.frame(*ops, **fields), clock=clock)[0]

    def values(self, *ids: int) -> list[Any]:
        reply, buffers = self.session.apply(self.frame(reads=[-1 - i for i in range(len(ids))], external=list(ids)))
        return [
            None if not v.dtype else np.frombuffer(buffers[v.buffer], v.dtype).reshape(v.shape).tolist()
            for v in reply.values
        ]


class Late(Clock):
    """A clock of a frame that is cancelled when it has been asked so many times."""

    __slots__ = ("asked", "late")

    def __init__(self, late: int) -> None:
        self.asked, self.late = 0, late
        super().__init__()

    @property
    def cancelled(self) -> bool:
        self.asked += 1
        return self.asked > self.late

    @cancelled.setter
    def cancelled(self, value: bool) -> None:
        pass

    @property
    def end(self) -> float:
        return -1.0  # it is asked wherever a clock is

    @end.setter
    def end(self, value: float) -> None:
        pass


def image_of(session: Session) -> Any:
    """All that a session holds, but for what a cancelled frame leaves: its number, and its poisoned results."""
    found = take(session)
    facts = {
        name: fact for name, fact in found.facts.items()
        if name not in ("clients", "peak", "structures", "frames_applied", "ops_run", "problems")
    }  # fmt: skip
    facts["ids"] = [row for row in facts["ids"] if row[1] == "tensor"]
    return facts, {name: array.tobytes() for name, array in found.arrays.items() if name.startswith("m")}


PREPARED: list[Any] = [
    ["full", [[4], "float"]], ["requires_grad_", [0]],
    ["full", [[4], "float"]],
    ["full", [[2, 3], "float"]], ["as_strided", [2, [2, 2], [3, 1], 1]],
    ["mul", [0, 1]], ["sum", [4]], ["backward", [[5], [None]], 0],
    ["mul", [0, 1]], ["retain_grad", [6]],
]  # fmt: skip
"""Ids 1: a leaf with a gradient, 2: a plain tensor, 3: another, 4: a view of it, 5 and 6: a graph that was freed, 7: a
result that retains its gradient."""

FRAMES: dict[str, tuple[list[Any], list[int], list[Any]]] = {
    "in place twice": (
        [["add_", [-1, "float"]], ["neg", [-1]], ["mul_", [-1, "float"]], ["exp", [0]]], [2], [1.0, 3.0]),
    "through a view": ([["add_", [-1, "float"]], ["exp", [-2]], ["exp", [0]]], [4, 3], [1.0]),
    "gradients": (
        [["mul", [-1, -2]], ["sum", [0]], ["backward", [[1], [None]], 0], ["exp", [-1]], ["exp", [2]]], [1, 2], []
    ),
    "gradient set to none": (
        [["zero_grad", [[-1], True]], ["mul", [-1, -2]], ["sum", [0]], ["backward", [[1], [None]], 0], ["neg", [0]]],
        [1, 2], [],
    ),
    "a step amid": (
        [["sgd_step", [[-1], [None], "float", "float", "float", "float", False, False, []]], ["exp", [-1]],
         ["exp", [0]]],
        [1], [0.1, 0.0, 0.0, 0.0],
    ),
    "random numbers and modes": (
        [["manual_seed", ["int"]], ["rand", [[3]]], ["set_default_dtype", ["float64"]], ["set_name", [-1, "x"]],
         ["exp", [-1]], ["normal_", [-1]], ["exp", [-1]]],
        [2], [3],
    ),
    "other data": ([["detach", [-2]], ["set_data", [-1, 0]], ["add_", [-1, "float"]], ["exp", [-1]]], [2, 1], [1.0]),
    "a retained gradient": ([["mul_", [-1, "float"]], ["exp", [-1]], ["exp", [0]]], [7], [2.0]),
    "no longer a leaf": ([["requires_grad_", [-1]], ["mul", [-1, -1]], ["neg", [0]]], [2], []),
}  # fmt: skip


def prepared(plans: int = 0) -> tuple[Session, Program]:
    session = Session(Limits(plans=plans))
    program = Program(session)
    reply = program.run(*PREPARED, scalars=[2.0, 3.0, 5.0])
    assert not reply.errors and reply.refused is None, reply
    return session, program


@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_cancelled_anywhere_leaves_the_session_as_it_was(name: str) -> None:
    ops, external, scalars = FRAMES[name]
    stopped = 0
    for late in range(20):
        session, program = prepared()
        before = image_of(session)
        reply = program.run(*ops, external=external, scalars=scalars, clock=Late(late))
        if not reply.errors:
            break
        stopped += 1
        assert [e.code for e in reply.errors] == ["cancelled"], reply.errors
        assert image_of(session) == before, late
        for i in range(reply.made):
            with pytest.raises(Exception, match="cancelled"):
                session.tensor(reply.first + i)
    assert stopped >= 2


@pytest.mark.parametrize("name", FRAMES)
def test_a_plan_that_is_cancelled_leaves_the_session_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwire_engine.plans.emitting.MUCH_WORK", 0)  # it looks before each kernel
    ops, external, scalars = FRAMES[name]
    session, program = prepared(plans=1)
    for _ in range(3):
        program.run(*ops, external=external, scalars=scalars, hashed=True)
    stopped = 0
    for late in range(30):
        before = image_of(session)
        reply = program.run(*ops, external=external, scalars=scalars, hashed=True, clock=Late(late))
        if not reply.errors:
            break
        stopped += 1
        assert [e.code for e in reply.errors] == ["cancelled"], reply.errors
        assert image_of(session) == before, late
    assert stopped >= 2


def test_a_frame_cancelled_before_its_turn_does_not_run() -> None:
    session, program = prepared()
    clock = Clock()
    clock.cancel()
    reply = program.run(["add_", [-1, "float"]], ["exp", [-1]], external=[2], scalars=[1.0], clock=clock)
    assert [(e.code, e.index) for e in reply.errors] == [("cancelled", 0)]
    assert program.values(2) == [[3.0] * 4]


def test_a_loop_that_is_cancelled_is_taken_back_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwire_engine.plans.emitting.MUCH_WORK", 0)
    for plans in (0, 1):
        session, program = prepared(plans)
        step = [["add_", [-1, "float"]], ["exp", [-1]], ["sum", [0]]]
        for late in (4, 7, 12, 20):
            before = image_of(session)
            reply = program.run(
                *step, external=[2], scalars=[1.0] * 8, repeat=8, stacked=[1], hashed=True, clock=Late(late)
            )
            assert [e.code for e in reply.errors] == ["cancelled"], reply
            assert image_of(session) == before
        assert program.values(2) == [[3.0] * 4]
        assert not program.run(*step, external=[2], scalars=[1.0] * 8, repeat=8, stacked=[1]).errors
        assert program.values(2) == [[11.0] * 4]


def test_steps_behind_a_cancelled_backward_are_skipped_until_the_next_read() -> None:
    session, program = prepared()
    ops, external, _ = FRAMES["gradients"]
    program.run(*ops, external=external, clock=Late(1))
    step = ["sgd_step", [[-1], [None], "float", "float", "float", "float", False, False, []]]
    skipped = program.run(step, external=[1], scalars=[0.1, 0.0, 0.0, 0.0])
    assert not skipped.errors
    before = program.values(1)
    assert before == [[2.0] * 4]
    program.run(step, external=[1], scalars=[0.1, 0.0, 0.0, 0.0])
    assert program.values(1) != before


def test_a_backward_after_one_that_was_cancelled_lets_steps_go_on() -> None:
    session, program = prepared()
    ops, external, _ = FRAMES["gradients"]
    program.run(*ops, external=external, clock=Late(1))
    step = ["sgd_step", [[-1], [None], "float", "float", "float", "float", False, False, []]]
    program.run(*ops[:3], step, external=external, scalars=[0.1, 0.0, 0.0, 0.0])
    assert program.values(1) != [[2.0] * 4]


def test_a_frame_whose_memory_cannot_be_kept_twice_is_not_cancelled_behind_its_write() -> None:
    session = Session(Limits(max_session_bytes=3000, plans=0))
    program = Program(session)
    program.run(["full", [[500], "float"]], scalars=[1.0])
    reply = program.run(
        ["add_", [-1, "float"]], ["sum", [-1]], ["neg", [0]], external=[1], scalars=[1.0], clock=Late(2)
    )
    assert not reply.errors
    assert program.values(reply.first + 1) == [-1000.0]


def test_steps_at_the_end_of_a_frame_are_not_cut_short() -> None:
    """What is computed is written down: no copy of parameters is needed to take half a step back."""
    session, program = prepared()
    step = ["sgd_step", [[-1], [None], "float", "float", "float", "float", False, False, []]]
    reply = program.run(
        ["exp", [-1]], step, ["zero_grad", [[-1], True]], external=[1], scalars=[0.1, 0.0, 0.0, 0.0], clock=Late(2)
    )
    assert not reply.errors


def test_what_another_thread_cancels_stops_between_kernels() -> None:
    import threading

    session = Session(Limits(plans=0))
    program, clock = Program(session), Clock()
    program.run(["full", [[700, 700], "float"]], scalars=[1e-4])
    threading.Timer(0.2, clock.cancel).start()
    reply = program.run(*[["matmul", [-1, -1]]] * 20_000, external=[1], clock=clock)  # minutes, on any machine
    assert [e.code for e in reply.errors] == ["cancelled"]


@pytest.mark.parametrize("seed", range(6))
def test_a_replay_of_random_frames_cancelled_at_random_moments_leaves_the_same(seed: int) -> None:
    choose = random.Random(seed)
    plans = choose.choice([0, 1])
    session, program = prepared(plans)
    history: list[tuple[Frame, dict[int, Any]]] = []
    names = [n for n in FRAMES if n != "other data"]
    for _ in range(40):
        ops, external, scalars = FRAMES[choose.choice(names)]
        repeat = choose.choice([0, 0, 3])
        frame = program.frame(
            *ops, external=external, scalars=scalars * max(repeat, 1), repeat=repeat, hashed=choose.random() < 0.5
        )
        whole = msgspec.structs.replace(frame)
        session.apply(frame, clock=Late(choose.randrange(40)))
        history.append((whole, {p.index: p for p in session.failed if p.code == Cancelled.code}))
    again, _ = prepared(plans)
    for frame, failures in history:
        again.apply(frame, failures=failures)
    assert any(failures for _, failures in history)
    found, expected = take(again), take(session)
    dropped = ("peak", "problems")
    assert {n: f for n, f in found.facts.items() if n not in dropped} == {
        n: f for n, f in expected.facts.items() if n not in dropped
    }
    for name, array in expected.arrays.items():
        if name.startswith("m"):
            assert np.array_equal(array, found.arrays[name]), name


def test_a_clock_that_nobody_cancelled_lets_an_engine_alone() -> None:
    deadline.begin(0)
    deadline.check("an op")
    assert Engine().clock.cancelled is False


@pytest.mark.parametrize(
    ("left", "right"),
    [((50, 8), (8, 30)), ((1, 8), (8, 3000)), ((6, 50, 8), (6, 8, 30)), ((6, 50, 8), (1, 8, 30)), ((50, 8), (6, 8, 30)),
     ((2, 1, 50, 8), (3, 8, 30)), ((1, 50, 8), (1, 8, 30))],
)  # fmt: skip
def test_a_large_product_is_computed_in_pieces(
    left: tuple[int, ...], right: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(0)
    a, b = values.random(left, np.float32), values.random(right, np.float32)
    monkeypatch.setattr("gradwire_engine.numerics.matmul.PIECE_STEPS", 1000)
    checks: list[str] = []
    monkeypatch.setattr(deadline, "check", checks.append)
    found = matmul(np, a, b)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, a @ b, rtol=1e-5)
    assert checks


def test_one_large_product_stops_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwire_engine.numerics.matmul.PIECE_STEPS", 10_000)
    session, program = prepared()
    program.run(["full", [[100, 100], "float"]], scalars=[1.0])
    late = Late(20)
    reply = program.run(["matmul", [-1, -1]], external=[8], clock=late)
    assert [e.code for e in reply.errors] == ["cancelled"]
    assert late.asked < 40
