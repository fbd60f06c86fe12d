"""The GPU checks as a program, also on a machine without a GPU: they run, count, and name what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradwire_engine.runtime.backends import available_devices

ROOT = Path(__file__).parents[2]
SOURCES = os.pathsep.join(str(ROOT / room) for room in ("protocol", "engine", "server", "client", "."))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": SOURCES}
    command = [sys.executable, "-m", "tests.gpu", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110, check=False)


def test_the_checks_pass_between_the_cpu_and_itself() -> None:
    done = run("--device", "cpu", "-k", "matmul", "--dtypes", "float32,int64")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed"


GPU = len(available_devices()) > 1


@pytest.mark.skipif(GPU, reason="there is a GPU")
def test_without_a_gpu_they_say_so_and_exit_with_3() -> None:
    done = run()
    assert done.returncode == 3
    assert "nothing was checked" in done.stdout


@pytest.mark.gpu
@pytest.mark.skipif(not GPU, reason="there is no GPU")
def test_everything_agrees_on_the_gpu() -> None:
    done = run()
    assert done.returncode == 0, done.stdout
