"""Rates of a key: streams get backpressure, requests get 429 with the time to retry and the reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from gradwire_protocol.errors import TooManyRequests
from gradwire_protocol.frames import Frame, Structure, structure_hash
from gradwire_server.auth.keys import Key
from gradwire_server.auth.quotas import Quotas
from gradwire_server.auth.rates import BURST_S, AverageRate, Rates, StreamMeter, TenantUsage
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer, live_server

from .exchange import binary, frame, problem, stream

MB = 1 << 20


def key(tenant: str = "t", **quotas: int) -> Key:
    return Key(id="k", digest=tenant, name="", tenant=tenant, scopes=["session"], quotas=quotas)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("gradwire_server.auth.rates.time", found)
    return found


# The pace


def test_a_quiet_second_is_made_up_for_and_no_more(clock: Clock) -> None:
    pace = AverageRate()
    pace.charge(100, rate=100)
    assert pace.wait == 0
    pace.charge(50, rate=100)
    assert pace.wait == pytest.approx(0.5)
    clock.now += 3600
    pace.charge(100 * BURST_S, rate=100)
    assert pace.wait == 0
    pace.charge(1, rate=100)
    assert pace.wait == pytest.approx(0.01)


def test_a_cost_above_a_seconds_share_is_taken_whole_and_paid_later(clock: Clock) -> None:
    pace = AverageRate()
    pace.charge(1000, rate=100)
    assert pace.wait == pytest.approx(9)
    clock.now += 9
    assert pace.wait == 0


def test_over_a_long_time_the_rate_is_kept(clock: Clock) -> None:
    pace, taken, begun = AverageRate(), 0, clock.now
    for i in range(500):
        clock.now += pace.wait
        pace.charge(cost := 1 + i % 37, rate=100)
        taken += cost
    clock.now += pace.wait
    assert clock.now - begun + BURST_S == pytest.approx(taken / 100)


# Counting


def sent(ops: list[Any], hashed: bool = False, whole: bool = True) -> Frame:
    structure = msgspec.msgpack.encode(Structure(ops, [0]))
    raw = {"structure": msgspec.Raw(structure)} if whole else {}
    return Frame(seq=1, hash=structure_hash(structure) if hashed else b"", **raw)


OPS = [["full", [[1], "float"]]] * 7


def test_records_are_counted_in_every_form_of_a_frame() -> None:
    share = TenantUsage()
    assert share.records(sent(OPS), human=False) == 7
    assert share.records(sent(OPS, hashed=True), human=False) == 7
    assert share.records(sent(OPS, hashed=True, whole=False), human=False) == 7
    text = Frame(structure=msgspec.Raw(b'{"ops": [["neg", [-1]], ["neg", [0]]], "reads": [1]}'))
    assert share.records(text, human=True) == 2
    assert share.records(Frame(structure=msgspec.Raw(b"\xc1")), human=False) == 0


def test_a_hash_that_is_not_the_structures_own_counts_for_nothing() -> None:
    """Else a client could have a short structure counted in place of a long one."""
    share, long = TenantUsage(), sent(OPS * 100, hashed=True)
    share.records(long, human=False)
    lie = sent(OPS[:1])
    lie.hash = long.hash
    share.records(lie, human=False)
    assert share.records(sent(OPS * 100, hashed=True, whole=False), human=False) == 700


def test_two_keys_of_a_tenant_have_one_share(clock: Clock) -> None:
    rates = Rates(Settings(api_keys=("x",), max_ops_per_second=100))
    one, other = key("same"), key("same")
    meter = rates.meter(one)
    meter.received(10, 10, meter.usage.records(sent(OPS * 100), human=False))
    assert rates.meter(other).wait == pytest.approx(6)
    assert rates.meter(key("another")).wait == 0
    with pytest.raises(TooManyRequests) as refused:
        rates.charge_ops(other, sent(OPS), human=False)
    assert refused.value.details["retry_after_s"] == pytest.approx(6)


def test_a_message_that_takes_much_more_memory_than_bytes_is_paced_by_that(clock: Clock) -> None:
    rates = Rates(Settings(api_keys=("x",), max_bytes_per_second=10_000_000))
    meter = rates.meter(key("one"))
    meter.received(1_000_000, 10_000_000, 0)
    assert meter.wait == pytest.approx(0)
    meter.received(100_000, 20_000_000, None)
    assert meter.wait == pytest.approx(2)
    assert meter.bytes_in == 1_100_000


def test_a_key_without_limits_is_counted_and_never_waits() -> None:
    meter = StreamMeter(TenantUsage())
    for _ in range(3):
        meter.received(1000, 9000, meter.usage.records(sent(OPS), human=False))
    meter.sent(500)
    assert (meter.frames, meter.ops, meter.bytes_in, meter.bytes_out, meter.wait) == (3, 21, 3000, 500, 0.0)
    assert not meter.paced


# Requests


def refused(response: httpx.Response, setting: str) -> dict[str, Any]:
    """The 429, which names the setting and says when to come again."""
    found = problem(response, 429, "too_many_requests")
    assert found["extra"]["setting"] == f"GRADWIRE_{setting.upper()}"
    assert found["retryable"]
    assert int(response.headers["retry-after"]) >= max(1, found["extra"].get("retry_after_s", 0))
    return found


@contextmanager
def limited(**settings: Any) -> Iterator[tuple[LiveServer, httpx.Client, httpx.Client]]:
    """A server with limits, with clients of two tenants."""
    with live_server(**settings) as server, server.http() as http, server.http(server.other_key) as other:
        yield server, http, other


def test_frames_over_the_rate_are_told_when_to_come_again(clock: Clock) -> None:
    with limited(max_ops_per_second=100) as (_, http, other):
        session = http.post("/v1/sessions").headers["location"]
        body = frame([["full", [[1], "float"]]] * 260, scalars=[1.0] * 260)
        assert http.post(f"{session}/frames", json=body).status_code == 200
        response = http.post(f"{session}/frames", json=body)
        found = refused(response, "max_ops_per_second")
        assert found["extra"]["retry_after_s"] == pytest.approx(1.6)
        assert http.get(session).status_code == 200, "only ops are over their rate"
        theirs = other.post("/v1/sessions").headers["location"]
        assert other.post(f"{theirs}/frames", json=body).status_code == 200
        clock.now += int(response.headers["retry-after"])
        assert http.post(f"{session}/frames", json=body).status_code == 200


def test_bytes_over_the_rate_are_told_when_to_come_again(clock: Clock) -> None:
    with limited(max_bytes_per_second=100_000) as (_, http, other):
        session = http.post("/v1/sessions").headers["location"]
        raw = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "uint8", "Gradwire-Shape": "300000"}
        assert http.put(f"{session}/tensors/1", content=bytes(300_000), headers=raw).status_code == 201
        found = refused(http.get(session), "max_bytes_per_second")
        assert 1 < found["extra"]["retry_after_s"] <= 2.1
        assert other.get("/v1/sessions").status_code == 200


def test_what_a_key_reads_counts_too(clock: Clock) -> None:
    with limited(max_bytes_per_second=100_000) as (_, http, __):
        http.headers["Accept"] = "application/octet-stream"
        session = http.post("/v1/sessions").headers["location"]
        http.post(f"{session}/frames", json=frame([["zeros", [[50_000]]], ["set_name", [0, "z"]]][:1], first=1))
        assert http.get(f"{session}/tensors/1").status_code == 200
        refused(http.get(f"{session}/tensors/1"), "max_bytes_per_second")


def test_requests_over_the_rate_are_told_when_to_come_again() -> None:
    with limited(max_requests_per_second=5) as (_, http, other):
        answers = [http.get("/v1/version") for _ in range(200)]
        over = [each for each in answers if each.status_code != 200]
        assert over
        found = refused(over[0], "max_requests_per_second")
        assert 0 < found["extra"]["retry_after_s"] <= 1
        assert other.get("/v1/version").status_code == 200
        assert http.get("/livez").status_code == 200


# Streams


def test_a_stream_over_the_rate_is_slowed_down_and_never_refused() -> None:
    with limited(max_ops_per_second=200) as (server, http, _):
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            begun = time.monotonic()
            for seq in range(1, 9):
                peer.send(binary(seq, [["full", [[1], "float"]]] * 70, [0], scalars=[1.0] * 70))
            for seq in range(1, 9):
                reply, _ = peer.reply()
                assert (reply.seq, reply.refused, reply.errors) == (seq, None, [])
            # The last one is read when the 490 ops before it are paid for, less the second that may be made up for.
            assert time.monotonic() - begun >= 490 / 200 - BURST_S


def test_a_new_stream_is_no_way_around_the_rate() -> None:
    with limited(max_ops_per_second=100) as (server, http, _):
        session = http.post("/v1/sessions").headers["location"]
        ops = [["full", [[1], "float"]]] * 150
        with stream(server, session) as first:
            assert first.apply(1, ops, [0], scalars=[1.0] * 150)[0].errors == []
        begun = time.monotonic()
        for _ in range(2):
            with stream(server, session) as peer:
                assert peer.apply(1, ops, [0], scalars=[1.0] * 150)[0].errors == []
        assert time.monotonic() - begun >= 300 / 100 - BURST_S - 0.6


def test_a_slowed_stream_still_ends_with_its_session() -> None:
    with limited(max_ops_per_second=10) as (server, http, _):
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            peer.apply(1, [["full", [[1], "float"]]] * 3000, [0], scalars=[1.0] * 3000)  # five minutes of ops
            http.delete(session)
            assert peer.receive()[0].problem.code == "session_gone"


# Sessions and memory


def test_a_key_has_its_number_of_sessions_and_others_have_theirs() -> None:
    with limited(max_key_sessions=2) as (_, http, other):
        first = http.post("/v1/sessions").headers["location"]
        http.post("/v1/sessions")
        refused(http.post("/v1/sessions"), "max_key_sessions")
        assert other.post("/v1/sessions").status_code == 201
        http.delete(first)
        assert http.post("/v1/sessions").status_code == 201


def test_many_at_once_do_not_get_more_than_the_quota() -> None:
    with limited(max_key_sessions=3) as (_, http, __), ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: http.post("/v1/sessions").status_code, range(8)))
        assert sorted(answers) == [201] * 3 + [429] * 5


def test_a_keys_own_quota_takes_the_place_of_the_setting() -> None:
    with live_server(max_key_sessions=1) as server, server.http(server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "more", "quotas": {"max_key_sessions": 2}}).json()
        with server.http(made["key"]) as http:
            assert [http.post("/v1/sessions").status_code for _ in range(3)] == [201, 201, 429]


def test_sessions_are_promised_no_more_memory_than_their_key_has() -> None:
    with limited(max_key_bytes=100 * MB, max_session_bytes=64 * MB) as (_, http, __):
        first = http.post("/v1/sessions").json()
        assert first["limits"]["max_session_bytes"] == 64 * MB
        second = http.post("/v1/sessions").json()
        assert second["limits"]["max_session_bytes"] == 36 * MB, "what is left"
        refused(http.post("/v1/sessions"), "max_key_bytes")
        http.delete(f"/v1/sessions/{first['id']}")
        refused(http.post("/v1/sessions", json={"limits": {"max_session_bytes": 65 * MB}}), "max_key_bytes")
        assert http.post("/v1/sessions", json={"limits": {"max_session_bytes": 64 * MB}}).status_code == 201


def test_no_session_grows_beyond_what_it_was_promised() -> None:
    with limited(max_key_bytes=8 * MB, max_key_sessions=2) as (_, http, __):
        paths = [http.post("/v1/sessions").headers["location"] for _ in range(2)]
        for path in paths:
            assert http.get(path).json()["limits"]["max_session_bytes"] == 4 * MB, "an even share"
            fits = http.post(f"{path}/frames", json=frame([["zeros", [[900_000]]]])).json()
            assert not fits.get("errors")
            over = http.post(f"{path}/frames", json=frame([["zeros", [[300_000]]]])).json()
            assert over["errors"][0]["code"] == "limit_exceeded"


@pytest.mark.parametrize(
    ("quota", "most", "promised", "asked", "given"),
    [
        (0, 0, [5], None, None), (0, 0, [5], 7, 7), (10, 0, [4], None, 6), (10, 0, [4], 3, 3), (10, 0, [10], None, 429),
        (10, 0, [4], 7, 429), (10, 5, [2], None, 2), (10, 5, [2, 2, 2, 2, 2], None, 429), (10, 3, [9], None, 429),
        (10_000, 0, [], None, 1000),
    ],
)  # fmt: skip
def test_the_rule_of_promises(quota: int, most: int, promised: list[int], asked: int | None, given: int | None) -> None:
    quotas = Quotas(Settings(api_keys=("x",), max_session_bytes=1000, max_key_bytes=quota, max_key_sessions=most))
    limits = None if asked is None else {"max_session_bytes": asked}

    def promise() -> int | None:
        with quotas.reserve(key(), promised, limits) as found:
            return (found or {}).get("max_session_bytes")

    if given == 429:
        with pytest.raises(TooManyRequests):
            promise()
    else:
        assert promise() == given


def test_a_full_server_is_the_fault_of_who_fills_it() -> None:
    """429 for who can make room, 503 for who can only wait."""
    with limited(max_sessions=2) as (_, http, other):
        for _ in range(2):
            http.post("/v1/sessions")
        mine = refused(http.post("/v1/sessions"), "max_sessions")
        assert "delete a session" in mine["detail"]
        theirs = problem(answer := other.post("/v1/sessions"), 503, "unavailable")
        assert theirs["extra"]["setting"] == "GRADWIRE_MAX_SESSIONS"
        assert theirs["retryable"]
        assert answer.headers["retry-after"]


# Wrong keys


@pytest.fixture
def guessing() -> Iterator[tuple[LiveServer, Callable[[str], httpx.Response]]]:
    with live_server(max_key_failures=5) as server, httpx.Client(base_url=server.url) as anybody:
        yield server, lambda text: anybody.get("/v1/version", headers={"X-API-Key": text})


def test_an_address_that_guesses_is_turned_away(guessing: tuple[LiveServer, Callable[[str], httpx.Response]]) -> None:
    server, ask = guessing
    assert [ask(f"guess {i}").status_code for i in range(7)] == [401] * 5 + [429] * 2
    found = refused(ask("guess"), "max_key_failures")
    assert 50 < found["extra"]["retry_after_s"] <= 60
    refused(ask(server.api_key), "max_key_failures")
    assert httpx.get(f"{server.url}/livez").status_code == 200


def test_who_was_in_before_stays_in(guessing: tuple[LiveServer, Callable[[str], httpx.Response]]) -> None:
    """One program with a wrong key does not lock out its neighbours behind the same address."""
    server, ask = guessing
    assert ask(server.api_key).status_code == 200
    for i in range(7):
        ask(f"guess {i}")
    assert ask(server.api_key).status_code == 200
    refused(ask(server.other_key), "max_key_failures")


def test_a_wrong_ticket_is_a_guess(guessing: tuple[LiveServer, Callable[[str], httpx.Response]]) -> None:
    server, ask = guessing
    for i in range(6):
        with pytest.raises(InvalidStatus) as met, connect(f"{server.stream_url}s_1/stream?ticket=guess{i}"):
            pass
        assert met.value.response.status_code == (401 if i < 5 else 429)
    refused(ask(server.api_key), "max_key_failures")


def test_no_key_is_no_guess(guessing: tuple[LiveServer, Callable[[str], httpx.Response]]) -> None:
    server, ask = guessing
    assert {httpx.get(f"{server.url}/v1/version").status_code for _ in range(10)} == {401}
    assert ask(server.api_key).status_code == 200


def test_addresses_of_one_ipv6_network_are_one() -> None:
    rates = Rates(Settings(api_keys=("x",), max_key_failures=2))
    assert [rates.failed(f"2001:db8::{i}") for i in (1, 2)] == [False, True]
    with pytest.raises(TooManyRequests):
        rates.check_address("2001:db8::3", "digest")
    rates.check_address("2001:db8:0:1::3", "digest")
    rates.check_address("192.0.2.1", "digest")
