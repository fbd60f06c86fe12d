"""Signed passes: only what a gateway signed a moment ago for this worker and session is accepted, a stream once."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradwire_protocol.errors import Unauthorized, Unavailable
from gradwire_server.auth.keys import Key
from gradwire_server.auth.passes import LIFETIMES_S, SKEW_S, PassMint, PassVerifier

SECRET = bytes(range(32))
SESSION, WORKER = "s_1", "w_1"
KEY = Key(
    id="k_1", digest="d" * 64, name="a key", tenant="t_1", scopes=["read", "session"], created=1.0, last_used=2.0,
    quotas={"max_key_sessions": 3}, kept="file",
)  # fmt: skip


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def reason(verifier: PassVerifier, text: str, kind: Any = "stream", session: str | None = SESSION) -> str:
    """Why a pass is refused."""
    with pytest.raises(Unauthorized) as refused:
        verifier.check(text, kind, session)
    return str(refused.value.details["reason"])


def both(**more: Any) -> tuple[PassMint, PassVerifier, Clock]:
    clock = Clock()
    return PassMint(SECRET, clock), PassVerifier(SECRET, WORKER, clock, **more), clock


def test_a_pass_carries_the_key_without_its_digest() -> None:
    mint, verifier, _ = both()
    text = mint.stream(KEY, SESSION, WORKER)
    key = verifier.check(text, "stream", SESSION).bearer.key()
    assert (key.id, key.name, key.tenant, key.scopes, key.quotas) == ("k_1", "a key", "t_1", KEY.scopes, KEY.quotas)
    assert key.digest == ""
    body = text.partition(".")[0]
    assert KEY.digest not in base64.urlsafe_b64decode(body + "==").decode()


def test_a_stream_pass_is_accepted_once() -> None:
    mint, verifier, clock = both()
    text = mint.stream(KEY, SESSION, WORKER)
    verifier.check(text, "stream", SESSION)
    assert reason(verifier, text) == "used"
    clock.now += LIFETIMES_S["stream"]
    assert reason(verifier, text) == "used"


def test_a_request_pass_is_accepted_again() -> None:
    mint, verifier, _ = both()
    text = mint.request(KEY, SESSION, WORKER)
    for _ in range(3):
        assert verifier.check(text, "request", SESSION).session == SESSION


def test_a_refused_pass_is_not_used_up() -> None:
    mint, verifier, _ = both()
    text = mint.stream(KEY, SESSION, WORKER)
    assert reason(verifier, text, session="s_2") == "session"
    verifier.check(text, "stream", SESSION)


def test_a_pass_is_for_its_kind_session_and_worker_only() -> None:
    mint, verifier, clock = both()
    assert reason(verifier, mint.request(KEY, SESSION, WORKER)) == "kind"
    assert reason(verifier, mint.stream(KEY, SESSION, WORKER), "request") == "kind"
    assert reason(verifier, mint.stream(KEY, "s_2", WORKER)) == "session"
    assert reason(verifier, mint.stream(KEY, SESSION, "w_2")) == "worker"
    restarted = PassVerifier(SECRET, "w_1b", clock)
    assert reason(restarted, mint.stream(KEY, SESSION, WORKER)) == "worker"
    assert verifier.check(mint.request(KEY, SESSION, WORKER), "request", None).session == SESSION


@pytest.mark.parametrize("kind", ["stream", "request"])
@pytest.mark.parametrize("skew", [-SKEW_S, 0.0, SKEW_S])
def test_a_pass_lives_for_its_time_whatever_the_clocks_differ(kind: Any, skew: float) -> None:
    mint, verifier, clock = both()
    make = getattr(mint, kind)
    text = make(KEY, SESSION, WORKER)
    clock.now += skew  # of the worker's clock
    verifier.check(text, kind, SESSION)
    text = make(KEY, SESSION, WORKER)
    clock.now += LIFETIMES_S[kind] + SKEW_S + 0.01
    assert reason(verifier, text, kind) == "expired"


def test_a_pass_from_the_future_is_refused() -> None:
    mint, verifier, clock = both()
    text = mint.stream(KEY, SESSION, WORKER)
    clock.now -= SKEW_S + 0.01
    with pytest.raises(Unauthorized, match="longer than any") as refused:
        verifier.check(text, "stream", SESSION)
    assert refused.value.details["reason"] == "expired"


def test_another_secret_signs_nothing_here() -> None:
    _, verifier, clock = both()
    assert reason(verifier, PassMint(bytes(32), clock).stream(KEY, SESSION, WORKER)) == "damaged"


def test_a_short_secret_is_refused() -> None:
    for make in (lambda: PassMint(b"short"), lambda: PassVerifier(b"short", WORKER)):
        with pytest.raises(ValueError, match="5 bytes"):
            make()


def test_ended_keys_are_refused_for_good() -> None:
    mint, verifier, _ = both()
    verifier.end_keys(["k_0", "k_1"])
    assert reason(verifier, mint.stream(KEY, SESSION, WORKER)) == "key_ended"
    assert not verifier.is_valid(KEY)
    assert verifier.is_valid(Key(id="k_2", digest="", name="", tenant="t", scopes=[]))


def test_a_key_that_expires_before_its_pass_is_refused() -> None:
    mint, verifier, clock = both()
    key = Key(id="k_2", digest="", name="", tenant="t", scopes=[], expires=clock.now + 5)
    text = mint.stream(key, SESSION, WORKER)
    clock.now += 6
    assert reason(verifier, text) == "key_ended"
    assert not verifier.is_valid(key)


def test_the_memory_of_used_passes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = [0.0]
    monkeypatch.setattr("gradwire_server.auth.passes.time.monotonic", lambda: ticks[0])
    mint, verifier, clock = both(most=3)
    for _ in range(3):
        verifier.check(mint.stream(KEY, SESSION, WORKER), "stream", SESSION)
    waiting = mint.stream(KEY, SESSION, WORKER)
    with pytest.raises(Unavailable, match="3 streams"):
        verifier.check(waiting, "stream", SESSION)
    ticks[0] += LIFETIMES_S["stream"] + 2 * SKEW_S
    clock.now += LIFETIMES_S["stream"]
    verifier.check(waiting, "stream", SESSION)
    assert len(verifier._used) == 1


@given(at=st.integers(0, 10_000), char=st.characters())
def test_a_changed_character_is_noticed(at: int, char: str) -> None:
    mint, verifier, _ = both()
    text = mint.stream(KEY, SESSION, WORKER)
    at %= len(text)
    changed = text[:at] + char + text[at + 1 :]
    if changed != text:
        assert reason(verifier, changed) == "damaged"


@given(cut=st.integers(0, 10_000), more=st.text(max_size=8))
def test_a_shorter_or_longer_text_is_noticed(cut: int, more: str) -> None:
    mint, verifier, _ = both()
    text = mint.stream(KEY, SESSION, WORKER)
    changed = text[: cut % len(text)] + more
    if changed != text:
        assert reason(verifier, changed) == "damaged"
    if more:
        assert reason(verifier, text + more) == "damaged"


@given(st.sampled_from(["kind", "session", "worker", "nonce", "expires"]), st.text(min_size=1))
def test_changed_content_is_noticed(name: str, value: str) -> None:
    mint, verifier, _ = both()
    body, _, signature = mint.stream(KEY, SESSION, WORKER).partition(".")
    content = json.loads(base64.urlsafe_b64decode(body + "=="))
    content[name] = value
    forged = base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
    assert reason(verifier, f"{forged}.{signature}") == "damaged"


@given(st.text())
def test_any_other_text_is_no_pass(text: str) -> None:
    _, verifier, _ = both()
    assert reason(verifier, text) == "damaged"


@given(st.lists(st.sampled_from(["read", "session", "admin"]), unique=True), st.text(), st.text(), st.text())
def test_every_key_arrives_as_it_was(scopes: list[str], name: str, tenant: str, session: str) -> None:
    mint, verifier, _ = both()
    key = Key(id="k_3", digest="d", name=name, tenant=tenant, scopes=scopes, expires=2_000_000.5, kept="setting")
    found = verifier.check(mint.request(key, session, WORKER), "request", session).bearer.key()
    assert (found.name, found.tenant, found.scopes, found.expires) == (name, tenant, scopes, key.expires)
