"""Other tenants' sessions cannot be distinguished from unknown ones, by any route or any field of a frame."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from gradwire_server.app import create_app
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer

from .strangers import NAME, answer, calls, frames, furnished, routes, stream_answer, told, unknown_id

DOCUMENT = create_app(Settings(api_keys=("unused",))).openapi()


@pytest.fixture(scope="module")
def owned(server: LiveServer) -> Iterator[tuple[str, dict[str, str]]]:
    with server.http() as http:
        session_id, parameters = furnished(http)
        yield session_id, parameters
        assert http.get(f"/v1/sessions/{session_id}").status_code == 200, "a stranger's request ended the session"


@pytest.fixture(scope="module")
def stranger(server: LiveServer) -> Iterator[httpx.Client]:
    with server.http(server.other_key) as http:
        yield http


@pytest.mark.parametrize(("method", "path"), list(routes(DOCUMENT)), ids=lambda v: v)
def test_a_strangers_session_is_one_that_never_was(
    stranger: httpx.Client, owned: tuple[str, dict[str, str]], method: str, path: str
) -> None:
    session_id, parameters = owned
    seen = set()
    for call in calls({"paths": {path: {method.lower(): {}}}}, parameters):
        theirs, never = answer(stranger, call, session_id), answer(stranger, call, unknown_id(session_id))
        assert theirs == never
        seen.add(theirs[0])
        if theirs[0] == 404:
            assert theirs[1]["code"] == "not_found"
    assert 404 in seen, f"no body got as far as the session: {seen}"
    assert seen <= {404, 400, 415, 422}


def test_a_strangers_stream_is_refused_like_one_of_no_session(
    server: LiveServer, owned: tuple[str, dict[str, str]]
) -> None:
    session_id, _ = owned
    theirs = stream_answer(server, session_id, server.other_key)
    assert theirs == stream_answer(server, unknown_id(session_id), server.other_key)
    assert theirs[0] == 404


def test_a_stranger_lists_none_of_it(stranger: httpx.Client, owned: tuple[str, dict[str, str]]) -> None:
    assert owned[0] not in stranger.get("/v1/sessions").text


def test_no_field_of_a_frame_reaches_into_another_session(
    stranger: httpx.Client, owned: tuple[str, dict[str, str]]
) -> None:
    session = stranger.post("/v1/sessions").headers["location"]
    tensor = int(owned[1]["tensor"]) + 30
    ids = (tensor, tensor + (1 << 31), 5_000_001, 4_000_000, 2002, 3999)
    names = re.compile(f"{NAME}|x{{{len(NAME)}}}")
    for field, theirs, never in frames(tensor):
        first, second = (told(stranger, session, body, ids) for body in (theirs, never))
        assert first[0] == second[0], field
        assert names.sub("NAME", first[1]) == names.sub("NAME", second[1]), field
