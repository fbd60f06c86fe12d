"""Arbitrary bytes get a refusal or a reply, and the session remains usable."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from gradwire_protocol import envelope
from gradwire_protocol.frames import Refusal, Reply
from gradwire_protocol.table import TABLE
from tests.live_server import LiveServer

from .exchange import Peer, binary, frame, post, stream

QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

VALID = envelope.join(
    envelope.encode(binary(1, [["upload", ["payload", "float32", [2]]], ["neg", [0]]], [1]), [bytes(8)])
)


@st.composite
def damaged(draw: Any) -> bytes:
    """A valid message with a few bytes changed, or cut off, or put in."""
    data = bytearray(VALID)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(("change", "cut", "insert")))
        if how == "change" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif how == "cut":
            del data[at : at + draw(st.integers(1, 9))]
        else:
            data[at:at] = draw(st.binary(max_size=9))
    return bytes(data)


def exchange(server: LiveServer, session: str, data: bytes) -> None:
    """Send bytes on a new stream: they are answered, and a close has a code that says why."""
    with stream(server, session) as peer:
        peer.socket.send(data)
        try:
            answer, _ = peer.receive(timeout=6)
        except ConnectionClosed as end:
            code = end.rcvd.code if end.rcvd is not None else 0
        except TimeoutError:
            alive(peer)  # it was a good piece of an upload, which has no answer
            return
        else:
            if isinstance(answer, Refusal):
                assert answer.problem.code == "malformed_frame"
            else:
                assert isinstance(answer, Reply)
            return
        assert code in (4400, 1009)


def alive(peer: Peer) -> None:
    reply, _ = peer.apply(1, [])
    assert reply.refused is None


@QUICK
@given(data=st.one_of(st.binary(max_size=200), damaged()))
def test_any_bytes_on_a_stream(server: LiveServer, http: httpx.Client, session: str, data: bytes) -> None:
    exchange(server, session, data)
    assert post(http, session, frame([["ones", [[1]]]], [0]))["values"][0]["values"] == [1.0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.sampled_from(("x", "y", "z", "w"))
VALUES = st.one_of(
    NAMES, st.lists(st.none() | NAMES, max_size=3), st.integers(-3, 3), FLOATS, st.booleans(), st.none(),
    st.sampled_from(("int", "NaN", "float32", "payload", "12", "")), st.lists(st.integers(0, 3), max_size=3), JSON,
)  # fmt: skip


@st.composite
def natural_records(draw: Any) -> dict[str, Any]:
    """A record whose arguments exist, with values that may or may not fit."""
    op = TABLE[draw(st.sampled_from(sorted(TABLE)))]
    given = {param.name: draw(VALUES) for param in op.params if param.required or draw(st.booleans())}
    return {"op": op.name, **given} | ({"as": draw(NAMES | st.lists(NAMES, max_size=3))} if draw(st.booleans()) else {})


@settings(QUICK, max_examples=200)
@given(ops=st.lists(natural_records(), min_size=1, max_size=3), facts=st.dictionaries(st.sampled_from(
    ("reads", "drops", "releases", "stacked", "external", "scalars", "payloads", "repeat", "keeps", "hash")), VALUES,
    max_size=2))  # fmt: skip
def test_any_natural_frame(http: httpx.Client, session: str, ops: list[Any], facts: dict[str, Any]) -> None:
    first = {"op": "upload", "data": [[0.5, 1.0], [2.0, 3.0]], "as": "x"}
    response = http.post(f"{session}/frames", content=msgspec.json.encode({"ops": [first, *ops], **facts}),
                         headers={"Content-Type": "application/json"})  # fmt: skip
    assert response.status_code in (200, 400, 404, 409, 413, 422), response.text
    for error in response.json().get("errors", ()):
        assert error["code"] != "internal", (ops, error)


ARGUMENTS = st.lists(
    st.one_of(
        st.integers(-3, 3), st.none(), st.booleans(), FLOATS, st.sampled_from(("int", "float", "bool", "payload")),
        st.lists(st.integers(-3, 5), max_size=4), st.text(max_size=5), st.sampled_from(("float32", "int64", "cpu")),
    ),
    max_size=5,
)  # fmt: skip


@st.composite
def records(draw: Any) -> list[Any]:
    """Ops of the table with arguments that may or may not fit them."""
    first: list[Any] = ["upload", ["payload", draw(st.sampled_from(("float32", "int64", "bool"))), [2, 2]]]
    names = sorted(TABLE)
    return [first, *([draw(st.sampled_from(names)), draw(ARGUMENTS)] for _ in range(draw(st.integers(1, 4))))]


@settings(QUICK, max_examples=150)
@given(ops=records(), scalars=st.lists(st.integers(-5, 5) | FLOATS | st.just("NaN"), max_size=4))
def test_any_arguments_of_any_op(http: httpx.Client, session: str, ops: list[Any], scalars: list[Any]) -> None:
    body = frame(ops, [0], payloads=[{"values": [[0, 1], [1, 0]]}], scalars=scalars)
    response = http.post(f"{session}/frames", json=body)
    if response.status_code != 200:  # a text where a tensor belongs is a name
        assert 400 <= response.status_code < 500, response.text
        return
    for error in response.json().get("errors", ()):
        assert error["code"] != "internal", (ops, error)


@QUICK
@given(structure=JSON, facts=st.dictionaries(st.sampled_from(("seq", "first", "external", "payloads")), JSON))
def test_any_json_as_a_frame(http: httpx.Client, session: str, structure: Any, facts: dict[str, Any]) -> None:
    body = msgspec.json.encode({"structure": structure, **facts})
    response = http.post(f"{session}/frames", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (200, 400, 404, 409, 422), response.text
    assert http.get(session).status_code == 200
