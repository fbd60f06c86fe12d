"""Every CUDA source of the engine compiles, where a CUDA compiler is at hand; no GPU is needed for that."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gradwire_engine import random

SOURCES = {"random": random._CUDA_SOURCE}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("name", SOURCES)
def test_source_compiles_for_a_gpu(name: str, tmp_path: Path) -> None:
    source, target = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    source.write_text(SOURCES[name])
    run = subprocess.run(
        ["nvcc", "-ptx", "-arch=compute_80", str(source), "-o", str(target)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    assert ".entry" in target.read_text()


def test_no_source_is_left_out() -> None:
    """A module that mentions a raw kernel's source has it in the table above."""
    engine = Path(random.__file__).parent
    with_source = {p.stem for p in engine.rglob("*.py") if "_CUDA_SOURCE" in p.read_text()}
    assert with_source == set(SOURCES)
