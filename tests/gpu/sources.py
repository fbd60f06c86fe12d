"""All CUDA sources of the engine, and two compilers that need no GPU: NVRTC and nvcc."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from gradwire_engine.kernels.cuda import fusion
from gradwire_engine.kernels.cuda.language import names_in
from gradwire_engine.numerics.expressions import EXPRESSIONS
from gradwire_engine.runtime.cuda import sources

ELEMENTS = ("float32", "float64", "float16", "bfloat16")
ARCHITECTURES = (75, 80, 90, 100, 120)
"""What CUDA 12.8 and 13 compile for; CUDA 13 has left 70 behind."""


def everything() -> dict[str, str]:
    """Translation units by name: each file for each element type, and the table of expressions, written twice."""
    found = {"philox": sources.source("philox")}
    for unit in sources.TYPED:
        found |= {f"{unit} {element}": sources.source(unit, element) for element in ELEMENTS}
    for element in ELEMENTS:
        program = _all_expressions(element)
        found[f"expressions {element}"] = fusion.write(program, (fusion.FLAT,) * 3, 1, short=True)
    found["expressions strided"] = fusion.write(_all_expressions("float32"), (0, fusion.FLAT, 0), 3, short=False)
    return found


def _all_expressions(element: str) -> fusion.FusedProgram:
    """A program with every expression of the table as a step: over two arrays, one of truth values, and a number."""
    steps = []
    for variants in EXPRESSIONS.values():
        for each in variants:
            arrays = iter(("a0", "a1"))
            reads = [
                (name, "a2" if name in ("condition", "mask") else next(arrays, "n0")) for name in names_in(each.text)
            ]
            steps.append(fusion.FusedStep(each.text, tuple(reads)))
    return fusion.FusedProgram(element, (element, element, "bool"), 1, tuple(steps), tuple(range(len(steps))))


def checks(device: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(label, check) of every source: by CuPy for the GPU that is there, and by NVRTC for all
    architectures, or by nvcc for one."""
    from gradwire_engine.kernels.cuda import load
    from gradwire_engine.runtime.cuda import launching

    load()
    units = everything()
    for name, source in units.items():
        if device != "cpu":
            yield f"source {name}, for this GPU", lambda s=source: _on_this_gpu(s, launching.OPTIONS)
        for compiler, compile_it in list(compilers().items())[:1]:
            for arch in ARCHITECTURES if compiler == "nvrtc" else (80,):
                label = f"source {name}, {compiler}, {arch}"
                yield label, lambda s=source, c=compile_it, a=arch: _compiles(c, s, a)


def _on_this_gpu(source: str, options: tuple[str, ...]) -> None:
    import cupy

    cupy.RawModule(code=source, options=options).compile()


def _compiles(compile_it: Compiler, source: str, arch: int) -> None:
    found = compile_it(source, arch)
    assert found is None, found


Compiler = Callable[[str, int], str | None]
"""Compiles a source for an architecture; returns what went wrong, or None."""


def compilers() -> dict[str, Compiler]:
    """Those that are here."""
    found: dict[str, Compiler] = {}
    library = _nvrtc()
    if library is not None:
        found["nvrtc"] = lambda source, arch: _by_nvrtc(library, source, arch)
    if shutil.which("nvcc") is not None:
        found["nvcc"] = _by_nvcc
    return found


def _nvrtc() -> ctypes.CDLL | None:
    names = [f"libnvrtc.so.{major}" for major in (13, 12)]
    try:
        roots = [Path(place) for place in importlib.import_module("nvidia").__path__]
    except ImportError:
        roots = []
    places = [*names, *(str(p) for root in roots for name in names for p in root.glob(f"*/lib/{name}"))]
    for place in places:
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    return None


def _by_nvrtc(library: ctypes.CDLL, source: str, arch: int) -> str | None:
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    options = [b"--std=c++17", f"--gpu-architecture=compute_{arch}".encode()]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() or f"status {status}" if status else None


def _by_nvcc(source: str, arch: int) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / "kernels.cu"
        unit.write_text(source)
        command = ["nvcc", "-ptx", "-std=c++17", f"-arch=compute_{arch}", str(unit), "-o", f"{unit}.ptx"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    return run.stderr or f"status {run.returncode}" if run.returncode else None
