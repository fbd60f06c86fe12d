"""From a source to a launched kernel: modules compiled once, launches shaped by the data's extents alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from ..arrays import Namespace
from .sources import source

OPTIONS: Final = ("--std=c++17",)
EXACT: Final = (*OPTIONS, "--fmad=false")
"""For elementwise kernels: a product and a sum are rounded apart, so that a fused run gives the bits of its parts."""

KEPT: Final = 512
"""Kernels that are kept loaded; CuPy has them compiled on disk."""

LONGEST_BLOCK: Final = 1024
STRIDED_GRID: Final = 65_535
"""Blocks of a launch whose threads go through the data in strides."""

FLOATS: Final = frozenset({"float16", "bfloat16", "float32", "float64"})

NULL: Final = np.uint64(0)


class Launcher:
    """A kernel as it is launched: ``None`` among the arguments is the null pointer.

    CuPy would hand the driver no argument at all for it.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], arguments: Sequence[Any]) -> None:
        self._function(grid, block, tuple([NULL if each is None else each for each in arguments]))


_kernels: OrderedDict[tuple[Any, ...], Launcher] = OrderedDict()
_compiling: Final[list[tuple[Any, ...]]] = []
_lock: Final = threading.Lock()  # sessions are threads


def compiling() -> bool:
    """Whether a kernel is being compiled, or loaded from disk, in this process."""
    return bool(_compiling)


def kernel(xp: Namespace, name: str, unit: str, element: str | None = None) -> Launcher:
    """The kernel of this name in a translation unit, compiled for an element type."""
    return compiled(xp, ("file", unit, element, name), name, lambda: source(unit, element), OPTIONS)


def compiled(
    xp: Namespace, key: tuple[Any, ...], name: str, write: Callable[[], str], options: tuple[str, ...]
) -> Launcher:
    """The kernel that this key stands for; its source is written at first use. CuPy loads it on each device."""
    key = (id(xp), *key)
    with _lock:
        found = _kernels.get(key)
        if found is not None:
            _kernels.move_to_end(key)
            return found
    _compiling.append(key)
    try:
        made = Launcher(xp.RawModule(code=write(), options=options).get_function(name))
    finally:
        _compiling.remove(key)
    with _lock:
        _kernels[key] = made
        if len(_kernels) > KEPT:
            _kernels.popitem(last=False)
    return made


@cache
def element_of(dtype: Any) -> str:
    """NumPy's name of a dtype, which NumPy composes each time."""
    return str(dtype.name)


def arithmetic(element: str) -> type[np.floating[Any]]:
    """The NumPy type that elements of this type are computed in."""
    return np.float64 if element == "float64" else np.float32


def row_block(cols: int) -> tuple[int]:
    """Threads for one row: a warp at least, and four elements a thread for long rows."""
    threads = 32
    while threads < LONGEST_BLOCK and threads * 4 < cols:
        threads *= 2
    return (threads,)


def strided(size: int, threads: int = 256, each: int = 1) -> tuple[tuple[int], tuple[int]]:
    """Grid and block of a kernel whose threads take ``each`` elements and go on in strides."""
    return (max(1, min(-(-size // (threads * each)), STRIDED_GRID)),), (threads,)
