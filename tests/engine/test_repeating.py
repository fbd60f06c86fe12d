"""A repeated frame equals the frame sent several times: its last results, and all stacked ones."""

from __future__ import annotations

import msgspec
import pytest

from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import take
from gradwire_protocol import envelope
from gradwire_protocol.frames import ID_BITS, Frame, Payload, Structure, structure_hash

BASE = 2 << ID_BITS
"""Client 2's ids."""


def started(**limits):
    session = Session(Limits(**limits)) if limits else Session()
    assert session.join(0)[0] == 2
    apply(session, 1, [["randn", [[4, 3]]], ["requires_grad_", [0]], ["randn", [[6, 5, 4]]], ["zeros", [[]]]])
    return session


def apply(session, seq, ops, failures=None, first=None, drops=(), reads=(), **fields):
    encoded = envelope.encode_part(Structure(ops=ops, drops=list(drops), reads=list(reads)))
    frame = Frame(
        seq=seq, client=2, first=BASE + seq * 100 if first is None else first, structure=msgspec.Raw(encoded),
        hash=structure_hash(encoded), **fields,
    )  # fmt: skip
    return session.apply(frame, failures=failures)[0]


W, DATA, COUNT = BASE + 100, BASE + 101, BASE + 102
STEP = [
    ["zero_grad", [[-1]]],
    ["select", [-2, 0, "int"]],
    ["matmul", [0, -1]],
    ["dropout", [1, 0.5]],
    ["sum", [2]],
    ["backward", [[4], [None]]],
    ["sgd_step", [[-1], [None], "float", "float", "float", "float"]],
    ["add_", [-3, "int"]],
]
DROPS = [0, 1, 2, 3]
RATES = [0.1, 0.0, 0.0, 0.0]


def numbers(i):
    return [i, *RATES, i]


def loop(session, seq, times, **fields):
    scalars = [n for i in range(times) for n in numbers(i)]
    return apply(
        session, seq, STEP, drops=DROPS, external=[W, DATA, COUNT], scalars=scalars, repeat=times, stacked=[4, -3],
        **fields,
    )  # fmt: skip


def value(session, tensor_id):
    return session.engine.to_numpy(session.tensor(tensor_id)).tolist()


@pytest.mark.parametrize("plans", [0, 1])
def test_a_repeated_frame_does_what_single_frames_do(plans):
    single, repeated = started(plans=plans), started(plans=plans)
    losses = []
    for i in range(6):
        reply = apply(single, 2 + i, STEP, drops=DROPS, external=[W, DATA, COUNT], scalars=numbers(i), first=BASE + 200)
        assert not reply.errors, reply
        losses.append(value(single, BASE + 204))
    reply = loop(repeated, 2, 6)
    assert reply.refused is None, reply
    assert reply.errors == []
    assert reply.made == 7
    assert value(repeated, BASE + 205) == losses
    assert value(repeated, BASE + 206) == [0, 1, 3, 6, 10, 15]
    assert value(repeated, BASE + 204) == losses[-1]
    for tensor_id in (W, COUNT):
        assert value(single, tensor_id) == value(repeated, tensor_id)
        assert single.tensor(tensor_id).storage.version == repeated.tensor(tensor_id).storage.version
    assert single.engine.generator.offset == repeated.engine.generator.offset
    assert single.ops_run == repeated.ops_run
    assert not repeated.tensor(BASE + 205).requires_grad
    assert len(repeated.ids) == len(single.ids) + 2


def test_a_repeated_frame_that_is_sent_again_is_not_applied_again():
    session = started()
    first = loop(session, 2, 4)
    again = loop(session, 2, 4)
    assert again is first
    assert value(session, COUNT) == 6


REFUSED = {
    "too many ops": ({"times": 13}, "13 times 8 ops (and copies) are 104; the limit is 100"),
    "nothing, for ever": ({"ops": [], "scalars": [], "repeat": 1 << 40}, "1,099,511,627,776 times 1 ops"),
    "too few numbers": ({"scalars": [1, 2]}, "need 12 scalars, not 2"),
    "a read": ({"reads": [3]}, "must not read"),
    "an upload in chunks": ({"payloads": [Payload(upload=7)]}, "chunks"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_repeated_is_refused_and_changes_nothing(name):
    given, text = REFUSED[name]
    given = dict(given)
    session = started(max_ops_per_frame=100)
    before = value(session, W), session.expected(2)
    times = given.pop("times", 2)
    fields = {"scalars": [n for i in range(times) for n in numbers(i)], "repeat": times, **given}
    ops = fields.pop("ops", STEP)
    reply = apply(session, 2, ops, drops=DROPS if ops else (), external=[W, DATA, COUNT], **fields)
    assert text in reply.refused.detail
    assert (value(session, W), session.expected(2)) == before


def failing(session, seq, times, failures=None):
    ops = [["select", [-1, 0, "int"]], ["linalg_cholesky", [0]], ["sum", [1]], ["add_", [-2, "int"]]]
    return apply(
        session, seq, ops, failures, drops=[0, 1], external=[BASE + 200, COUNT], repeat=times, stacked=[2],
        scalars=[n for i in range(times) for n in (i, 1)],
    )  # fmt: skip


def test_the_iteration_that_fails_is_named_and_is_the_last():
    session = started()
    apply(session, 2, [["eye", [3]], ["expand", [0, [5, 3, 3]]], ["clone", [1]], ["select", [2, 0, "int"]],
                       ["zero_", [3]]], scalars=[3], first=BASE + 198)  # fmt: skip
    reply = failing(session, 3, 5)
    (problem,) = [p for p in reply.errors if p.index == 1]
    assert problem.extra["iteration"] == 3
    assert "iteration 3 of 5" in problem.detail
    assert 3 <= value(session, COUNT) <= 4
    assert session.ids[BASE + 303].problem is problem


def test_a_failure_of_the_moment_is_replayed_in_its_iteration():
    session, replayed = started(), started()
    reply = loop(session, 2, 4)
    assert not reply.errors
    apply(session, 3, [["zeros", [[]]]])
    # A replay is told which record failed in which iteration; the iterations before it must run.
    from gradwire_protocol.frames import Problem

    told = {7: Problem("out_of_memory", "then", op="add_", seq=2, index=7, extra={"iteration": 2})}
    reply = loop(replayed, 2, 4, failures=told)
    assert reply.errors[0].extra["iteration"] == 2
    fresh = started()
    loop(fresh, 2, 3)
    assert value(replayed, W) == value(fresh, W)


def test_a_session_with_repeated_frames_in_its_past_has_an_image():
    session = started()
    loop(session, 2, 4)
    assert take(session) is not None
