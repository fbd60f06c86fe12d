"""Names that frames use and give: ``named`` and ``keeps`` of the compact form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_protocol.frames import Frame, Reply, Structure

from .test_cancelled_frames import Late


def frame(ops: list[Any], reads: list[int] | None = None, **fields: Any) -> Frame:
    """A frame; ``drops`` and ``keeps`` go into its structure."""
    inside = {name: fields.pop(name) for name in ("drops", "keeps") if name in fields}
    return Frame(structure=msgspec.Raw(msgspec.json.encode(Structure(ops, reads or [], **inside))), **fields)


def run(session: Session, ops: list[Any], *args: Any, clock: Any = None, **fields: Any) -> Reply:
    return session.apply(frame(ops, *args, **fields), human=True, clock=clock)[0]


def read(session: Session, *names: str) -> list[Any]:
    reply = run(session, [], [-1 - i for i in range(len(names))], named=list(names))
    assert reply.refused is None, reply.refused
    return [value.values for value in reply.values]


@pytest.fixture
def session() -> Session:
    session = Session(Limits(max_tensors=8))
    run(session, [["ones", [[1]]]], keeps={"w": 0})
    return session


def test_a_named_result_is_held_by_its_name_alone(session: Session) -> None:
    assert session.ids == {}
    assert read(session, "w") == [[1.0]]
    live = session.engine.account.live
    for _ in range(5):
        run(session, [["add", [-1, -1]]], named=["w"], keeps={"w": 0})
    assert read(session, "w") == [[32.0]]
    assert session.engine.account.live == live


def test_a_dropped_result_that_gets_a_name_outlives_its_last_use(session: Session) -> None:
    run(session, [["add", [-1, -1]], ["neg", [0]]], named=["w"], drops=[0, 1], keeps={"v": 0})
    assert read(session, "v") == [[2.0]]


def test_names_follow_the_ids_in_the_table(session: Session) -> None:
    first = run(session, [["full", [[1], "float"]]], scalars=[5.0]).first
    reply = run(session, [["sub", [-1, -2]]], [0], external=[first], named=["w"])
    assert reply.values[0].values == [4.0]
    outside = run(session, [["neg", [-3]]], external=[first], named=["w"])
    assert outside.errors[0].code == "malformed_frame"


def test_a_name_of_null_is_removed(session: Session) -> None:
    run(session, [], keeps={"w": None})
    assert session.engine.names == {}
    assert session.engine.account.live == 0
    refused = run(session, [], keeps={"w": None}).refused
    assert refused is not None
    assert refused.code == "unknown_tensor"


def test_an_undefined_result_takes_its_name_away(session: Session) -> None:
    """A stale gradient under the name would go unnoticed."""
    run(session, [["grad_of", [-1]]], named=["w"], keeps={"w": 0})
    assert session.engine.names == {}


@pytest.mark.parametrize("name", ["", "n" * 201])
def test_a_name_has_1_to_200_characters(session: Session, name: str) -> None:
    refused = run(session, [["ones", [[1]]]], keeps={name: 0}).refused
    assert refused is not None
    assert f"not {len(name)}" in refused.detail


def test_names_are_limited_as_tensors_are(session: Session) -> None:
    refused = run(session, [["ones", [[1]]]], keeps={f"n{i}": 0 for i in range(8)}).refused
    assert refused is not None
    assert (refused.code, refused.extra["value"]) == ("limit_exceeded", 9)
    assert list(session.engine.names) == ["w"]


def test_a_cancelled_frame_leaves_names_where_they_were(session: Session) -> None:
    for moment in range(3):
        reply = run(session, [["add", [-1, -1]], ["neg", [0]]], named=["w"], keeps={"w": 1, "v": 0}, clock=Late(moment))
        assert reply.errors[0].code == "cancelled"
        assert list(session.engine.names) == ["w"]
        assert read(session, "w") == [[1.0]]


def test_a_cancelled_loop_takes_the_names_of_all_iterations_back(session: Session) -> None:
    late, moments = 0, 0
    while True:
        reply = run(session, [["add", [-1, -1]]], named=["w"], keeps={"w": 0, "v": 0}, repeat=4, clock=Late(late))
        if not reply.errors:
            break
        assert reply.errors[0].code == "cancelled"
        assert list(session.engine.names) == ["w"]
        assert read(session, "w") == [[1.0]]
        late, moments = late + 1, moments + 1
    assert moments > 4
    assert read(session, "w", "v") == [[16.0], [16.0]]
