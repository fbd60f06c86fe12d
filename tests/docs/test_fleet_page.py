"""Everything that docs/fleet.md names exists, and its values for the chart render."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import typer
import yaml
from tools.documents import REPOSITORY, blocks

from gradwire.cli.main import app
from gradwire_server.auth.scopes import GATEWAY_SCOPES, SCOPES
from gradwire_server.settings.secret_files import SECRETS
from gradwire_server.settings.settings import PREFIX, Settings, variable
from tests.docker.test_chart import SCHEMA, VALUES, needs_helm, rendered
from tests.docs.blocks import expectations
from tests.live_server import API_KEY, SOURCES

PATH = REPOSITORY / "docs" / "fleet.md"
PAGE = PATH.read_text(encoding="utf-8")
OF_THE_CLIENT = {"GRADWIRE_DIRECT"}
IGNORED = {"docker/secrets", "docker/secrets/fleet"}
SHELL = re.findall(r"^```bash no-run\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def fleet_values() -> dict[str, Any]:
    """The values for the chart that the page shows."""
    (block,) = blocks(PATH, "yaml")
    found: dict[str, Any] = yaml.safe_load(block.code)
    return found


def test_every_variable_of_the_page_is_a_setting() -> None:
    known = {variable(name) for name in Settings.model_fields} | {f"{variable(name)}_FILE" for name in SECRETS}
    named = set(re.findall(PREFIX + r"[A-Z_]*[A-Z]", PAGE))
    assert named - known - OF_THE_CLIENT == set()


def test_every_setting_of_a_fleet_is_on_the_page() -> None:
    own = ("store", "lease_s", "placement_timeout_s", "warm_workers", "direct", "autoscaling")
    for name in (
        *own,
        *(name for name in Settings.model_fields if name.startswith("worker_") and "patience" not in name),
    ):
        if name != "max_worker_bytes":
            assert variable(name) in PAGE, name


def test_every_file_of_the_page_is_there() -> None:
    named = {path.rstrip(".") for path in re.findall(r"\bdocker/[\w./-]+", PAGE)}
    assert all((REPOSITORY / path).exists() for path in named - IGNORED)
    pages = set(re.findall(r"\]\(([\w-]+\.md)", PAGE))
    assert all((REPOSITORY / "docs" / page).exists() for page in pages)


def test_every_link_into_a_page_hits_a_heading() -> None:
    for page, anchor in re.findall(r"\]\(([\w-]*(?:\.md)?)#([\w-]+)\)", PAGE):
        text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8") if page else PAGE
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}, (page, anchor)


def test_every_route_of_the_page_exists() -> None:
    named = re.findall(r"`(GET|POST|DELETE) (/v1/[\w/{}]+)`", PAGE)
    assert len(named) >= 3
    assert set(named) <= SCOPES.keys() | GATEWAY_SCOPES.keys()


def test_every_command_of_gradwire_is_one() -> None:
    found = [
        line.split("#")[0].split()[1:] for text in SHELL for line in text.splitlines() if line.startswith("gradwire ")
    ]
    assert len(found) == 3
    for words in found:
        command: Any = typer.main.get_command(app)
        for word in words[:2]:
            assert word in command.commands, words
            command = command.commands[word]
        options = {name for each in command.params for name in each.opts}
        assert {word for word in words if word.startswith("--")} <= options, words
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        assert len(arguments) == len([word for word in words[2:] if not word.startswith("--")]), words


@pytest.mark.parametrize("text", SHELL, ids=lambda text: text.split("\n", 1)[0][:40])
def test_the_commands_can_be_read_by_the_shell(text) -> None:
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, env={**os.environ}, check=False)
    assert done.returncode == 0, done.stderr


def test_values_of_the_chart_that_the_page_names_exist() -> None:
    for dotted in set(re.findall(r"`(fleet\.[\w.]+|networkPolicy\.\w+|tls\.\w+)`", PAGE)):
        inner: Any = VALUES
        for name in dotted.split("."):
            assert name in inner, dotted
            inner = inner[name]


def test_the_values_of_the_page_satisfy_the_schema() -> None:
    jsonschema_rs.validator_for(SCHEMA).validate({**VALUES, **fleet_values()})


@needs_helm
def test_the_values_of_the_page_render(tmp_path) -> None:
    made = rendered(tmp_path, **fleet_values())
    (group,) = made["RayCluster/mine-gradwire-fleet"]["spec"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/gradwire:fleet"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 8


@pytest.mark.xdist_group("fleet")
def test_a_fleet_on_one_machine_starts_as_the_page_says(tmp_path) -> None:
    pytest.importorskip("ray", reason="a fleet needs Ray: pip install 'gradwire[cluster]'")
    shown = re.search(r"## On one machine\n.*?```bash no-run\n(.*?)```.*?```python no-run\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    commands, program = shown.groups()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    commands = replaced(commands, {
        "pip install 'gradwire[cluster]'\n": "", "/var/lib/gradwire/fleet": str(tmp_path / "store"), "8000": str(port),
        "gradwire-server": "exec gradwire-server",
    })  # fmt: skip
    program = replaced(program, {"8000": str(port), "gw_...": API_KEY})
    # Without a folder of its own, Ray finds another cluster of this machine. Paths of sockets must be short.
    folder = tempfile.mkdtemp(prefix="ray-")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("GRADWIRE_", "RAY_"))}
    where = ours | {
        "HOME": str(tmp_path), "GRADWIRE_API_KEYS": API_KEY, "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder,
        "PYTHONPATH": SOURCES,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }  # fmt: skip
    log = tmp_path / "log"
    with log.open("w") as file:
        server = subprocess.Popen(["bash", "-euc", commands], cwd=tmp_path, env=where, stdout=file, stderr=file)
    try:
        wait_until_ready(port, server, log)
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=where, capture_output=True, text=True, timeout=200,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + log.read_text()
        (expected,) = expectations(program)
        assert expected.agrees(done.stdout), done.stdout
        assert (tmp_path / ".ray" / "auth_token").exists()  # a Ray of the server's own asks for a token
        assert list((tmp_path / "store").iterdir())
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0, log.read_text()
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def replaced(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def wait_until_ready(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 180
    while True:
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
