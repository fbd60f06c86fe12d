"""A repeated request with the same ``Idempotency-Key`` starts one session."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from gradwire_protocol.errors import InvalidRequest, Unavailable
from gradwire_server.sessions.idempotency import KEYS_KEPT, Repeats
from tests.live_server import live_server


@pytest.fixture(scope="module")
def server():
    with live_server(max_sessions=200) as found:
        yield found


def post(http, key, body=None):
    return http.post("/v1/sessions", json=body or {}, headers={"Idempotency-Key": key})


def test_the_same_request_is_answered_with_the_same_session(server):
    with server.http() as http:
        first, second = post(http, "a"), post(http, "a")
        assert first.status_code == second.status_code == 201
        assert first.json()["id"] == second.json()["id"]
        assert first.headers["Location"] == second.headers["Location"]


def test_other_keys_and_requests_without_one_start_other_sessions(server):
    with server.http() as http:
        made = [
            post(http, "b"),
            post(http, "c"),
            http.post("/v1/sessions", json={}),
            http.post("/v1/sessions", json={}),
        ]
        assert len({response.json()["id"] for response in made}) == 4


def test_requests_at_the_same_time_start_one_session(server):
    with server.http() as http, ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: post(http, "d").json()["id"], range(16)))
        assert len(set(made)) == 1


def test_a_key_that_came_with_another_request_is_refused(server):
    with server.http() as http:
        assert post(http, "e", {"seed": 1}).status_code == 201
        refused = post(http, "e", {"seed": 2})
        assert refused.status_code == 422
        assert refused.json()["code"] == "invalid_request"


def test_keys_of_tenants_are_apart(server):
    with server.http() as http, server.http(server.other_key) as other:
        assert post(http, "f").json()["id"] != post(other, "f").json()["id"]


def test_a_session_that_was_deleted_is_gone_for_a_repeated_request(server):
    with server.http() as http:
        made = post(http, "g").json()["id"]
        assert http.delete(f"/v1/sessions/{made}").status_code == 204
        assert post(http, "g").json()["code"] == "session_gone"


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_that_is_none_is_refused(server, key):
    with server.http() as http:
        assert post(http, key).status_code == 422


def test_a_request_that_failed_may_be_sent_again():
    made = []

    async def make():
        made.append(1)
        if len(made) == 1:
            raise Unavailable("not yet")
        return f"s_{len(made)}"

    async def story():
        repeats = Repeats()
        with pytest.raises(Unavailable):
            await repeats.once("t", "k", "{}", make)
        assert await repeats.once("t", "k", "{}", make) == "s_2"
        assert await repeats.once("t", "k", "{}", make) == "s_2"

    asyncio.run(story())


def test_who_asks_again_gets_what_is_being_made_when_the_first_to_ask_has_gone():
    async def story():
        repeats, go = Repeats(), asyncio.Event()

        async def make():
            await go.wait()
            return "s_1"

        first = asyncio.create_task(repeats.once("t", "k", "{}", make))
        await asyncio.sleep(0)
        first.cancel()
        second = asyncio.create_task(repeats.once("t", "k", "{}", make))
        await asyncio.sleep(0)
        go.set()
        assert await second == "s_1"

    asyncio.run(story())


def test_the_keys_of_a_tenant_are_bounded():
    async def story():
        repeats, made = Repeats(), []

        async def make():
            made.append(1)
            return f"s_{len(made)}"

        for n in range(KEYS_KEPT + 1):
            await repeats.once("t", str(n), "{}", make)
        assert await repeats.once("t", "1", "{}", make) == "s_2"
        assert await repeats.once("t", "0", "{}", make) == f"s_{KEYS_KEPT + 2}"
        with pytest.raises(InvalidRequest):
            await repeats.once("t", "5", "{'seed': 1}", make)

    asyncio.run(story())
