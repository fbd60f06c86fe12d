"""The conformance vectors against servers, and the command that runs them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gradwire.cli.conformance.groups import run_group
from gradwire.cli.conformance.scripts import Target
from gradwire.cli.conformance.vectors import folder, load, names
from gradwire.cli.main import app
from tests.live_server import LiveServer, live_server

PAGE = "https://app.example.com"


HOSTS = [("inline", group) for group in names(folder())]
HOSTS += [("process", group) for group in names(folder()) if not group.startswith("ops/")]


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    host = getattr(request, "param", "inline")
    with live_server(session_host=host, allowed_origins=(PAGE,)) as found:
        yield found


@pytest.fixture
def target(server: LiveServer) -> Iterator[Target]:
    keys = {"default": server.api_key, "other": server.other_key, "admin": server.admin_key}
    with Target(server.url, keys, PAGE) as found:
        yield found


@pytest.mark.parametrize(("server", "group"), HOSTS, indirect=["server"])
def test_the_server_conforms(target: Target, group: str) -> None:
    outcomes = list(run_group(target, group, load(folder(), group)))
    failed = {outcome.vector["id"]: outcome.lines for outcome in outcomes if outcome.verdict == "failed"}
    assert not failed
    assert not [outcome for outcome in outcomes if outcome.verdict == "skipped"]


def run(server: LiveServer, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["conformance", server.url, "--api-key", server.api_key, *arguments])
    return done.exit_code, done.output


def test_the_command_passes_and_tells_what_it_skipped(server: LiveServer) -> None:
    code, output = run(server, "--only", "access/")
    assert code == 0, output
    assert "skipped 2: needs admin_key" in output
    assert "skipped 1: needs other_key" in output


def test_a_key_that_may_do_everything_is_no_plain_key(server: LiveServer) -> None:
    done = CliRunner().invoke(app, ["conformance", server.url, "--api-key", server.admin_key, "--only", "access/scope"])
    assert done.exit_code == 0, done.output
    assert "skipped 1: needs plain_key" in done.output


def test_the_command_lists(server: LiveServer) -> None:
    code, output = run(server, "--list", "--only", "values/bool/plain")
    assert (code, output) == (0, "values/bool/plain: bool: both\n")


@pytest.mark.parametrize(
    ("group", "find", "put", "told"),
    [
        ("http", '"values": [11.0, 22.0]', '"values": [11.0, 23.0]', "values[0].values[1] is 22.0, expected 23.0"),
        ("http", '"extra": {"expected": 1}', '"extra": {"expected": 2}', "extra.expected is 1, expected 2"),
        ("stream", '"code": 4426', '"code": 4400', "the stream closed with 4426, expected 4400"),
        ("stream", '"code": "superseded"', '"code": "cancelled"', 'code is "superseded", expected "cancelled"'),
        ("values", '"values": [false, true]', '"values": [true, true]', "values[0].values"),
        ("envelope", '"error": "malformed_frame"', '"error": "internal"', 'expected "internal"'),
        ("structure_hash", '"hash": "', '"hash": "00', "the status is 400"),
        ("ops/functions", '"values": [{"dtype": "float32"', '"values": [{"dtype": "float64"', 'expected "float64"'),
    ],
)
def test_a_server_that_answers_something_else_fails(
    server: LiveServer, tmp_path: Path, group: str, find: str, put: str, told: str
) -> None:
    changed = (folder() / f"{group}.json").read_text()
    assert find in changed
    path = tmp_path / f"{group}.json"
    path.parent.mkdir(exist_ok=True)
    lines = changed.splitlines()
    at = next(i for i, line in enumerate(lines) if find in line)
    path.write_text("\n".join([lines[0], lines[at].rstrip(",").replace(find, put), "]}"]))
    wrong = json.loads(lines[at].rstrip(","))["id"]
    code, output = run(server, "--vectors", str(tmp_path))
    assert code == 1
    assert f"FAILED {wrong}: " in output
    assert told in output.replace("\n", " ")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    shutil.copy(folder() / "http.json", tmp_path)
    done = CliRunner().invoke(app, ["conformance", "http://127.0.0.1:9", "--vectors", str(tmp_path)])
    assert done.exit_code == 1
    assert "127.0.0.1:9" in done.output
