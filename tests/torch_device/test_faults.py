"""Cut connections, and a server that is killed and started again, cost a program of PyTorch's nothing but time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
import torch
from torch import nn

import gradwire as gw
import gradwire_torch
from gradwire._core.session import current_session
from gradwire._core.wire.embedded_server import embedded_server
from tests.cutting_relay import Cut, cutting_relay
from tests.live_server import API_KEY
from tests.soak.kills import Killer, MortalServer

gradwire_torch.register()
STEPS = 12


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The session is the one of before."""
    before = current_session._current
    yield
    current_session._current = before


def train(steps: int = STEPS) -> tuple[list[float], bytes]:
    """The losses and the bytes of the weights of a run with the server's random numbers, uploads, and reads."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.2), nn.LayerNorm(16), nn.Linear(16, 1))
    model.to("gradwire")
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    losses = []
    for step in range(steps):
        x = torch.randn(32, 6, generator=torch.Generator().manual_seed(step)).to("gradwire", non_blocking=True)
        optimizer.zero_grad()
        loss = (model(x) + 0.1 * torch.randn(32, 1, device="gradwire")).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    return losses, weights.cpu().numpy().tobytes()


@pytest.fixture(scope="module")
def undisturbed() -> Any:
    """What an undisturbed run ends with, and the bytes that it sends and gets."""
    before = current_session._current
    server = embedded_server()
    port = urlsplit(server.url).port
    assert port is not None
    direct = gw.open_session(server.url, server.api_key, seed=5)
    with cutting_relay(port) as relay:
        session = gw.connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id)
        end = train()
        passed = relay.passed[0].up, relay.passed[0].down
        session.close()
    direct.close()
    current_session._current = before
    return end, passed


CUTS = {
    "in the middle of what is sent": lambda up, down: [Cut(up // 2, "up", "rst")],
    "in the middle of what is answered": lambda up, down: [Cut(down // 2, "down", "fin")],
    "again and again": lambda up, down: [
        Cut((up if i % 2 else down) // 7 + 131 * i, "up" if i % 2 else "down", "rst" if i % 3 else "fin")
        for i in range(6)
    ],
}


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_connection_changes_no_bit(name: str, undisturbed: Any) -> None:
    end, (up, down) = undisturbed
    server = embedded_server()
    port = urlsplit(server.url).port
    assert port is not None
    direct = gw.open_session(server.url, server.api_key, seed=5)
    with cutting_relay(port, CUTS[name](up, down)) as relay:
        url = f"http://127.0.0.1:{relay.port}"
        session = gw.connect(url, server.api_key, session=direct.id, patience=120)
        assert train() == end
        assert session.link.reconnects > 0
        session.close()
    direct.close()


def test_a_server_that_is_killed_and_restarted_changes_no_bit(undisturbed: Any, tmp_path: Any) -> None:
    with patch("gradwire._core.wire.retry.LONGEST_PAUSE_S", 0.2):
        server = MortalServer(tmp_path / "data")
        try:
            with gw.connect(server.url, API_KEY, seed=5, durability="durable", patience=120) as session:
                killer = Killer(server, session, [3, 8], seed=1, again=0)
                killer.start()
                assert train() == undisturbed[0]
                killer.join(60)
                assert killer.failure is None and killer.kills == 2
                assert session.stats()["reconnects"] >= 2
        finally:
            server.kill()


def test_a_server_that_stays_away_is_a_typed_error_and_no_end() -> None:
    server = embedded_server()
    port = urlsplit(server.url).port
    assert port is not None
    direct = gw.open_session(server.url, server.api_key)
    with cutting_relay(port) as relay:
        session = gw.connect(f"http://127.0.0.1:{relay.port}", server.api_key, session=direct.id, patience=0.3)
        x = torch.ones(3, device="gradwire")
        assert x.tolist() == [1, 1, 1]
        relay.block()
        time.sleep(0.1)
        with pytest.raises(gw.ConnectionLost):
            (x + 1).tolist()
        relay.unblock()
        assert (x + 1).tolist() == [2, 2, 2]
        session.close()
    direct.close()
