"""A connection that is cut, anywhere and often, changes nothing but the time a program takes."""

from __future__ import annotations

import random
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.cutting_relay import cutting_relay
from tests.live_server import live_server

import gradwire
from gradwire.embedded import embedded_server
from gradwire.sessions import connect


@pytest.fixture(autouse=True)
def restore_session():
    """Leave the default session as it was."""
    from gradwire import sessions as module

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
        session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=20)
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
        session = connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=20)
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
        session.closed = True
    direct.close()


def test_a_refused_frame_is_named_and_the_session_goes_on():
    with live_server(max_ops_per_frame=20) as server:
        session = connect(server.url, server.api_key)
        session._limit = 10**9  # as a client would that does not know the server's limit
        with session.lock:  # or the frame may be cut when the program seems quiet
            y = gradwire.tensor([1.0, 2.0])
            for _ in range(30):
                y = y + 1
            with pytest.raises(gradwire.LimitExceeded, match="GRADWIRE_MAX_OPS_PER_FRAME"):
                y.tolist()
        z = gradwire.tensor([3.0])
        assert (z * 2).tolist() == [6.0]
        session.close()
