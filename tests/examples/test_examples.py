"""The examples, run as a user runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.live_server import SOURCES, server_process

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the sources on the path and no server configured but the one given here."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    inherited |= {"PYTHONPATH": SOURCES, "PYTHON": sys.executable, **environment}
    return subprocess.run(command, env=inherited, capture_output=True, text=True, timeout=400, check=False)


def reached(output: str) -> list[float]:
    """The accuracies that were told, in percent."""
    return [float(found) for found in re.findall(r"accuracy on held-out digits ([\d.]+)%", output)]


def test_the_demo_learns_digits_on_an_embedded_server() -> None:
    done = run(sys.executable, str(EXAMPLES / "digits.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    told = reached(done.stdout)
    assert len(told) == 15
    assert told[-1] > 96
    assert re.search(r"[\d,]+ ops in [\d,]+ frames and \d+ round trips, [\d.]+ MB sent", done.stdout)


def test_a_training_step_of_the_demo_costs_no_round_trip() -> None:
    done = run(sys.executable, str(EXAMPLES / "digits.py"), "--epochs", "3")
    told = re.search(r"and (\d+) round trips", done.stdout)
    assert told is not None, done.stdout + done.stderr
    assert int(told[1]) <= 10  # three epochs of 21 steps, in each of which two values are printed


def test_the_demo_uses_the_server_it_is_told_and_says_when_it_has_not_learned() -> None:
    with server_process() as server:
        where = {"GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
        done = run(sys.executable, str(EXAMPLES / "digits.py"), "--epochs", "0", **where)
        assert server.url in done.stdout
        assert done.returncode == 1
        assert "less than the 96%" in done.stdout
        with server.http() as http:
            assert http.get("/v1/sessions").json()["sessions"] == []


@needs_curl
def test_curl_gets_a_gradient_from_a_server_of_its_own() -> None:
    done = run("bash", str(EXAMPLES / "curl.sh"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "x.grad = [[0.5, 1.0], [1.5, 2.0]]"
    assert 0 < float(lines[2].removeprefix("after 10 steps: ")) < 0.01
    assert lines[0].removeprefix("created session ") == lines[3].removeprefix("deleted session ")


@needs_curl
def test_curl_uses_the_server_it_is_told_and_leaves_no_session_behind() -> None:
    with server_process() as server:
        done = run("bash", str(EXAMPLES / "curl.sh"), GRADWIRE_URL=server.url, GRADWIRE_API_KEY=server.api_key)
        assert done.returncode == 0, done.stdout + done.stderr
        with server.http() as http:
            assert http.get("/v1/sessions").json()["sessions"] == []


@needs_curl
def test_curl_shows_the_problem_when_its_key_is_wrong() -> None:
    with server_process() as server:
        done = run("bash", str(EXAMPLES / "curl.sh"), GRADWIRE_URL=server.url, GRADWIRE_API_KEY="wrong")
        assert done.returncode != 0
        assert "unauthorized" in done.stdout + done.stderr


def test_the_drawing_shows_a_networks_loss_and_what_backward_frees(tmp_path: Path) -> None:
    done = run(sys.executable, str(EXAMPLES / "draw_graph.py"), str(tmp_path / "loss.svg"))
    assert done.returncode == 0, done.stdout + done.stderr
    root = ElementTree.parse(tmp_path / "loss.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"loss", "0.weight", "0.bias", "2.weight", "2.bias", "Relu"} <= set(texts)
    assert any("draw_graph.py:" in (text or "") for text in texts)
    kept = re.search(r"kept for backward: ([\d,]+) bytes before it, 0 after it", done.stdout)
    assert kept is not None and int(kept[1].replace(",", "")) > 500_000


@needs_curl
def test_two_clients_share_tensors_and_the_graph_on_an_embedded_server() -> None:
    done = run(sys.executable, str(EXAMPLES / "two_clients.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "curl:   outputs = weights @ inputs = [-1.5, -2.5]" in done.stdout
    assert done.stdout.rstrip().endswith("both agree")


@needs_curl
def test_two_clients_use_the_server_they_are_told() -> None:
    with server_process() as server:
        where = {"GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
        done = run(sys.executable, str(EXAMPLES / "two_clients.py"), **where)
        assert done.returncode == 0, done.stdout + done.stderr


def test_two_ranks_learn_digits_together() -> None:
    done = run(sys.executable, "-m", "gradwire", "run", "--nproc", "2", str(EXAMPLES / "ddp_digits.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(line.startswith("[rank 0] epoch") for line in done.stdout.splitlines())
    assert reached(done.stdout)[-1] > 90
