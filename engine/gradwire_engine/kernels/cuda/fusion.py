"""Runs of elementwise ops as one kernel each: a program of expressions over arrays and numbers becomes CUDA C++.

A program's value is the same as that of its steps run one by one: every step is rounded to the element type, and the
compiler may not contract a product and a sum. Numbers are arguments, so a program is compiled once per structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.launching import EXACT, FLOATS, arithmetic, compiled, element_of, strided
from ...runtime.cuda.sources import TYPES, source
from .language import in_cuda, is_truth, names_in

MOST_DIMS: Final = 6
SHORT: Final = 1 << 31
"""Below so many elements places are counted in 32 bits, whose divisions are several times faster."""

FLAT: Final = -1
"""The way of an operand that lies as the result does."""


class FusedStep(NamedTuple):
    """One op of a program.

    Attributes:
        text: an expression of the table.
        reads: by parameter, the variable it reads: ``a0``, ``a1``, ... for operands that are arrays, ``n0``, ... for
            numbers, ``v0``, ... for results of steps before.
    """

    text: str
    reads: tuple[tuple[str, str], ...]


class FusedProgram(NamedTuple):
    """Steps whose results are elements of one shape.

    Attributes:
        element: the element type by NumPy's name, of operands and results that are not truth values.
        operands: the types of the arrays read, each ``element`` or ``bool``.
        numbers: how many numbers are read.
        steps: in order; step i makes the variable ``v<i>``.
        kept: which steps' results are written to memory.
    """

    element: str
    operands: tuple[str, ...]
    numbers: int
    steps: tuple[FusedStep, ...]
    kept: tuple[int, ...]


def write(program: FusedProgram, ways: Sequence[int], dims: int, short: bool) -> str:
    """The translation unit of a program, whose kernel is named ``run``.

    Args:
        ways: per operand ``FLAT``, or 0 when it is reached by strides over ``dims`` extents.
    """
    place = "u32" if short else "i64"
    element = TYPES[program.element]
    parameters = [f"const {TYPES[t]}* x{i}" for i, t in enumerate(program.operands)]
    parameters += [f"const A n{i}" for i in range(program.numbers)]
    truth = [is_truth(step.text) for step in program.steps]
    parameters += [f"{'bool' if truth[i] else element}* out{i}" for i in program.kept]
    parameters.append("i64 size")
    strided_ones = [i for i, way in enumerate(ways) if way != FLAT]
    if strided_ones:
        parameters += [f"{place} extent{d}" for d in range(dims)]
        parameters += [f"{place} stride{i}_{d}" for i in strided_ones for d in range(dims)]
    body = []
    if strided_ones:
        body.append(f"{place} rest = ({place})i;")
        body += [f"{place} at{i} = 0;" for i in strided_ones]
        for d in reversed(range(dims)):
            body.append(f"{{ const {place} c = {'rest' if d == 0 else f'rest % extent{d}'};")
            body += [f"  at{i} += c * stride{i}_{d};" for i in strided_ones]
            body.append("}" if d == 0 else f"rest /= extent{d}; }}")
    for i, kind in enumerate(program.operands):
        where = "i" if ways[i] == FLAT else f"at{i}"
        body.append(f"const {'bool' if kind == 'bool' else 'A'} a{i} = widen(x{i}[{where}]);")
    for i, step in enumerate(program.steps):
        found = in_cuda(step.text, dict(step.reads))
        if truth[i]:
            body.append(f"const bool v{i} = {found};")
            body += [f"out{i}[i] = v{i};"] if i in program.kept else []
        else:
            body.append(f"const {element} r{i} = narrow<{element}>(A({found})); const A v{i} = widen(r{i});")
            body += [f"out{i}[i] = r{i};"] if i in program.kept else []
    lines = "\n        ".join(body)
    return f"""{source("prelude")}
typedef Wide<{element}>::type A;
extern "C" __global__ void run({", ".join(parameters)}) {{
    const i64 step = (i64)blockDim.x * gridDim.x;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {{
        {lines}
    }}
}}
"""


def run(xp: Namespace, program: FusedProgram, arrays: Sequence[Array], numbers: Sequence[float]) -> Any:
    """The kept results of a program, as a tuple; ``NotImplemented`` where the arrays' layout is none it can take."""
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    order = _memory_order(arrays, shape)
    laid = tuple(shape[d] for d in order)
    truth = [is_truth(step.text) for step in program.steps]
    outs = [xp.empty(laid, bool if truth[i] else _native(arrays, program)) for i in program.kept]
    size = prod(shape)
    if size:
        steps = [_strides(a, shape, order) for a in arrays]
        extents, merged = _merged(laid, steps)
        if len(extents) > MOST_DIMS:
            return NotImplemented
        dense = _dense(extents)
        ways = tuple(FLAT if each == dense else 0 for each in merged)
        short = size < SHORT and all(_reach(extents, each) < SHORT for each in merged)
        key = ("program", program, ways, len(extents), short)
        function = compiled(xp, key, "run", lambda: write(program, ways, len(extents), short), EXACT)
        kind, place = arithmetic(program.element), np.uint32 if short else np.int64
        arguments: list[Any] = [*arrays, *[kind(n) for n in numbers], *outs, np.int64(size)]
        if any(way != FLAT for way in ways):
            arguments += [place(n) for n in extents]
            arguments += [place(s) for way, each in zip(ways, merged, strict=True) if way != FLAT for s in each]
        grid, block = strided(size)
        function(grid, block, tuple(arguments))
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return tuple(out if order == tuple(range(len(order))) else out.transpose(inverse) for out in outs)


def _native(arrays: Sequence[Array], program: FusedProgram) -> Array:
    return next(a.dtype for a, kind in zip(arrays, program.operands, strict=True) if kind == program.element)


def _memory_order(arrays: Sequence[Array], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest, as the first operand of the result's shape has them."""
    for array in arrays:
        if array.shape == shape:
            if array.flags.c_contiguous:
                break
            return tuple(sorted(range(len(shape)), key=lambda d: (-abs(array.strides[d]), d)))
    return tuple(range(len(shape)))


def _strides(array: Array, shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """An operand's strides in elements over the result's dimensions in this order; 0 where it is broadcast."""
    lead = len(shape) - array.ndim
    found = [0] * lead + [
        0 if n == 1 else s // array.dtype.itemsize for n, s in zip(array.shape, array.strides, strict=True)
    ]
    return tuple(found[d] for d in order)


def _merged(extents: tuple[int, ...], steps: list[tuple[int, ...]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The same walk over fewer dimensions: extents of 1 go, and neighbours that every operand crosses in one stride."""
    sizes: list[int] = []
    kept: list[list[int]] = [[] for _ in steps]
    for d, n in enumerate(extents):
        if n == 1:
            continue
        if sizes and all(own[-1] == each[d] * n for own, each in zip(kept, steps, strict=True)):
            sizes[-1] *= n
            for own, each in zip(kept, steps, strict=True):
                own[-1] = each[d]
        else:
            sizes.append(n)
            for own, each in zip(kept, steps, strict=True):
                own.append(each[d])
    return tuple(sizes), [tuple(own) for own in kept]


def _dense(extents: tuple[int, ...]) -> tuple[int, ...]:
    found, step = [], 1
    for n in reversed(extents):
        found.append(step)
        step *= n
    return tuple(reversed(found))


def _reach(extents: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Beyond every place that a walk touches; too far for 32 bits where a stride is negative."""
    if any(s < 0 for s in strides):
        return SHORT
    return 1 + sum((n - 1) * s for n, s in zip(extents, strides, strict=True))


def single(xp: Namespace, text: str, values: dict[str, Any]) -> Array:
    """One expression over these arrays and numbers; ``NotImplemented`` where it is not for such operands."""
    arrays: list[Any] = []
    numbers: list[float] = []
    reads, kinds = [], []
    for name in names_in(text):
        value: Any = values.get(name)
        if isinstance(value, (bool, int, float)):
            reads.append((name, f"n{len(numbers)}"))
            numbers.append(value)
        elif hasattr(value, "dtype"):
            reads.append((name, f"a{len(arrays)}"))
            arrays.append(value)
            kinds.append(element_of(value.dtype))
        else:
            return NotImplemented
    elements = {kind for kind in kinds if kind != "bool"}
    if len(elements) != 1 or not elements <= FLOATS:
        return NotImplemented
    if is_truth(text):  # numbers are compared as the elements would hold them
        like = next(a.dtype for a in arrays if a.dtype.name in elements)
        numbers = [float(np.asarray(n).astype(like)) for n in numbers]
    program = FusedProgram(elements.pop(), tuple(kinds), len(numbers), (FusedStep(text, tuple(reads)),), (0,))
    found = run(xp, program, arrays, numbers)
    return found if found is NotImplemented else found[0]
