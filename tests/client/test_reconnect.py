"""Cutting a connection, anywhere and often, changes nothing but a program's duration."""

from __future__ import annotations

import _thread
import random
import threading
import time
from unittest.mock import patch
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.cutting_relay import Cut, cutting_relay
from tests.live_server import live_server

import gradwire
from gradwire._core.session.current_session import connect
from gradwire._core.wire.embedded_server import embedded_server
from gradwire._core.wire.retry import RetryPolicy
from gradwire._core.wire.send_window import IN_FLIGHT_FRAMES


@pytest.fixture(autouse=True)
def restore_session():
    """Leave the default session as it was."""
    from gradwire._core.session import current_session as module

    before = module._current
    yield
    module._current = before


def train(steps: int) -> tuple[np.ndarray, list[float], int]:
    """A small training run with reads, uploads, random numbers; its final weights, losses, and frames."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((steps, 16, 8)).astype(np.float32)
    gradwire.manual_seed(7)
    first = gradwire.randn(8, 8, requires_grad=True)
    second = gradwire.randn(8, 1, requires_grad=True)
    losses = []
    for step in range(steps):
        x = gradwire.tensor(inputs[step])
        loss = ((x @ first).tanh() @ second - 1).square().mean()
        loss.backward()
        with gradwire.no_grad():
            for weight in (first, second):
                weight -= 0.1 * weight.grad
                weight.grad = None
        if step % 3 == 0:
            losses.append(loss.item())
    return np.concatenate([first.detach().numpy().ravel(), second.detach().numpy().ravel()]), losses, step


def run_once(cuts: list[int], steps: int = 24):
    server = embedded_server()
    port = urlsplit(server.url).port
    assert port is not None
    with cutting_relay(port, cuts) as relay:
        # The session is made directly: only the stream goes through the relay.
        direct = gradwire.open_session(server.url, server.api_key)
        session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=120)
        weights, losses, _ = train(steps)
        applied = direct.describe()["contents"]["frames_applied"]
        sent = session.frames
        reconnects = session.link.reconnects
        session.close()
        direct.close()
    return weights, losses, applied, sent, reconnects


@pytest.fixture(scope="module")
def uncut():
    return run_once([])


@pytest.mark.parametrize("seed", range(6))
def test_a_run_cut_at_random_points_ends_with_the_same_bits(uncut, seed):
    rng = random.Random(seed)
    cuts = [rng.randrange(1, 6000) for _ in range(12)]
    weights, losses, applied, sent, reconnects = run_once(cuts)
    assert reconnects > 0
    assert losses == uncut[1]
    assert weights.tobytes() == uncut[0].tobytes()
    assert applied == sent


def test_a_large_upload_and_download_survive_a_cut():
    server = embedded_server()
    port = urlsplit(server.url).port
    assert port is not None
    values = np.random.default_rng(1).standard_normal(2_000_000).astype(np.float32)
    direct = gradwire.open_session(server.url, server.api_key)
    with cutting_relay(port, [3_000_000, 9_000_000, 5_000_000]) as relay:
        session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=120)
        x = gradwire.tensor(values)
        np.testing.assert_array_equal((x * 1).numpy(), values)
        assert session.link.reconnects >= 2
        session.close()
    direct.close()


def test_patience_ends_with_a_typed_error():
    server = embedded_server()
    port = urlsplit(server.url).port
    assert port is not None
    direct = gradwire.open_session(server.url, server.api_key)
    with cutting_relay(port, [1500]) as relay:
        session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=0.3)
        x = gradwire.ones(4)
        relay.close()
        with pytest.raises(gradwire.ConnectionLost, match="frames"):
            for _ in range(200):
                (x + 1).tolist()
        session.builder.close()
    direct.close()


def test_a_refused_frame_is_named_and_the_session_goes_on():
    with live_server(max_ops_per_frame=20) as server:
        session = connect(server.url, server.api_key)
        # As a client would that does not know the server's limit.
        session.builder.pieces.most = session.builder.limit = 10**9
        with session.lock:  # or the frame may be cut when the program seems quiet
            y = gradwire.tensor([1.0, 2.0])
            for _ in range(30):
                y = y + 1
            with pytest.raises(gradwire.LimitExceeded, match="GRADWIRE_MAX_OPS_PER_FRAME"):
                y.tolist()
        z = gradwire.tensor([3.0])
        assert (z * 2).tolist() == [6.0]
        session.close()


# What the program sees of it


@pytest.fixture
def relayed():
    """A session through a relay, which can be blocked; ``relayed(patience=...)`` opens it."""
    server = embedded_server()
    port = urlsplit(server.url).port
    assert port is not None
    opened = []
    with cutting_relay(port) as relay:

        def start(**options):
            direct = gradwire.open_session(server.url, server.api_key)
            opened.append(direct)
            session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, **options)
            opened.append(session)
            session.direct = direct
            return session

        start.relay = relay
        yield start
        relay.unblock()
        for each in reversed(opened):
            each.close()


def applied(session):
    return session.direct.describe()["contents"]["frames_applied"]


def test_connection_lost_names_what_is_applied_and_what_is_not_and_the_next_use_goes_on(relayed):
    session = relayed(patience=0.3)
    x = gradwire.ones(3)
    assert x.tolist() == [1, 1, 1]
    done = session.stats()["acknowledged"]
    relayed.relay.block()
    with pytest.raises(gradwire.ConnectionLost) as caught, session.lock:
        x += 1
        x *= 3
        x.tolist()
    text = str(caught.value)
    assert f"frames up to {done} are applied; frame {done + 1} (2 ops, issued from" in text
    assert "test_reconnect.py" in text
    assert "Nothing is lost:" in text
    assert caught.value.details["answered"] == done
    assert caught.value.details["ops"] == 2
    with pytest.raises(gradwire.ConnectionLost):
        x.tolist()
    session.link._patience = RetryPolicy(120)
    relayed.relay.unblock()
    assert x.tolist() == [6, 6, 6]  # once: neither lost nor doubled
    assert applied(session) == session.frames


def test_a_program_that_reads_nothing_goes_on_while_the_server_cannot_be_reached(relayed):
    session = relayed(patience=120)
    x = gradwire.zeros(2)
    x.tolist()
    relayed.relay.block()
    for _ in range(50):
        x += 1
        session.flush()
    assert session.stats()["unanswered"] > 40
    relayed.relay.unblock()
    assert x.tolist() == [50, 50]
    assert applied(session) == session.frames
    assert session.stats()["unanswered"] == 0


def test_what_waits_for_the_server_is_bounded_in_frames_and_nothing_is_recorded_twice(relayed):
    session = relayed(patience=0.2)
    with session.lock:
        x = gradwire.zeros(2)
        x.tolist()
        relayed.relay.block()
        for _ in range(IN_FLIGHT_FRAMES):
            x += 1
            session.flush()
        assert session.stats()["unanswered"] == IN_FLIGHT_FRAMES
        x += 1
        assert session.flush() is None  # it stays recorded, and goes with the next frame that can be sent
        session.builder.pieces.most = session.builder.limit = 3
        count = IN_FLIGHT_FRAMES + 1
        with pytest.raises(gradwire.ConnectionLost):
            for _ in range(10):
                x += 1
                count += 1
        session.link._patience = RetryPolicy(120)
        relayed.relay.unblock()
        assert x.tolist() == [count] * 2  # the line that raised had no effect, all before it have theirs


def test_what_waits_for_the_server_is_bounded_in_bytes(relayed):
    with patch("gradwire._core.wire.send_window.IN_FLIGHT_BYTES", 1 << 20):
        session = relayed(patience=0.2)
    blocks = np.arange(20, dtype=np.float32)[:, None] + np.ones(50_000, np.float32)  # the same would not be sent again
    kept = []
    with session.lock:
        session.synchronize()
        relayed.relay.block()
        for block in blocks:
            kept.append(gradwire.tensor(block))
            session.flush()
        stats = session.stats()
        assert stats["unanswered_bytes"] <= 1 << 20
        assert 3 <= stats["unanswered"] <= 5
        session.link._patience = RetryPolicy(120)
        relayed.relay.unblock()
        assert sum(kept).tolist() == blocks.sum(0).tolist()
        assert applied(session) == session.frames


def test_a_frame_larger_than_the_bound_goes_alone(relayed):
    with patch("gradwire._core.wire.send_window.IN_FLIGHT_BYTES", 1 << 20):
        session = relayed(patience=120)
    values = np.arange(1_000_000, dtype=np.float32)
    kept = [gradwire.tensor(values) for _ in range(3)]
    assert (kept[0] + kept[1] + kept[2])[-1].item() == 3 * 999_999
    assert session.stats()["unanswered"] == 0


def test_an_interrupt_during_a_reconnect_leaves_everything_usable(relayed):
    session = relayed(patience=120)
    x = gradwire.ones(2)
    x.tolist()
    relayed.relay.block()
    x += 1
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        x.tolist()
    relayed.relay.unblock()
    assert x.tolist() == [2, 2]
    assert applied(session) == session.frames
    assert not session.link._answers  # nobody waits for the answer to the read that was given up


def test_an_interrupt_in_the_middle_of_a_message_leaves_everything_usable(relayed):
    session = relayed(patience=120)
    x = gradwire.ones(2)
    x.tolist()
    write = session.link._way.connection._write
    calls = []

    def interrupted(view, wait=None):
        calls.append(1)
        write(view[: len(view) // 2])
        raise KeyboardInterrupt

    with session.lock:
        session.link._way.connection._write = interrupted
        x += 1
        with pytest.raises(KeyboardInterrupt):
            x.tolist()
        assert calls
        assert x.tolist() == [2, 2]
    assert session.stats()["reconnects"] == 1


def test_a_session_that_ended_while_nobody_was_connected_is_gone(relayed):
    session = relayed(patience=120)
    x = gradwire.ones(2)
    x.tolist()
    relayed.relay.block()
    time.sleep(0.2)
    session.direct.rest.delete(f"/v1/sessions/{session.id}")
    relayed.relay.unblock()
    for _ in range(2):  # and it stays gone
        with pytest.raises(gradwire.SessionGone, match="was deleted") as caught:
            x.tolist()
        assert f"Frames up to {caught.value.details['answered']} were acknowledged; frame" in str(caught.value)


def test_replies_that_were_not_taken_in_are_kept_however_many_bytes_they_have():
    """The server may forget replies beyond a bound. What this client lets run ahead stays below it."""
    with (
        patch("gradwire._core.wire.send_window.IN_FLIGHT_READS", 4000),
        patch("gradwire_engine.session.clients.REPLY_BYTES_KEPT", 8000),
        live_server() as server,
    ):
        port = urlsplit(server.url).port
        assert port is not None
        direct = gradwire.open_session(server.url, server.api_key)
        sizes = [200, 700, 100, 3000, 50, 50, 900, 20_000, 10, 300, 5000, 1, 1, 800, 800]
        for cut in (700, 1500, 4000, 9000, 16_000, 30_000, 60_000, 100_000):
            with cutting_relay(port, [Cut(cut, "down", "rst")]) as relay:
                session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=120)
                with session.lock:
                    kept = [gradwire.full((n,), float(i)) for i, n in enumerate(sizes)]
                    answers = [session.ask([t]) for t in kept]
                    for i, (n, answer) in enumerate(zip(sizes, answers, strict=True)):
                        assert answer()[0].tolist() == [float(i)] * n
                session.close()
        direct.close()


def test_a_post_whose_answer_was_lost_starts_no_second_session():
    with live_server() as server:
        port = urlsplit(server.url).port
        assert port is not None
        for cut in (Cut(5, "down"), Cut(5, "down", "rst"), Cut(5, "up")):
            with cutting_relay(port, [cut, cut]) as relay:
                session = connect(f"http://127.0.0.1:{relay.port}", server.api_key)
                with server.http() as http:
                    assert [row["id"] for row in http.get("/v1/sessions").json()["sessions"]] == [session.id]
                session.close()


def test_the_environment_says_how_patient_a_program_is(monkeypatch):
    server = embedded_server()
    monkeypatch.setenv("GRADWIRE_PATIENCE", "3.5")
    monkeypatch.setenv("GRADWIRE_HEARTBEAT", "4")
    with gradwire.open_session(server.url, server.api_key) as session:
        assert session.link.patience == 3.5
        assert session.link.heartbeat == 4
    with gradwire.open_session(server.url, server.api_key, patience=9) as session:
        assert session.link.patience == 9
