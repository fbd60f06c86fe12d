"""CUDA sources compiled by g++ and run on the CPU, behind the part of CuPy's API that launches them.

``EmulatedBackend`` is the strict stand-in for CuPy (``tests/strict_backend.py``) plus ``RawModule`` and
``RawKernel``. The engine takes the same paths as on a GPU, and the tests check the numbers of its kernels. The
emulation cannot show races between threads, speed, or the rounding of a GPU's mathematical functions.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from gradwire_engine.kernels import cuda
from gradwire_engine.kernels.cuda.namespace import DeviceNamespace
from gradwire_engine.kernels.cuda.problem import ALIGNMENT, MatmulProblem, Operand
from tests.strict_backend import StrictArray, StrictBackend, noted

HERE = Path(__file__).parent
AVAILABLE = shutil.which("g++") is not None

_built: dict[str, Any] = {}
_folder: list[tempfile.TemporaryDirectory[str]] = []
_ENTRY = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")


def build(source: str) -> Any:
    """The library of a translation unit's kernels, built at first use in this process.

    Raises:
        AssertionError: with the compiler's words.
    """
    key = _key(source)
    if key not in _built:
        _built[key] = _library(key, source)
    return _built[key]


def build_together(prelude: str, sources: Iterable[str]) -> None:
    """Build units that begin with this prelude, and have one kernel ``run`` each, as one: a tenth of the work."""
    units = {_key(source): source.removeprefix(prelude) for source in sources}
    parts = [prelude]
    for i, unit in enumerate(units.values()):
        parts.append(f"namespace n{i} {{{unit.replace(' run(', f' run{i}(')}}} using n{i}::run{i};")
    source = "\n".join(parts)
    library = _library(_key(source), source)
    for i, key in enumerate(units):
        _built[key] = SimpleNamespace(launch_run=getattr(library, f"launch_run{i}"))


def _key(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _library(key: str, source: str) -> ctypes.CDLL:
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory(prefix="cuda-emulation-"))
        _compile(HERE / "scheduler.cpp", Path(_folder[0].name) / "scheduler.so", "-O2")
    folder = Path(_folder[0].name)
    launches = "\n".join(
        f'extern "C" int launch_{name}(unsigned* g, unsigned* b, void** a, int* w, int n) '
        f"{{ return emulation::launch({name}, g, b, a, w, n); }}"
        for name in _ENTRY.findall(source)
    )
    unit, library = folder / f"{key}.cpp", folder / f"{key}.so"
    unit.write_text(f'#include "{HERE / "device.hpp"}"\n{source}\n{launches}\n')
    _compile(unit, library, "-O1", str(folder / "scheduler.so"))
    return ctypes.CDLL(str(library))


def _compile(unit: Path, library: Path, *options: str) -> None:
    flags = ("-std=c++14", "-ffp-contract=off", "-w", "-shared", "-fPIC")
    command = ["g++", *flags, "-o", str(library), str(unit), *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert run.returncode == 0, run.stderr[:4000]


class Kernel:
    """What ``cupy.RawKernel`` is, as far as it is called. ``launches`` counts."""

    launches = 0

    def __init__(self, source: str, name: str, options: tuple[str, ...] = ()) -> None:
        self._launch = getattr(build(source), f"launch_{name}")
        self.name = name

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: Any, *, shared_mem: int = 0) -> None:
        noted(None, lambda: self(grid, block, arguments))
        assert 0 < np.prod(block) <= 1024, f"{self.name}: a block of {block}"
        assert all(n > 0 for n in grid), f"{self.name}: a grid of {grid}"
        held = [_argument(a) for a in arguments]
        pointers = (ctypes.c_void_p * len(held))(*[a.ctypes.data for a in held])
        widths = (ctypes.c_int * len(held))(*[a.nbytes for a in held])
        sizes = [(ctypes.c_uint * 3)(*(tuple(n) + (1, 1))[:3]) for n in (grid, block)]
        status = self._launch(*sizes, pointers, widths, len(held))
        wrong = {1: "another number of arguments", 2: "an argument of another width", 3: "barriers that all pass"}
        assert status == 0, f"{self.name} wants {wrong[status]}, was given {[a.nbytes for a in held]}"
        Kernel.launches += 1


def _argument(value: Any) -> np.ndarray[Any, Any]:
    """An argument's bytes, as CuPy would pass them. None it passes as no argument, which the driver dies of."""
    if isinstance(value, StrictArray):
        return np.array([value._array.ctypes.data], np.uint64)
    if isinstance(value, np.generic):
        return np.array([value])
    if isinstance(value, (bool, int, float)):
        return np.array([value], {bool: np.bool_, int: np.int64, float: np.float64}[type(value)])
    raise TypeError(f"a kernel takes no {type(value).__name__}")


class Module:
    """``cupy.RawModule``."""

    def __init__(self, *, code: str, options: tuple[str, ...] = ()) -> None:
        self._code = code

    def get_function(self, name: str) -> Kernel:
        return Kernel(self._code, name)


class EmulatedBackend(StrictBackend):
    """Strict arrays with kernels that run on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.xp.RawKernel = Kernel
        self.xp.RawModule = Module
        self.xp.products = Products()
        self.xp.cuda = SimpleNamespace(
            get_current_stream=lambda: SimpleNamespace(ptr=0), Device=lambda: SimpleNamespace(id=0)
        )
        self.fused = cuda.load()
        self.xp = DeviceNamespace(self.xp)


def _stack(address: int, operand: Operand, count: int, element: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A stack of matrices by columns, as the library would read it from memory."""
    size = element.itemsize
    extent = (count - 1) * operand.batch + (operand.cols - 1) * operand.lead + operand.rows
    memory = np.frombuffer((ctypes.c_char * (extent * size)).from_address(address), element)
    strides = (operand.batch * size, size, operand.lead * size)
    return np.lib.stride_tricks.as_strided(memory, (count, operand.rows, operand.cols), strides)


class Products:
    """cuBLASLt by its documentation: problems by columns, at addresses. ``asked`` keeps them."""

    def __init__(self) -> None:
        self.asked: list[MatmulProblem] = []

    def prepare(self, device: int, problem: MatmulProblem) -> Any:
        a, b, out = problem.a, problem.b, problem.out
        for each in (a, b, out):
            assert each.lead >= each.rows > 0, each
        rows, inner = (a.cols, a.rows) if a.transposed else (a.rows, a.cols)
        other, cols = (b.cols, b.rows) if b.transposed else (b.rows, b.cols)
        assert (rows, cols) == (out.rows, out.cols)
        assert inner == other
        return SimpleNamespace(workspace=64)

    def multiply(self, device: int, stream: int, problem: MatmulProblem, prepared: Any, a: int, b: int, out: int,
                 alpha: float, beta: float, bias: int, workspace: int) -> None:  # fmt: skip
        noted(None, lambda: self.multiply(device, stream, problem, prepared, a, b, out, alpha, beta, bias, workspace))
        self.asked.append(problem)
        assert workspace
        assert all(address % ALIGNMENT == 0 for address in (a, b, out, bias))
        element = np.dtype(ml_dtypes.bfloat16 if problem.element == "bfloat16" else problem.element)
        wide = np.float64 if problem.element == "float64" else np.float32
        first, second = (_stack(p, o, problem.stack, element) for p, o in ((a, problem.a), (b, problem.b)))
        first = first.swapaxes(1, 2) if problem.a.transposed else first
        second = second.swapaxes(1, 2) if problem.b.transposed else second
        result = alpha * np.matmul(first.astype(wide), second.astype(wide)).astype(wide)
        if problem.bias:
            result += _stack(bias, Operand(problem.out.rows, 1, problem.out.rows, False, 0), 1, element).astype(wide)
        kind = np.dtype(problem.result) if problem.result != problem.element else element
        _stack(out, problem.out, problem.stack, kind)[...] = result.astype(kind)
