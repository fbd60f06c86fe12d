"""An op with too much work is refused, and a frame stops when its time is over."""

from __future__ import annotations

import time
import warnings
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime import deadline
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_protocol.errors import GradwireError, TimeExceeded
from gradwire_protocol.frames import Frame, Reply
from gradwire_protocol.table import TABLE
from tests.engine.test_parity import Ours
from tests.samples import load


def human(session: Session, *ops: Any, reads: Any = (), **fields: Any) -> Reply:
    structure = msgspec.json.encode({"ops": list(ops), "reads": list(reads)})
    reply, _ = session.apply(Frame(structure=msgspec.Raw(structure), **fields), human=True)
    return reply


CASES: list[tuple[str, list[tuple[int, ...]], tuple[Any, ...], int]] = [
    ("matmul", [(30, 40), (40, 50)], (), 30 * 40 * 50),
    ("matmul", [(7, 30, 40), (40, 50)], (), 7 * 30 * 40 * 50),
    ("linear", [(6, 40), (50, 40)], (), 6 * 40 * 50),
    ("addmm", [(50,), (30, 40), (40, 50)], (), 30 * 40 * 50),
    ("conv2d", [(2, 3, 10, 10), (8, 3, 3, 3)], (), 2 * 8 * 8 * 8 * 27),
    ("conv_transpose2d", [(2, 8, 8, 8), (8, 3, 3, 3)], (), 2 * 8 * 8 * 8 * 27),
    ("linalg_svd", [(40, 20)], (), 10 * 40 * 20 * 20),
    ("cdist", [(10, 4), (12, 4)], (), 10 * 12 * 4),
    ("exp", [(10, 20)], (), 2 * 10 * 20),
]


@pytest.mark.parametrize(
    ("name", "shapes", "more", "expected"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_work_is_counted_in_multiply_adds(
    name: str, shapes: list[tuple[int, ...]], more: tuple[Any, ...], expected: int
) -> None:
    enough, short = Engine(Limits(max_op_work=expected)), Engine(Limits(max_op_work=expected - 1))
    enough.call(name, *[enough.from_numpy(np.ones(s, np.float32)) for s in shapes], *more)
    with pytest.raises(TimeExceeded, match=f"{name} needs {expected:,} units of work.*GRADWIRE_MAX_OP_WORK"):
        short.call(name, *[short.from_numpy(np.ones(s, np.float32)) for s in shapes], *more)


def test_einsum_counts_each_of_its_products() -> None:
    engine = Engine(Limits(max_op_work=10 * 20 * 30 + 10 * 30 * 40))
    tensors = [engine.from_numpy(np.ones(s, np.float32)) for s in ((10, 20), (20, 30), (30, 40))]
    engine.call("einsum", "ab,bc,cd->ad", tensors)
    wide = [engine.from_numpy(np.ones(s, np.float32)) for s in ((10, 20), (20, 30), (30, 60))]
    with pytest.raises(TimeExceeded):
        engine.call("einsum", "ab,bc,cd->ad", wide)


def test_every_op_has_a_cost() -> None:
    """The table finds its parameters in the rules, whatever the sample."""
    engine = Engine(Limits(max_op_work=1 << 62))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in sorted(name for name in load() if TABLE[name].cost is not None):
            for declared in load()[name]:
                dtype = "float32" if "float32" in declared.dtypes else declared.dtypes[0]
                for sample in declared.draw(dtype, 1):
                    try:
                        Ours(engine, sample).call(name)
                    except GradwireError:
                        continue


def test_no_limit_is_no_limit() -> None:
    engine = Engine(Limits(max_op_work=0))
    assert engine.call("matmul", engine.call("ones", (50, 50)), engine.call("ones", (50, 50))).shape == (50, 50)


def test_backward_of_much_work_is_refused_and_the_session_goes_on() -> None:
    session = Session(Limits(max_op_work=40 * 40 * 40 + 1))
    ops = [["ones", [[40, 40]]], ["requires_grad_", [0]], ["matmul", [0, 0]], ["linalg_svdvals", [1]]]
    reply = human(session, *ops, reads=[2])
    assert [e.code for e in reply.errors] == ["time_exceeded"]
    assert reply.errors[0].op == "linalg_svdvals"
    assert human(session, ["ones", [[2]]], reads=[0]).values[0].values == [1, 1]


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = time.monotonic()
        self.looked = 0
        self.late_after = 1 << 60

    def __call__(self) -> float:
        self.looked += 1
        return self.now + (1e6 if self.looked > self.late_after else 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(deadline, "monotonic", found)
    return found


def test_records_after_the_time_are_not_run(clock: Clock) -> None:
    session = Session(Limits(max_frame_seconds=5))
    ops = [["ones", [[2]]], ["neg", [0]], ["neg", [1]], ["add_", [0, "int"]], ["neg", [0]]]
    clock.late_after = 3  # the beginning, and two records
    reply = human(session, *ops, scalars=[1], reads=[1, 2, 0])
    assert [(e.code, e.index) for e in reply.errors] == [("time_exceeded", 2)]
    assert "GRADWIRE_MAX_FRAME_SECONDS" in reply.errors[0].detail
    assert reply.values[0].values == [-1, -1]
    assert [v.error for v in reply.values[1:]] == [0, 0]  # the second was to be written by a record that did not run
    clock.late_after = 1 << 60
    assert human(session, ["neg", [-1]], external=[1], reads=[0]).values[0].values == [-1, -1]


def test_a_backward_that_takes_too_long_gives_no_gradient() -> None:
    for late in range(4, 12):
        session = Session(Limits(max_frame_seconds=5))
        human(session, ["ones", [[2]]], ["requires_grad_", [0]])
        clock = Clock()
        clock.late_after = late
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deadline, "monotonic", clock)
            ops = [["exp", [-1]], ["exp", [0]], ["sum", [1]], ["backward", [[2], [None]]]]
            reply = human(session, *ops, external=[1])
        gradient = human(session, ["grad_of", [-1]], external=[1], reads=[0])
        assert (gradient.values[0].values is None) == bool(reply.errors), late
        if reply.errors:
            assert [e.code for e in reply.errors] == ["time_exceeded"]


def test_the_clock_of_a_frame_ends_with_the_frame(clock: Clock) -> None:
    """What is computed outside frames in the same thread later, an image or a test's own engine, has no deadline."""
    session = Session(Limits(max_frame_seconds=5))
    once = [["ones", [[2]]], ["neg", [0]]]
    assert not human(session, *once).errors
    assert not human(session, ["neg", [-1]], external=[1], repeat=2, stacked=[0]).errors
    clock.late_after = clock.looked + 1
    assert [e.code for e in human(session, *once).errors] == ["time_exceeded"]
    assert clock() > 1e6  # every frame's time is over
    deadline.check("an op outside frames")
    assert not deadline.passed()


@pytest.mark.parametrize(
    "op", [["rnn_layer", [0, 1, 2, 3]], ["ctc_loss", [4, 5, 6, 7]]], ids=["recurrence", "alignment"]
)
def test_loops_inside_a_kernel_look_at_the_clock(clock: Clock, op: list[Any]) -> None:
    session = Session(Limits(max_frame_seconds=5))
    shapes = [[50, 2, 3], [2, 4], [4, 3], [4, 4], [50, 1, 3]]
    ops = [*(["zeros", [shape]] for shape in shapes), *(["full", [shape, "int"]] for shape in ([1, 4], [1], [1]))]
    human(session, *ops, scalars=[1, 50, 4])
    clock.looked, clock.late_after = 0, 20
    inputs = [[op[0], [-1 - i for i in op[1]]]]
    reply = human(session, *inputs, external=list(range(1, 9)))
    assert [e.code for e in reply.errors] == ["time_exceeded"], reply.errors
