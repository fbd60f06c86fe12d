"""Fixtures of tests with several ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live_server import SOURCES, server_process

PROGRAMS = Path(__file__).parent / "programs"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def server():
    with server_process() as running:
        yield running


def inherited() -> dict[str, str]:
    """The environment without what would decide about ranks or servers."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("GRADWIRE_", "PYTHON", "TORCHELASTIC_"))}


@pytest.fixture(scope="module")
def launch(server) -> Run:
    """A function that runs ``gradwire run`` with these arguments on one server."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        known = {"PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
        command = [sys.executable, "-m", "gradwire", "run", *arguments]
        return subprocess.run(
            command, env=inherited() | known | environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run
