"""A session applies each frame once, in order; a failed op poisons its dependents and nothing else."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradwire_protocol.ops  # noqa: F401  (fills the table)
from gradwire_engine.autograd.registry import CONTROLS
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_protocol import envelope
from gradwire_protocol.errors import LimitExceeded
from gradwire_protocol.frames import ID_BITS, Frame, Payload, Structure, structure_hash
from gradwire_protocol.table import TABLE


def human(session, *ops, reads=(), seq=0, **fields):
    """Apply a frame as a person would write it."""
    structure = msgspec.json.encode({"ops": list(ops), "reads": list(reads)})
    reply, _ = session.apply(Frame(seq=seq, structure=msgspec.Raw(structure), **fields), human=True)
    return reply


def binary(session, *ops, **fields):
    """A frame of a program, that reads nothing: people are told of failures by every answer."""
    structure = msgspec.Raw(envelope.encode_part(Structure(ops=list(ops))))
    reply, _ = session.apply(Frame(structure=structure, **fields))
    return reply


@pytest.fixture
def session():
    return Session()


def test_forward_backward_and_a_gradient_in_one_frame(session):
    reply = human(
        session,
        ["upload", ["payload", "float32", [2, 2]]],
        ["requires_grad_", [0]],
        ["pow", [0, "int"]],
        ["mean", [1]],
        ["backward", [[2], [None]]],
        ["grad_of", [0]],
        reads=[3],
        scalars=[2],
        payloads=[Payload(values=[[1, 2], [3, 4]])],
    )
    assert reply.errors == []
    assert reply.values[0].values == [[0.5, 1.0], [1.5, 2.0]]


def test_a_frame_sent_twice_is_applied_once(session):
    human(session, ["zeros", [[]]], seq=1)
    again = [human(session, ["add_", [-1, "int"]], seq=2, external=[1], scalars=[1], reads=[-1]) for _ in range(3)]
    assert [r.values[0].values for r in again] == [1.0, 1.0, 1.0]
    assert session.frames_applied == 2


def test_a_gap_is_refused_with_the_number_expected(session):
    reply = human(session, ["zeros", [[]]], seq=5)
    assert reply.refused.code == "frame_out_of_order" and reply.refused.extra["expected"] == 1
    assert session.ids == {}


def test_a_known_structure_travels_as_its_hash(session):
    client = session.new_client()
    encoded = envelope.encode_part(Structure(ops=[["full", [[2], "float"]]], reads=[0]))
    key = structure_hash(encoded)
    base = client << ID_BITS
    unknown, _ = session.apply(Frame(seq=1, client=client, first=base + 1, hash=key, scalars=[1.5]))
    assert unknown.refused.code == "unknown_structure"
    whole = Frame(seq=1, client=client, first=base + 1, structure=msgspec.Raw(encoded), hash=key, scalars=[1.5])
    session.apply(whole)
    reply, buffers = session.apply(Frame(seq=2, client=client, first=base + 2, hash=key, scalars=[2.5]))
    assert np.frombuffer(buffers[reply.values[0].buffer], np.float32).tolist() == [2.5, 2.5]


def test_the_first_cause_is_reported_and_the_rest_lives_on(session):
    reply = human(
        session, ["ones", [[2]]], ["ones", [[3]]], ["add", [0, 1]], ["mul", [2, "int"]], ["sum", [0]],
        reads=[3, 4], scalars=[2],
    )  # fmt: skip
    assert [p.code for p in reply.errors] == ["shape_mismatch"]
    assert reply.errors[0].op == "add" and reply.errors[0].index == 2
    assert reply.values[0].error == 0 and reply.values[1].values == 2.0
    later = human(session, ["mul", [-1, "int"]], reads=[0], external=[reply.first + 2], scalars=[1])
    assert later.values[0].error is not None and later.errors[0].detail == reply.errors[0].detail


def test_a_failed_write_poisons_every_view_of_the_memory(session):
    human(session, ["ones", [[4]]], ["view", [0, [2, 2]]], ["ones", [[4]]], ["ones", [[3]]])
    reply = human(session, ["add_", [-1, -2]], reads=[-3, -4], external=[1, 4, 2, 3])
    assert reply.values[0].error is not None
    assert reply.values[1].values == [1.0] * 4


WRONG = {
    "unknown op": (["nope", []], "unknown_op"),
    "too many arguments": (["zeros", [[1], "float32", "cpu", 1]], "invalid_argument_type"),
    "wrong argument": (["zeros", ["x"]], "invalid_argument_type"),
    "negative size": (["zeros", [[-1]]], "shape_mismatch"),
    "10^15 elements": (["zeros", [[10**15]]], "limit_exceeded"),
    "an id that was never made": (["neg", [-1]], "unknown_tensor"),
    "a reference to nothing": (["neg", [7]], "malformed_frame"),
    "a reference outside the table": (["neg", [-9]], "malformed_frame"),
    "a number that is missing": (["mul", [-2, "float"]], "malformed_frame"),
    "integer that requires grad": (["requires_grad_", [-3]], "dtype_mismatch"),
    "not a record": (["neg", "x"], "malformed_frame"),
    "unknown device": (["zeros", [[1], None, "cuda:7"]], "device_mismatch"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_gets_its_typed_error_and_the_session_goes_on(session, name):
    human(session, ["ones", [[2]]], ["arange", [3]])
    record, code = WRONG[name]
    reply = human(session, record, external=[999, 1, 2])
    problem = reply.refused or reply.errors[0]
    assert problem.code == code, problem.detail
    assert problem.detail
    assert human(session, ["neg", [-1]], external=[1], reads=[0]).values[0].values == [-1.0, -1.0]


@pytest.mark.parametrize(("matrix", "pivots"), [((3, 3), (2,)), ((3, 3), (0, 3)), ((2, 3, 3), (3,)), ((2, 3), (3,))])
def test_pivots_that_do_not_fit_their_matrix_are_refused(session, matrix, pivots):
    ones = [["ones", [list(matrix)]], ["ones", [list(pivots), "int32"]]]
    reply = human(session, *ones, ["lu_unpack", [0, 1]])
    assert [problem.code for problem in reply.errors] == ["shape_mismatch"]


def test_a_failed_write_loses_nothing_once_the_client_knows(session):
    human(session, ["ones", [[2]]], ["ones", [[3]]])
    human(session, ["add_", [-1, -2]], external=[1, 2])
    assert human(session, reads=[-1], external=[1]).values[0].values == [1.0, 1.0]


def test_a_write_of_what_could_not_be_computed_poisons_its_target_until_the_next_read(session):
    human(session, ["ones", [[2]]], ["ones", [[3]]])
    binary(session, ["add", [-1, -2]], ["add_", [-1, 0]], external=[1, 2])
    told = human(session, ["neg", [-1]], reads=[0, -1], external=[1])
    assert [value.error for value in told.values] == [0, 0]
    assert told.errors[0].op == "add"
    assert human(session, reads=[-1], external=[1]).values[0].values == [1.0, 1.0]
    both = human(session, ["add", [-1, -2]], ["add_", [-1, 0]], reads=[-1], external=[1, 2])
    assert both.values[0].error == 0


def test_a_write_with_arguments_that_cannot_be_read_poisons_its_target_until_the_next_read(session):
    human(session, ["ones", [[2]]])
    reply = human(session, ["add_", [-1, "float"]], ["neg", [-1]], reads=[-1], external=[1])
    assert reply.errors[0].code == "malformed_frame"
    assert reply.values[0].error == 0
    assert human(session, reads=[-1], external=[1]).values[0].values == [1.0, 1.0]


def test_an_optimizer_step_that_is_skipped_leaves_its_parameters_to_be_read(session):
    human(session, ["ones", [[2]]], ["requires_grad_", [0]])
    step = ["sgd_step", [[-1], [None], "float"]]
    failed = binary(session, ["ones", [[2]]], ["backward", [[0], [None]]], step, external=[1], scalars=[0.5])
    assert [problem.op for problem in failed.errors] == ["backward"]
    after = human(session, ["mul", [-1, "float"]], reads=[-1, 0], external=[1], scalars=[3.0])
    assert [value.values for value in after.values] == [[1.0, 1.0], [3.0, 3.0]]


def test_an_optimizer_step_that_fails_poisons_its_parameters_until_the_next_read(session, monkeypatch):
    def halfway(*_):
        raise MemoryError("halfway")

    human(session, ["ones", [[2]]], ["requires_grad_", [0]], ["mul", [0, "float"]], ["sum", [1]], scalars=[2.0])
    monkeypatch.setitem(CONTROLS, "sgd_step", halfway)
    binary(session, ["backward", [[-2], [None]]], ["sgd_step", [[-1], [None], "float"]], external=[1, 3], scalars=[0.5])
    told = human(session, ["mul", [-1, "float"]], reads=[-1, 0], external=[1], scalars=[3.0])
    assert [problem.code for problem in told.errors] == ["out_of_memory"]
    assert [value.error for value in told.values] == [0, 0]
    assert human(session, reads=[-1], external=[1]).values[0].values == [1.0, 1.0]


def test_an_upload_that_a_limit_refused_fails_its_frame_by_that_limit():
    session = Session(Limits(max_session_bytes=1000))
    session.add_chunk(1, 1, 0, 600, memoryview(bytes(300)))
    for offset in (0, 300):
        with pytest.raises(LimitExceeded):
            session.add_chunk(1, 2, offset, 600, memoryview(bytes(300)))
    session.add_chunk(1, 1, 300, 600, memoryview(bytes(300)))
    taken = binary(session, ["upload", ["payload", "uint8", [600]]], client=1, payloads=[Payload(upload=1)])
    assert taken.errors == []
    with pytest.raises(LimitExceeded):  # there is room again, but the piece before this one is missing
        session.add_chunk(1, 2, 300, 600, memoryview(bytes(300)))
    failed = binary(session, ["upload", ["payload", "uint8", [300]]], client=1, payloads=[Payload(upload=2)])
    assert [problem.code for problem in failed.errors] == ["limit_exceeded"]
    assert failed.errors[0].extra["setting"] == "GRADWIRE_MAX_SESSION_BYTES"
    assert not session.uploads and not session.uploads.refused


def test_an_upload_that_was_refused_can_be_sent_again():
    session = Session(Limits(max_session_bytes=1000))
    session.add_chunk(1, 1, 0, 600, memoryview(bytes(600)))
    with pytest.raises(LimitExceeded):
        session.add_chunk(1, 2, 0, 600, memoryview(bytes(600)))
    binary(session, client=1, payloads=[Payload(upload=1)])
    session.add_chunk(1, 2, 0, 600, memoryview(bytes(600)))
    taken = binary(session, ["upload", ["payload", "uint8", [600]]], client=1, payloads=[Payload(upload=2)])
    assert taken.errors == []


def test_a_limit_names_its_setting():
    session = Session(Limits(max_tensor_bytes=1000, max_ops_per_frame=3, max_session_bytes=3000, max_tensors=5))
    assert "GRADWIRE_MAX_TENSOR_BYTES" in human(session, ["zeros", [[1000]]]).errors[0].detail
    assert "GRADWIRE_MAX_OPS_PER_FRAME" in human(session, *[["zeros", [[1]]]] * 4).refused.detail
    full = [human(session, ["zeros", [[240]]]) for _ in range(4)]
    assert "GRADWIRE_MAX_SESSION_BYTES" in full[-1].errors[0].detail
    many = [human(session, ["zeros", [[]]]) for _ in range(5)]
    assert "GRADWIRE_MAX_TENSORS" in many[-1].errors[0].detail


def test_released_tensors_give_their_memory_back(session):
    human(session, ["zeros", [[1000]]], ["mul", [0, "int"]], scalars=[2])
    held = session.engine.account.live
    human(session, releases=[1, 2])
    assert session.engine.account.live == held - 8000
    assert human(session, ["neg", [-1]], external=[1]).errors[0].code == "unknown_tensor"


def test_results_dropped_in_their_frame_free_memory_before_its_end():
    session = Session(Limits(max_session_bytes=5 * 4000))
    client = session.new_client()
    count = 50
    ops = [["ones", [[1000]]], *[["neg", [i]] for i in range(count)]]
    encoded = envelope.encode_part(Structure(ops=ops, drops=list(range(count))))
    reply, _ = session.apply(Frame(seq=1, client=client, first=(client << ID_BITS) + 1, structure=msgspec.Raw(encoded)))
    assert reply.errors == [] and reply.refused is None


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", ["NaN", "Infinity", "-Infinity", 1.5]),
        ("int64", [2**62, -(2**62), 5]),
        ("complex64", [[1.0, -2.0], ["NaN", 0.0]]),
        ("bool", [True, False]),
        ("bfloat16", [1.5, -2.0]),
    ],
)
def test_json_values_round_trip(session, dtype, values):
    given_values = [str(v) if isinstance(v, int) and abs(v) > 2**53 else v for v in values]
    reply = human(
        session, ["upload", ["payload", dtype, [len(values)]]], reads=[0], payloads=[Payload(values=given_values)]
    )
    assert reply.errors == []
    assert reply.values[0].values == given_values


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["float", "int", "payload", "cpu", "float32"]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from([*sorted(TABLE), "no such op"])


@settings(max_examples=300)
@given(st.lists(st.tuples(NAMES, st.lists(JUNK, max_size=5)), max_size=6), st.lists(JUNK, max_size=6))
def test_fuzzed_frames_never_raise_and_never_stop_the_session(records, scalars):
    session = Session(Limits(max_tensor_bytes=1 << 20))
    human(session, ["ones", [[2]]], ["requires_grad_", [0]])
    reply = human(
        session, *[list(r) for r in records], external=[1, 2, 77], scalars=scalars, payloads=[Payload(values=[1])]
    )
    assert all(p.code != "internal" for p in reply.errors), [p.detail for p in reply.errors]
    assert human(session, ["ones", [[]]], reads=[0]).values[0].values == 1.0


def test_optimizer_steps_wait_out_a_failed_backward(session):
    human(session, ["ones", [[2]]], ["requires_grad_", [0]])
    reply = human(session, ["backward", [[-1], [None]]], ["sgd_step", [[-1], [None]]], external=[1])
    assert reply.errors[0].op == "backward"
    assert human(session, reads=[-1], external=[1]).values[0].values == [1.0, 1.0]


def test_a_page_of_the_tensors_is_all_that_is_looked_at(session, monkeypatch):
    """The list of a session with a million tensors has pages, and each costs what a page is."""
    human(session, ["zeros", [[]]], ["zeros", [[]]], ["set_name", [1, "last"]])
    some, last = session.ids[1], session.ids[2]
    session.ids.clear()
    session.ids.update(dict.fromkeys(range(1, 50_000), some))
    session.ids[7] = None  # a gradient that is not there
    session.ids[50_000] = last
    looked = []
    monkeypatch.setattr("gradwire_engine.session.session.looked_at", lambda held: looked.append(held))
    assert [row["id"] for row in session.tensors(after=4, most=4)] == [5, 6, 8, 9]
    assert [(row["id"], row["name"]) for row in session.tensors(after=49_998)] == [(49_999, None), (50_000, "last")]
    assert [row["id"] for row in session.tensors(after=6, most=2, among=[50_000, 8, 7, 6, 60_000, 9])] == [8, 9]
    assert len(looked) == 8


def test_an_array_of_another_dtype_than_its_tensor_is_an_error_and_not_other_numbers(session):
    human(session, ["ones", [[3]]], seq=1)
    session.ids[1].array = np.ones(3, np.int32)  # as a defective kernel would
    reply = human(session, seq=2, external=[1], reads=[-1])
    assert [problem.code for problem in reply.errors] == ["internal"]
    assert "int32" in reply.errors[0].detail
