"""The programs under ``examples/pytorch`` say ``import torch`` and print the same under ``gradwire run``.

NumPy draws weights and noise, so the losses agree step by step. A program that reads one value per step waits once
per step.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live_server import SOURCES, live_server

PROGRAMS = Path(__file__).parents[2] / "examples" / "pytorch"
STEPS = 20
RELATIVE = 1e-4

AROUND = {
    "char_gpt": 1,  # the letters it writes
    "digits_cnn": 1,  # the accuracy
    "digits_vae": 1,  # the digit it draws
    "gaussian_process": 2,  # the error and the share inside
    "lstm_words": 0,
    "neural_ode": 0,
    "reinforce": 0,
    "style_transfer": 0,
}
"""What a program reads besides one value a step, before or after them."""


@pytest.fixture(scope="module")
def server():
    with live_server() as running:
        yield running


def losses(told: str) -> list[float]:
    """The loss of each step."""
    found = re.findall(r"^step (\d+) loss (\S+)", told, re.MULTILINE)
    assert [int(step) for step, _ in found] == list(range(1, len(found) + 1))
    return [float(loss) for _, loss in found]


def under_torch(program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a program prints when PyTorch computes."""
    import torch

    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.setattr(sys, "argv", [str(program), "--steps", str(STEPS)])
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        capsys.readouterr()
        runpy.run_path(str(program), run_name="__main__")
        return capsys.readouterr().out
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)


def test_all_programs_are_known():
    assert {path.stem for path in PROGRAMS.glob("*.py")} == {*AROUND, "numpy_weights"}


@pytest.mark.parametrize("name", AROUND)
def test_a_program_computes_what_it_computes_under_torch_and_waits_once_a_step(name, server, monkeypatch, capsys):
    program = PROGRAMS / f"{name}.py"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")}
    environment |= {"PYTHONPATH": SOURCES, "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
    command = [sys.executable, "-m", "gradwire", "run", "--stats", str(program), "--steps", str(STEPS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs = losses(done.stdout), losses(under_torch(program, monkeypatch, capsys))
    assert len(ours) == len(theirs) == STEPS
    assert ours == pytest.approx(theirs, rel=RELATIVE)
    assert ours[-1] != ours[0]
    told = re.search(r"round_trips=(\d+)", done.stderr)
    assert told is not None and int(told[1]) == STEPS + AROUND[name], done.stderr
