"""The ``gradwire`` command: version, completion, ``--json`` on every listing, tables of 80 columns, errors."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len
from tests.live_server import SOURCES, LiveServer, live_server
from tests.reported_activity import activity
from typer.testing import CliRunner

from gradwire._core.context.version import __version__
from gradwire.cli.main import app
from gradwire.cli.sizes import age_text, bytes_text, count_text, seconds_text

NO_LISTINGS = {
    "serve": "becomes the server",
    "run": "becomes the program",
    "version": "prints one word",
    "sessions show": "always prints JSON",
    "sessions kill": "prints nothing",
    "sessions export": "writes a file",
    "sessions import": "prints one id",
    "keys revoke": "prints nothing",
}
"""Commands without ``--json``, and why they need none."""

LONG = "a-name-of-a-hundred-characters-that-someone-chose-for-a-key-without-thinking-of-terminals-at-all-123"
TENANT = "tenant-whose-name-has-as-many-characters-as-the-server-allows-64"


def walk(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from walk(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(walk(typer.main.get_command(app)))
WITH_JSON = [path for path, command in COMMANDS.items() if any("--json" in each.opts for each in command.params)]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a user does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    environment |= {"PYTHONPATH": SOURCES, "COLUMNS": "80", **variables}
    command = [sys.executable, "-m", "gradwire", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def widest(text: str) -> int:
    return max((cell_len(line.rstrip()) for line in text.splitlines()), default=0)


FLEET = {
    "version": "0.1.0", "sessions": 12345, "dormant": 1234, "queue": 17, "gateways": [{"id": "g"}],
    "nodes": [{
        "id": "n" * 40, "address": "a-machine-with-a-long-name.region.compute.example.com:6379", "state": "draining",
        "cpus": 128.0, "gpus": 8.0, "gpus_taken": 7.25, "gpu": "NVIDIA H100 80GB HBM3 with a long name",
        "memory": 2.1e12, "workers": 64, "sessions": 512,
    }],
    "workers": [{
        "id": "w" * 40, "node": "n" * 40, "state": "assigned", "tenant": TENANT, "sessions": 8, "version": "0.1.0",
        "resources": {"CPU": 16.0, "GPU": 0.25, "memory": 64000000000.0, "a_resource_of_the_operator": 1.0},
    }],
}  # fmt: skip


class Gateway(http.server.BaseHTTPRequestHandler):
    """A gateway as far as ``gradwire fleet`` and ``top`` ask it, with long names."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        answers = {"/v1/fleet": FLEET, "/v1/activity": activity(12)}
        body = json.dumps(answers.get(self.path, {"node": "n" * 40, "moved": [], "kept": []})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with keys of long names and some sessions."""
    quotas = {"max_key_sessions": 1000, "max_ops_per_second": 123_456_789, "max_key_bytes": 1 << 40}
    with live_server(data_dir=tmp_path_factory.mktemp("data"), compiled_kernels="off") as running:
        with running.http(running.admin_key) as admin:
            for scopes in (["read", "session", "admin"], ["read"]):
                admin.post("/v1/keys", json={"name": LONG, "tenant": TENANT, "scopes": scopes, "expires_in_s": 86400,
                                             "quotas": quotas}).raise_for_status()  # fmt: skip
        with running.http() as client:
            for _ in range(3):
                client.post("/v1/sessions", json={}).raise_for_status()
        yield running


ARGUMENTS: dict[str, tuple[str, list[str]]] = {
    "conformance": ("{server}", ["--only", "hello"]),
    "doctor": ("--url {server}", []),
    "ops": ("--url {server}", []),
    "sessions ls": ("--url {server}", []),
    "keys create": ("--url {server}", ["--name", LONG]),
    "keys list": ("--url {server}", []),
    "fleet status": ("--url {gateway}", []),
    "top": ("--url {gateway}", []),
    "fleet drain": ("--url {gateway}", ["n" * 40]),
}
"""How the commands that print JSON are run: the place, and other arguments."""
NO_TABLE = {"keys create"}
"""This prints a key, which may be longer than a terminal is wide."""
ELSEWHERE: dict[str, str] = {
    "sessions bisect": "tests/client/test_time_travel.py", "sessions replay": "tests/client/test_time_travel.py",
}  # fmt: skip
"""Commands with ``--json`` that need more than a server, and the tests that run them."""


def arguments(path: str, server: LiveServer, gateway: str) -> list[str]:
    place, more = ARGUMENTS[path]
    return [
        *path.split(),
        *place.format(server=server.url, gateway=gateway).split(),
        *more,
        "--api-key",
        server.admin_key,
    ]


def test_every_command_prints_json_unless_it_is_no_listing() -> None:
    assert set(WITH_JSON) | set(NO_LISTINGS) == set(COMMANDS)
    assert not set(WITH_JSON) & set(NO_LISTINGS)
    assert set(ARGUMENTS) | set(ELSEWHERE) == set(WITH_JSON), "say above how to run it"


@pytest.mark.parametrize("path", ARGUMENTS)
def test_json_is_json_and_nothing_else(path: str, server: LiveServer, gateway: str) -> None:
    done = run(*arguments(path, server, gateway), "--json")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("path", sorted(set(ARGUMENTS) - NO_TABLE))
def test_tables_fit_the_terminal(path: str, columns: int, server: LiveServer, gateway: str) -> None:
    done = run(*arguments(path, server, gateway), COLUMNS=str(columns))
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert widest(done.stdout) <= columns
    assert "…" not in done.stdout  # nothing is cut off: cells fold
    assert "\x1b" not in done.stdout


def test_ids_are_whole_in_tables_of_80_columns(server: LiveServer) -> None:
    listed = run("keys", "list", "--url", server.url, "--api-key", server.admin_key)
    with server.http(server.admin_key) as admin:
        for key in admin.get("/v1/keys").json()["keys"]:
            assert key["id"] in listed.stdout
    listed = run("sessions", "ls", "--url", server.url, "--api-key", server.api_key)
    with server.http() as client:
        for session in client.get("/v1/sessions").json()["sessions"]:
            assert session["id"] in listed.stdout


# Version and completion


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    assert done.stdout.split()[-1] == __version__


def complete(shell: str, words: str) -> list[str]:
    """What a shell would offer after these words."""
    asked = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    # The variable's name is made of the program's name, which is gradwire only where it is installed.
    program = "import sys; sys.argv[0] = 'gradwire'; from gradwire.cli.main import main; main()"
    environment = os.environ | {"PYTHONPATH": SOURCES, "_GRADWIRE_COMPLETE": f"complete_{shell}", **asked}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60)
    return done.stdout.replace('"', " ").replace(":", " ").replace("\t", " ").split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(shell: str) -> None:
    assert {"serve", "sessions"} <= set(complete(shell, "gradwire se"))
    assert "doctor" in complete(shell, "gradwire do")
    assert "--api-key" in complete(shell, "gradwire doctor --a")
    assert "revoke" in complete(shell, "gradwire keys rev")


# Errors


@pytest.mark.parametrize(
    ("url", "key", "said"),
    [
        ("ws://127.0.0.1:8000", "k", "http://"),
        ("127.0.0.1:8000", "k", "http://"),
        ("http://127.0.0.1:9", "k\u00e9y", "characters"),
    ],
)
def test_wrong_urls_and_keys_are_errors_in_a_line(url: str, key: str, said: str) -> None:
    done = run("sessions", "ls", "--url", url, "--api-key", key)
    assert done.returncode == 1
    assert said in done.stderr and "Traceback" not in done.stderr
    assert key not in done.stderr + done.stdout or key == "k"


def test_a_servers_text_does_not_reach_the_terminal_as_commands(server: LiveServer) -> None:
    with server.http(server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "\x1b[31mred\x07[bold]"}).json()
    listed = run("keys", "list", "--url", server.url, "--api-key", server.admin_key, COLUMNS="200").stdout
    assert made["id"] in listed and "[bold]" in listed
    assert "\x1b" not in listed and "\x07" not in listed


# Numbers


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (bytes_text(0), "0 bytes"), (bytes_text(999), "999 bytes"), (bytes_text(1000), "0.98 KiB"),
        (bytes_text(80 << 30), "80.0 GiB"), (bytes_text(1 << 62), "4096 PiB"),
        (count_text(0), "0"), (count_text(0.34), "0.3"), (count_text(999), "999"), (count_text(31_420), "31.4k"),
        (count_text(2_100_000), "2.1M"), (count_text(123e9), "123G"),
        (seconds_text(0.00042), "0.4 ms"), (seconds_text(0.031), "31 ms"), (seconds_text(2.5), "2.5 s"),
        (age_text(0), "0s"), (age_text(200), "3m 20s"), (age_text(7200), "2h"), (age_text(277_000), "3d 4h"),
        (age_text(-3), "0s"),
    ],
)  # fmt: skip
def test_numbers_as_people_read_them(made: str, text: str) -> None:
    assert made == text


def test_the_page_has_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    table = [line for line in page.splitlines() if line.startswith("| `gradwire")]
    for path in COMMANDS:
        group, _, name = path.partition(" ")
        row = next((line for line in table if line.startswith(f"| `gradwire {group}")), "")
        assert row and f"{name or group}`" in row, path
