"""Every CUDA source of the engine compiles if a CUDA compiler is available; this needs no GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradwire_engine.kernels.cuda import load
from gradwire_engine.runtime.cuda import sources
from tests.gpu.sources import ARCHITECTURES, compilers, everything

load()
SOURCES = everything()
COMPILERS = compilers()


@pytest.mark.skipif(not COMPILERS, reason="needs NVRTC or nvcc")
@pytest.mark.parametrize("name", SOURCES)
def test_source_compiles_for_a_gpu(name: str) -> None:
    compile_it = next(iter(COMPILERS.values()))
    assert compile_it(SOURCES[name], 80) is None


@pytest.mark.skipif(not COMPILERS, reason="needs NVRTC or nvcc")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sources_compile_for_each_architecture(architecture: int) -> None:
    """Those with the most of the machine in them; ``make gpu`` compiles all for all."""
    assert next(iter(COMPILERS.values()))(SOURCES["rows bfloat16"], architecture) is None


def test_a_source_that_is_wrong_is_found() -> None:
    for compile_it in COMPILERS.values():
        assert compile_it('extern "C" __global__ void f() { no; }', 80)


def test_no_source_is_left_out() -> None:
    """Each file is one of those that are compiled, or is part of one."""
    files = {path.stem for path in Path(sources.__file__).parent.glob("*.cu")}
    compiled = {name.split()[0] for name in SOURCES} - {"expressions"}
    assert files == compiled | {each for name in compiled for each in sources.STANDS_ON[name]}


def test_sources_include_nothing() -> None:
    """So that NVRTC needs no toolkit's headers."""
    assert not any(re.search(r"^\s*#\s*include", text, re.MULTILINE) for text in SOURCES.values())


def test_no_module_has_cuda_of_its_own() -> None:
    engine = Path(sources.__file__).parents[3]
    with_source = {str(p.relative_to(engine)) for p in engine.rglob("*.py") if "__global__" in p.read_text()}
    assert with_source == {"kernels/cuda/fusion.py"}  # writes its sources from the table
