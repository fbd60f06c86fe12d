"""Messages and records survive the wire, and what is not a message is refused with a typed error."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradwire_protocol.ops  # noqa: F401  (fills the table)
from gradwire_protocol import envelope
from gradwire_protocol.errors import ArgumentTypeError, GradwireError, MalformedFrame
from gradwire_protocol.frames import ID_BITS, Frame, Reply, Structure, Value, structure_hash
from gradwire_protocol.records import decode_args, encode_args
from gradwire_protocol.table import lookup


@given(st.lists(st.binary(max_size=200), max_size=5), st.integers(0, 2**53 - 1))
def test_buffers_come_back_as_they_were_and_aligned(buffers, first):
    data = envelope.join(envelope.encode(Frame(seq=1, first=first), buffers))
    message, found = envelope.decode(data)
    assert isinstance(message, Frame) and message.first == first
    assert [bytes(b) for b in found] == buffers
    start = len(data) - sum(len(b) + (-len(b) % 64) for b in buffers[:-1]) - len(buffers[-1]) if buffers else 0
    assert start % 64 == 0


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_with_a_typed_error(data):
    try:
        envelope.decode(data)
    except MalformedFrame:
        pass


@given(st.data())
def test_a_damaged_message_is_refused_or_still_a_message(data):
    good = envelope.join(envelope.encode(Reply(seq=3, values=[Value(dtype="float32", shape=[2])]), [b"12345678"]))
    at = data.draw(st.integers(0, len(good) - 1))
    damaged = bytearray(good)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        envelope.decode(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    except MalformedFrame:
        pass


def test_a_structure_is_the_same_bytes_whatever_its_numbers():
    def structure(number: float) -> tuple[bytes, list[float]]:
        scalars: list[float] = []
        args = encode_args(lookup("mul"), ["t", number], lambda v: v == "t", lambda v: -1, scalars, [])
        return envelope.encode_part(Structure(ops=[["mul", args]])), scalars

    (first, numbers), (second, others) = structure(0.1), structure(0.25)
    assert structure_hash(first) == structure_hash(second)
    assert (numbers, others) == ([0.1], [0.25])


def test_json_and_messagepack_carry_the_same_frame():
    frame = Frame(seq=2, first=7, scalars=[1, 2.5, True, [0.0, 1.0]], external=[9], releases=[4])
    assert msgspec.json.decode(msgspec.json.encode(frame), type=Frame).scalars == frame.scalars
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(frame), type=Frame).scalars == frame.scalars


CASES = {
    "mul": ["t", 2.5],
    "add": ["t", "t", 1],
    "sum": ["t", (0, -1), True, None],
    "cat": [["t", "t"], 1],
    "clamp": ["t", None, 3],
    "select": ["t", 0, -1],
    "full": [(2, 3), 1.5, None, "cpu"],
}


@pytest.mark.parametrize("name", CASES)
def test_arguments_survive_a_record(name):
    op, values = lookup(name), CASES[name]
    scalars: list = []
    args = encode_args(op, values, lambda v: v == "t", lambda v: 5, scalars, [])
    wire = msgspec.msgpack.decode(msgspec.msgpack.encode(args))
    table = msgspec.msgpack.decode(msgspec.msgpack.encode(scalars))
    rest = iter(table)
    assert decode_args(op, wire, lambda ref: "t" if ref == 5 else None, rest, iter(())) == values
    assert next(rest, None) is None, "a number was left in the table"


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(CASES)), st.lists(JUNK, max_size=5), st.lists(JUNK, max_size=5))
def test_junk_arguments_raise_typed_errors(name, args, scalars):
    try:
        decode_args(lookup(name), args, lambda ref: "t", iter(scalars), iter(()))
    except GradwireError:
        pass


def test_too_many_and_missing_arguments_are_named():
    with pytest.raises(ArgumentTypeError, match="mul"):
        decode_args(lookup("mul"), [0, 0, 0], lambda r: "t", iter(()), iter(()))
    with pytest.raises(ArgumentTypeError, match="other"):
        decode_args(lookup("mul"), [0], lambda r: "t", iter(()), iter(()))


def test_ids_that_are_counters_of_the_client_are_spelled_out():
    near = Frame(client=3, first=5, external=[1, 2], releases=[4], near=True)
    base = 3 << ID_BITS
    assert near.spelled_out() == Frame(client=3, first=base + 5, external=[base + 1, base + 2], releases=[base + 4])
    assert near.spelled_out().first == base + 5, "once"


@pytest.mark.parametrize(
    "wrong", [{"first": -1}, {"external": [2**32]}, {"releases": [2**63]}, {"client": -1}, {"client": 2**60}]
)
def test_what_is_no_counter_is_refused(wrong):
    with pytest.raises(MalformedFrame, match="counters"):
        Frame(**({"client": 2, "first": 1} | wrong), near=True).spelled_out()
