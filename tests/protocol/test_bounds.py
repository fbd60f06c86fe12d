"""The memory of a decoded message is known before any object is made."""

from __future__ import annotations

import random
import sys
import tracemalloc
from typing import Annotated, Any

import msgspec
import pytest

from gradwire_protocol import bounds
from gradwire_protocol.bounds import BOUNDS, bounds_of, check, check_embedded_json, estimate, estimate_json
from gradwire_protocol.errors import LimitExceeded, MalformedFrame
from gradwire_protocol.frames import MAX_ENTRIES, MAX_NESTING, Frame, Message, Structure

MOST = bounds.MAX_DECODED_BYTES
LITTLE = 8 << 20
pack = msgspec.msgpack.encode


def header(**fields: Any) -> bytes:
    return pack({"type": "frame", "seq": 7, "structure": {"ops": []}, **fields})


def test_every_field_of_every_message_has_a_bound() -> None:
    fields = {field for message in Message.__args__ for field in message.__struct_fields__}
    assert set(BOUNDS) == fields


@pytest.mark.parametrize(
    "kind",
    [
        list[int], str, bytes, dict[str, int], int, Any, msgspec.Raw, tuple[int, ...], set[bool],
        list[Annotated[str, msgspec.Meta()]], Annotated[list[Any], msgspec.Meta(max_length=4)],
    ],
)  # fmt: skip
def test_a_field_without_a_bound_does_not_build(kind: Any) -> None:
    unbounded = msgspec.defstruct("Unbounded", [("entries", kind)])
    with pytest.raises(TypeError, match=r"Unbounded\.entries"):
        bounds_of([unbounded])


def test_a_structure_inside_a_frame_has_the_bounds_of_its_fields() -> None:
    inside = bounds_of([Structure])
    assert BOUNDS["structure"].longest == max(bound.longest for bound in inside.values())
    assert BOUNDS["structure"].deepest == 1 + max(bound.deepest for bound in inside.values())


def anything(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(12)
    if depth < 5 and kind < 3:
        return [anything(rng, depth + 1) for _ in range(rng.choice((0, 0, 1, 3, 20)))]
    if depth < 5 and kind == 3:
        names = [f"{n:x}" * rng.choice((1, 6)) for n in range(rng.choice((0, 0, 1, 2, 5, 6, 15, 40)))]
        return {name: anything(rng, depth + 1) for name in names}
    return rng.choice((
        0, -5, -6, -32, 127, 300, 1 << 40, -(1 << 40), 1 << 63, 1.5, None, True, "", "a", "ab", "é€😀" + "a" * 20,
        "mul", "x" * rng.randrange(300), b"abc", b"", {"": []}, [[]], msgspec.msgpack.Ext(5, b"x"),
    ))  # fmt: skip


def memory_of(decode: Any, data: Any) -> int:
    """The most bytes that decoding takes, the least of three times: other threads of the process are counted too."""
    decode(data)  # what is made once
    peaks = []
    for _ in range(3):
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        made = decode(data)
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
        tracemalloc.stop()
        del made
    return min(peaks)


SLACK = 700
"""Of the decoder itself, and of lists that JSON lets grow."""


@pytest.mark.parametrize("seed", range(4))
def test_what_is_measured_is_enough_and_no_estimate_is_below_it(seed: int) -> None:
    rng = random.Random(seed)
    decode = msgspec.msgpack.Decoder().decode
    for _ in range(150):
        data = header(scalars=[anything(rng) for _ in range(rng.randrange(20))])
        measured = bounds._Measure(data, sys.maxsize).message()
        assert memory_of(decode, data) <= measured + SLACK
        assert measured <= estimate(data)
        assert measured <= bounds.MOST_OF_A_BYTE * len(data)


def test_a_walk_pauses_all_along_and_finds_the_same() -> None:
    data = header(scalars=[[i, "x" * 3, {"": []}] for i in range(50_000)])
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1

    assert bounds.check(data, sys.maxsize, pause) == bounds.check(data, sys.maxsize) > bounds.TRUSTED_BYTES
    assert len(data) / 2 < pauses * bounds.WALKED_BYTES <= len(data)
    for cut in (len(data) - 1, len(data) - 2000, len(data) // 2):
        with pytest.raises(MalformedFrame, match="truncated"):
            bounds.check(data[:cut], sys.maxsize, pause)
    with pytest.raises(LimitExceeded):
        bounds.check(data, 9 << 20, pause)


@pytest.mark.parametrize("seed", range(4))
def test_an_estimate_of_json_is_enough(seed: int) -> None:
    rng = random.Random(seed)
    decode = msgspec.json.Decoder().decode
    for _ in range(150):
        values = [value for _ in range(rng.randrange(20)) if (value := anything(rng)) is not None]
        try:
            data = msgspec.json.encode(values)
        except TypeError:  # an extension has no form in JSON
            continue
        assert memory_of(decode, data) <= estimate_json(data) * 1.125 + SLACK
        assert estimate_json(data.decode()) >= estimate_json(data) - 3 * len(data)


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_an_estimate_of_json_in_json_is_enough(escaped: bool, seed: int) -> None:
    """The header of a session's file has its facts as a text. Escapes hide what is in it."""
    rng = random.Random(seed)
    decode = msgspec.json.Decoder().decode
    for _ in range(100):
        values = [value for _ in range(rng.randrange(20)) if (value := anything(rng)) is not None]
        try:
            inner = msgspec.json.encode(values).decode()
        except TypeError:
            continue
        text = '"' + "".join(f"\\u{ord(c):04x}" for c in inner if ord(c) < 1 << 16) + '"'
        data = text.encode() if escaped else msgspec.json.encode(inner)
        with pytest.raises(LimitExceeded) as refused:
            check_embedded_json(data, 0)
        assert memory_of(lambda data: decode(decode(data)), data) <= refused.value.details["value"] * 1.125 + SLACK


MANY = 3_000_000
TOO_MUCH: dict[str, Any] = {
    "empty lists as numbers": lambda: {"scalars": [[]] * MANY},
    "empty maps as numbers": lambda: {"scalars": [{}] * MANY},
    "releases": lambda: {"releases": [1] * MANY, "near": True},
    "external ids": lambda: {"external": [1] * MANY},
    "empty payloads": lambda: {"payloads": [{}] * MANY},
    "values": lambda: {"payloads": [{"values": [[]] * MANY}]},
    "values in many lists": lambda: {"payloads": [{"values": [[[]] * 1000] * 1000}]},
    "records": lambda: {"structure": {"ops": [[]] * MANY}},
    "arguments": lambda: {"structure": {"ops": [["zeros", [[]] * MANY]]}},
    "a text among the arguments": lambda: {"structure": {"ops": [["zeros", ["x" * 9_000_000]]]}},
    "bytes among the arguments": lambda: {"structure": {"ops": [["zeros", [b"x" * 9_000_000]]]}},
    "a field that is not known": lambda: {"nonsense": [0] * MANY},
    "buffers": lambda: {"buffers": [1] * 600_000},
    "a hash": lambda: {"hash": b"x" * 9_000_000},
    "an extension": lambda: {"scalars": [msgspec.msgpack.Ext(1, bytes(68 << 20))]},
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_would_be_too_much_is_refused_before_anything_is_made_of_it(name: str) -> None:
    data = header(**TOO_MUCH[name]())
    tracemalloc.start()
    with pytest.raises(LimitExceeded) as refused:
        check(data, LITTLE)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2 * len(data) + (1 << 20)
    assert refused.value.details["value"] > refused.value.details["limit"]


def test_a_list_that_says_it_is_longer_than_the_message_is_refused() -> None:
    data = pack("type").join([b"\x82", pack("frame")]) + pack("scalars") + b"\xdd\x00\x1f\xff\xff" + bytes(600_000)
    with pytest.raises(LimitExceeded):
        check(data, MOST)


def test_lists_are_not_nested_without_end() -> None:
    deep: Any = [0] * 600_000
    for _ in range(MAX_NESTING + 1):
        deep = [deep]
    with pytest.raises(MalformedFrame, match="nested"):
        check(header(payloads=[{"values": deep}]), MOST)


@pytest.mark.parametrize("cut", [1, 5, 100, 600_000])
def test_a_large_header_that_is_cut_off_is_malformed(cut: int) -> None:
    with pytest.raises((MalformedFrame, LimitExceeded)):
        check(header(external=[1 << 20] * 600_000)[:-cut], MOST)


LARGE: dict[str, Any] = {
    "ids": lambda: {"external": list(range(1_000_000))},
    "numbers": lambda: {"scalars": [0.5] * 1_000_000},
    "releases": lambda: {"releases": list(range(1 << 20))},
    "as many ops as a frame may have": lambda: {
        "structure": {"ops": [["mul", [i % 100, -1 - i % 50]] for i in range(200_000)]}
    },
    "nested values": lambda: {"payloads": [{"values": [[0.5] * 1000] * 1000}]},
}


@pytest.mark.parametrize("name", LARGE)
def test_large_frames_that_programs_send_are_within_the_bounds(name: str) -> None:
    data = header(**LARGE[name]())
    assert len(data) < check(data, MOST) <= MOST
    assert msgspec.msgpack.decode(data, type=Frame).seq == 7


def test_the_number_of_a_frame_is_found_without_decoding_it() -> None:
    assert bounds.number_of(header(scalars=[[]] * 1000)) == 7
    assert bounds.number_of(pack({"type": "frame", "seq": 1 << 40, "external": [1]})) == 1 << 40
    assert bounds.number_of(pack({"type": "frame", "external": [1] * 1000, "seq": 5})) == 0
    for nonsense in (b"", b"\xc1", pack([1]), pack({"seq": "x"}), pack({"seq": -4}), pack({"seq": []}), pack({1: 2})):
        assert bounds.number_of(nonsense) == 0


def test_lists_longer_than_their_field_are_malformed_also_where_that_is_no_danger() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(header(hash=b"x" * 100), type=Frame)
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(header(external=[0] * (MAX_ENTRIES + 1)), type=Frame)
