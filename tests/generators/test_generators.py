"""Clients that code generators make of the OpenAPI document compile, and train as our own client does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from sklearn.datasets import load_digits

import gradwire
import gradwire.nn.functional as F
from tests.generators.toolchain import LOOPS, Loop, Work, python_environment, run
from tests.live_server import LiveServer, live_server


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as found:
        yield found


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Digits, the weights of a small MLP, and how to train it."""
    pixels, labels = load_digits(return_X_y=True)
    generator = np.random.default_rng(0)
    sizes = [(32, 64), (32,), (10, 32), (10,)]
    weights = [generator.uniform(-1, 1, size) / np.sqrt(size[-1]) for size in sizes]
    return {
        "x": (pixels[:128] / 16).tolist(),
        "target": labels[:128].tolist(),
        "weights": [each.astype(np.float32).tolist() for each in weights],
        "lr": 0.5,
        "steps": 20,
    }


@pytest.fixture(scope="module")
def expected(server: LiveServer, data: dict[str, Any]) -> list[float]:
    """The losses by our own client."""
    with gradwire.connect(server.url, server.api_key):
        x, target = gradwire.tensor(data["x"]), gradwire.tensor(data["target"])
        weights = [gradwire.tensor(values, requires_grad=True) for values in data["weights"]]
        w1, b1, w2, b2 = weights
        optimizer = gradwire.optim.SGD(weights, lr=data["lr"])
        losses = []
        for _ in range(data["steps"]):
            optimizer.zero_grad()
            loss = F.cross_entropy(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def test_the_document_is_valid(server: LiveServer, tmp_path: Path) -> None:
    path = tmp_path / "openapi.json"
    # The other document only has more schemas of ops, which tests/protocol/test_record_schemas.py checks.
    path.write_bytes(httpx.get(f"{server.url}/openapi.json?ops=false").content)
    assert run(python_environment() / "openapi-spec-validator", path, cwd=tmp_path).endswith(": OK\n")


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_generated_client_trains(
    loop: Loop, server: LiveServer, data: dict[str, Any], expected: list[float], tmp_path: Path
) -> None:
    documents = [tmp_path / name for name in ("openapi.json", "short.json")]
    for path, query in zip(documents, ("", "?ops=false"), strict=True):
        path.write_bytes(httpx.get(f"{server.url}/openapi.json{query}").content)
    file, folder = tmp_path / "data.json", tmp_path / "client"
    file.write_text(json.dumps(data), encoding="utf-8")
    folder.mkdir()
    losses = json.loads(loop(Work(folder, *documents, (server.url, server.api_key, str(file)))))
    assert len(losses) == data["steps"] and losses[-1] < 0.5 * losses[0]
    np.testing.assert_allclose(losses, expected, atol=1e-5)
