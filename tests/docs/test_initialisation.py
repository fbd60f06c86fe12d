"""The initial values in docs/http.md are those of PyTorch's modules: as the modules of ``gradwire.nn`` draw them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tools.documents import REPOSITORY

import gradwire as torch
from gradwire import nn
from tests.live_server import live_server

PAGE = (REPOSITORY / "docs" / "http.md").read_text(encoding="utf-8")
SEED = 3

Size = list[int]


def uniform(bound: float, *sizes: Size) -> list[Any]:
    """The records that the page says, for parameters in ±bound."""
    ops: list[Any] = []
    for i, size in enumerate(sizes):
        ops += [["empty", [size], f"p{i}"], ["uniform_", [f"p{i}", -bound, bound]]]
    return ops


CASES: dict[str, tuple[Callable[[], nn.Module], list[Any]]] = {
    "Linear": (lambda: nn.Linear(64, 32), uniform(64**-0.5, [32, 64], [32])),
    "Conv2d": (lambda: nn.Conv2d(6, 8, 3, groups=2), uniform((6 / 2 * 3 * 3) ** -0.5, [8, 3, 3, 3], [8])),
    "Embedding": (lambda: nn.Embedding(10, 4), [["randn", [[10, 4]], "p0"]]),
    "LayerNorm": (lambda: nn.LayerNorm(5), [["ones", [[5]], "p0"], ["zeros", [[5]], "p1"]]),
    "LSTM": (lambda: nn.LSTM(3, 4), uniform(4**-0.5, [16, 3], [16, 4], [16], [16])),
}


@pytest.mark.parametrize("layer", re.findall(r"^\| (\w+)\(.*`\w+` \|", PAGE, re.MULTILINE))
def test_the_initial_values_of_a_layer_are_those_of_its_module(layer: str) -> None:
    make, ops = CASES[layer]
    with live_server() as server, server.http() as http:
        with torch.connect(server.url, server.api_key):
            torch.manual_seed(SEED)
            wanted = [parameter.detach().numpy() for parameter in make().parameters()]
        session = http.post("/v1/sessions", json={}).headers["location"]
        frame = {"ops": [["manual_seed", [SEED]], *ops], "reads": [f"p{i}" for i in range(len(wanted))]}
        reply = http.post(f"{session}/frames", json=frame).json()
    assert "errors" not in reply
    for value, parameter in zip(reply["values"], wanted, strict=True):
        np.testing.assert_array_equal(np.array(value["values"], np.float32), parameter)


def test_the_page_has_all_cases() -> None:
    assert set(re.findall(r"^\| (\w+)\(.*`\w+` \|", PAGE, re.MULTILINE)) == set(CASES)
