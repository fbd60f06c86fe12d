"""Runs a program under gradwire and under PyTorch, and compares what it prints and the files that it writes."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from tests.live_server import SOURCES, LiveServer

from .lent_numbers import numbers_of_gradwire

COLLECTION = Path(__file__).parent / "collection"
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)(?![A-Za-z_])")


def under_gradwire(command: list[str], folder: Path, server: LiveServer, environment: Mapping[str, str]) -> str:
    """What a program prints under ``gradwire run`` in a folder."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GRADWIRE_")}
    inherited |= {
        "PYTHONPATH": os.pathsep.join((SOURCES, str(COLLECTION))),
        "GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key, **environment,
    }  # fmt: skip
    program, *arguments = command
    run = [sys.executable, "-m", "gradwire", "run", str(COLLECTION / program), *arguments]
    done = subprocess.run(run, cwd=folder, env=inherited, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@contextmanager
def modules_of(folder: Path) -> Iterator[None]:
    """Within this context a program's own modules can be imported, and afterwards none of them is left."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for path in (COLLECTION, folder):
            patch.syspath_prepend(str(path))
        try:
            yield
        finally:
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(COLLECTION)):
                    del sys.modules[name]


def under_torch(
    command: list[str], folder: Path, capsys: pytest.CaptureFixture[str], environment: Mapping[str, str],
    accelerator: str | None = None,
) -> str:  # fmt: skip
    """What a program prints under PyTorch in a folder, if PyTorch draws gradwire's numbers. It runs in this process.

    Args:
        accelerator: the device that it finds as PyTorch's accelerator; ``cpu`` lets it do the same without one.
    """
    program, *arguments = command
    path = COLLECTION / program
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_num_threads(1)
    with modules_of(path.parent), numbers_of_gradwire(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(path), *arguments])
        patch.chdir(folder)
        # PyTorch's op database, which other tests import, forbids programs to set flags of its backends.
        patch.setitem(torch.backends.flags_frozen.__globals__, "__allow_nonbracketed_mutation_flag", True)
        patch.setattr(torch.accelerator, "is_available", lambda: accelerator is not None)
        if accelerator is not None:
            patch.setattr(
                torch.accelerator, "current_accelerator", lambda check_available=False: torch.device(accelerator)
            )
            patch.setattr(torch.Tensor, "pin_memory", lambda self, device=None: self)
        patch.setattr(torch, "compile", lambda model: model)  # its compiler takes longer than the program
        for name, value in environment.items():
            patch.setenv(name, value)
        capsys.readouterr()
        try:
            runpy.run_path(str(path), run_name="__main__")
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
        return capsys.readouterr().out


def assert_same_text(ours: str, theirs: str, moving: str = "", rel: float = 1e-3, abs: float = 2e-4) -> None:
    """Two programs' outputs are the same words with the same numbers, to within a tolerance.

    Args:
        moving: a pattern for what is different each time, such as durations.
    """
    if moving:
        ours, theirs = (re.sub(moving, "", text) for text in (ours, theirs))
    assert NUMBER.sub("#", ours).split() == NUMBER.sub("#", theirs).split()
    numbers = [[float(found) for found in NUMBER.findall(text)] for text in (ours, theirs)]
    assert numbers[0] == pytest.approx(numbers[1], rel=rel, abs=abs, nan_ok=True)
    assert numbers[0]


def files_of(folder: Path) -> list[str]:
    """The files that are below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
