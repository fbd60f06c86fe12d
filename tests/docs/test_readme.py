"""The code blocks of README.md and docs/ run and print what the page says. See :mod:`tests.docs.blocks`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.documents import blocks, pages, script

from tests.docs.blocks import Expectation, expectations
from tests.live_server import SOURCES, server_process


def pages_with(language: str) -> list[Path]:
    return [page for page in pages() if page.exists() and blocks(page, language)]


def environment(**more: str) -> dict[str, str]:
    """The environment without a configured server, and with this Python's commands on the path."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", "")])
    return inherited | {"PATH": path, "PYTHONPATH": SOURCES} | more


def check(program: str, folder: Path) -> None:
    """Run a program on an embedded server and compare what it prints with what it says."""
    path, notes = folder / "page.py", folder / "notes.json"
    path.write_text(program, encoding="utf-8")
    command = [sys.executable, str(Path(__file__).with_name("listen.py")), str(path), str(notes)]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr
    heard = json.loads(notes.read_text(encoding="utf-8"))
    for expected in expectations(program):
        printed = "".join(text for line, text in heard if expected.first <= line <= expected.last)
        assert expected.agrees(printed), f"line {expected.first} prints\n{printed}\ninstead of\n{expected.text}"


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.name)
def test_python_of_a_page_runs_and_prints_what_it_says(page, tmp_path) -> None:
    check(script(blocks(page, "python")), tmp_path)


@pytest.mark.parametrize("page", pages_with("bash"), ids=lambda page: page.name)
def test_commands_of_a_page_run(page, tmp_path) -> None:
    """One shell a page, in an empty folder, with GRADWIRE_URL and GRADWIRE_API_KEY of a server."""
    program = "set -euo pipefail\n" + "\n".join(block.code for block in blocks(page, "bash"))
    with server_process() as server:
        where = environment(GRADWIRE_URL=server.url, GRADWIRE_API_KEY=server.api_key)
        done = subprocess.run(
            ["bash", "-c", program], cwd=tmp_path, env=where, capture_output=True, text=True, timeout=400, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", pages_with("json"), ids=lambda page: page.name)
def test_frames_of_a_page_are_applied_without_an_error(page) -> None:
    """A block of JSON with a structure or ops is a frame. Those of a page are sent to one session, one after the other,
    so that they find what earlier ones named."""
    frames = [json.loads(block.code) for block in blocks(page, "json")]
    with server_process() as server, server.http() as http:
        session = http.post("/v1/sessions").json()["id"]
        for frame in frames:
            if "structure" in frame or "ops" in frame:
                reply = http.post(f"/v1/sessions/{session}/frames", json=frame)
                assert reply.status_code == 200, reply.text
                assert reply.json().get("errors", []) == []


# The convention itself

PROGRAM = """\
import gradwire as torch
x = torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)
(x ** 2).mean().backward()
print(x.grad)
# tensor([[0.5000, 1.0000],
#         [1.5000, 2.0000]])
if True:
    print(x.sum().item(), "# no comment")  # 10.0 # no comment
"""


def test_comments_behind_a_print_say_what_it_prints() -> None:
    assert [(e.first, e.text) for e in expectations(PROGRAM)] == [
        (4, "tensor([[0.5000, 1.0000],\n[1.5000, 2.0000]])"),
        (8, "10.0 # no comment"),
    ]


def test_a_program_that_says_the_truth_passes(tmp_path) -> None:
    check(PROGRAM, tmp_path)


def test_one_that_does_not_is_caught(tmp_path) -> None:
    with pytest.raises(AssertionError, match=r"line 2 prints\s+4"):
        check("x = 2\nprint(x + x)  # 5\n", tmp_path)


@pytest.mark.parametrize(
    ("said", "printed", "agrees"),
    [
        ("tensor([1., 2.])", "tensor([1., 2.])\n", True),
        ("a\n   b", "a b\n", True),
        ("a b", "ab\n", False),
        ("loss 0...", "loss 0.123\n", True),
        ("... ops in ... frames", "12 ops in 3 frames\n", True),
        ("loss 0...", "gain 0.123\n", False),
        ("1", "11\n", False),
    ],
)
def test_what_agrees(said, printed, agrees) -> None:
    assert Expectation(1, 1, said).agrees(printed) is agrees
