"""Every field of every message with any value gets an answer that is never ``internal``, and the server continues.

The fields come from the schema. ``python -m tests.soak frames`` sends all of this, and larger values, for a given
time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import httpx
import msgspec
import pytest

from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_protocol.frames import Frame, Message, Payload
from tests.hostile_messages import NAMES, attacks, hostile_ops, hostile_values, paths, plain
from tests.live_server import LiveServer, live_server

from .exchange import frame, post
from .hostile import Hostile

MANY = 100_000
EACH = 5
"""Values of those that a field is given, drawn by its name: together they have each value many times."""
LIMITS = {"max_tensor_bytes": 1 << 20, "max_session_bytes": 8 << 20, "max_tensors": 1000, "max_frame_seconds": 20}

FIELDS = {
    f"{message.__name__}.{'.'.join(map(str, path))}": (message, path)
    for message in Message.__args__
    for path in paths(message)
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(session_host="process", max_decoded_bytes=4 << 20, max_sessions=1000) as found:
        yield found


@pytest.fixture
def http(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def test_the_fields_that_are_attacked_are_those_of_the_schema() -> None:
    named = {name for message in Message.__args__ for name in message.__struct_fields__}
    assert named <= {str(path[0]) for _, path in FIELDS.values()}
    inside = {".".join(map(str, path)) for _, path in FIELDS.values()}
    assert {"structure.ops", "structure.reads", "payloads.0.values", "errors.0.extra", "timing.nodes"} <= inside
    assert all(plain(message)["type"] for message in Message.__args__)
    assert len(list(attacks(1))) == len(FIELDS) * len(hostile_values(1))


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_may_be_given_anything(server: LiveServer, http: httpx.Client, name: str) -> None:
    message, path = FIELDS[name]
    tag = plain(message)["type"]
    drawn = random.Random(name)
    values = set(drawn.sample(sorted(hostile_values(MANY)), EACH))
    session = http.post("/v1/sessions", json={"limits": LIMITS}).headers["location"]
    hostile = Hostile(server, http, session)
    try:
        for of, where, value, make in attacks(MANY):
            if of == tag and where == path and value in values:
                hostile.send(make(), f"{name} = {value}")
        assert not hostile.faults
        assert post(http, session, frame([["ones", [[1]]]], [0]))["values"][0]["values"] == [1.0]
    finally:
        hostile.close()
        http.delete(session)


@pytest.mark.parametrize(
    ("ops", "scalars"),
    [
        ([["arange", [False, 3, 1e-320]]], []),
        ([["arange", [6]], ["resized", [0, [0, 1 << 62, 1 << 40]]]], []),
        ([["adagrad_step", [[], [], "float", "bool", "int", "float", "int", True]]], ["NaN", True, 5, 0.5, 0]),
    ],
    ids=["arange", "resized", "adagrad_step"],
)
def test_what_was_found_this_way_has_typed_errors(ops: list[object], scalars: list[object]) -> None:
    structure = msgspec.Raw(msgspec.json.encode({"ops": ops}))
    reply, _ = Session().apply(Frame(structure=structure, scalars=scalars), human=True)
    assert [problem.code for problem in reply.errors] in (["invalid_argument"], ["shape_mismatch"])


@pytest.mark.parametrize("name", ["repeat", "tile"])
def test_what_is_repeated_no_times_in_one_dimension_takes_nothing_in_the_others(name: str) -> None:
    ops = [["ones", [[3, 2]]], [name, [0, [1 << 31, 0, 7]]], [name, [0, [1, 0]]]]
    structure = msgspec.Raw(msgspec.json.encode({"ops": ops, "reads": [1, 2]}))
    packed = msgspec.Raw(msgspec.msgpack.encode({"ops": ops, "reads": [1, 2]}))
    reply, _ = Session().apply(Frame(structure=packed))
    assert not reply.errors
    assert [value.shape for value in reply.values] == [[1 << 31, 0, 14], [3, 0]]
    told, _ = Session().apply(Frame(structure=structure), human=True)
    assert {problem.code for problem in told.errors} == {"limit_exceeded"}  # as many empty lists


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(4))
def test_numbers_and_attributes_of_every_op_may_be_anything(seed: int) -> None:
    limits = Limits(max_tensor_bytes=1 << 20, max_session_bytes=1 << 24, max_op_work=1_000_000, max_frame_seconds=20)
    rng = random.Random(seed)
    for name in NAMES:
        parts = hostile_ops(rng, [name])
        session = Session(limits)
        sent = Frame(
            structure=msgspec.Raw(msgspec.json.encode(parts["structure"])), scalars=parts["scalars"],
            payloads=[Payload(values=[1, 2])],
        )  # fmt: skip
        reply, _ = session.apply(sent, human=True)
        problems = [*reply.errors, *([reply.refused] if reply.refused is not None else [])]
        defects = [problem.detail for problem in problems if problem.code == "internal"]
        assert not defects, (parts["structure"]["ops"][-1], parts["scalars"], defects)
