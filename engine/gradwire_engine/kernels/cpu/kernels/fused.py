"""Runs of elementwise ops in one pass over memory: an interpreter of short programs on blocks that the nearest cache
holds.

A program is a table of steps, each an opcode and the slots that it makes and takes. A slot is an array in memory or a
block of scratch memory, so results that nothing else needs never leave the cache. Each step has a loop of its own and
does what the op's own kernel does, so the bits are those of the ops one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ....runtime.arrays import Array
from ....runtime.fusing import MACHINES, OPERATIONS, Run, order_of, walk
from .. import threads
from ..elementary import erf, exp, tanh
from ..emitter import Context
from ..native import Count, Element, In1, Int1, inline, native
from ..panels import address, size_of

F = np.float32
G = TypeVar("G", bound=Callable[..., Any])

CHUNK: Final = 1024
"""Elements of a block."""

APART: Final = CHUNK + 48
"""Elements from one block of scratch memory to the next: those a power of two apart would share lines of the cache."""

WIDTH: Final = 5
"""Numbers of a step: the opcode, the slot that it makes, and up to three that it takes."""

HEAD: Final = 3
"""Numbers before the steps: how many arrays there are, how many blocks of scratch memory, and where the steps end."""

STEPS: Final = 4
"""Steps in the nearest cache that take as long as one in memory: what other threads are worth depends on it."""

_DATA: Final = object.__basicsize__
"""Where an array object has the address of its elements: it is the first field of the structure that NumPy's C
interface declares. Reading it takes a tenth of the time of asking for it."""

_HALF, _ONE, _ZERO = F(0.5), F(1), F(0)
_ROOT_HALF: Final = F(math.sqrt(0.5))
_DENSITY: Final = F(1 / math.sqrt(2 * math.pi))
_TANH_SCALE: Final = F(math.sqrt(2 / math.pi))
_TANH_CUBE: Final = F(0.044715 * math.sqrt(2 / math.pi))
_ITSELF: Final = F(3e-4)

_SPREAD: Final = len(OPERATIONS)
"""The opcode of a step that lays out an array that lies otherwise than the result."""

_PAIRS: Final = _SPREAD + 1
"""The first opcode of two operations in one loop. It is a quarter quicker than two loops, of which the second loads
what the first stored."""

FIRSTS: Final = ("add", "subtract", "multiply")
SECONDS: Final = ("add", "subtract", "multiply", "from")
"""Operations of a pair; the last is the difference of the third operand and the first operation's result."""

(
    _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _NEGATE, _SQRT, _RELU, _CUT, _LEAK, _PASS_ABOVE, _TANH_SLOPE, _SIGMOID_SLOPE,
    _TANH, _SIGMOID, _SILU, _SILU_SLOPE, _GELU_BY_ERF, _GELU_BY_TANH, _GELU_SLOPE_BY_ERF, _GELU_SLOPE_BY_TANH,
) = range(len(OPERATIONS))  # fmt: skip


@intrinsic
def _pointer(typing, place, number):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(number)(types.int64, number), emit  # type: ignore[no-untyped-call]


@intrinsic
def _word(typing, place):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), emit


_at: Any = _pointer
_word_at: Any = _word


def rounded(function: G) -> G:
    """As :func:`..native.inline`, but a product and a sum stay two operations."""
    # What is not said here would be taken over from the function that calls this one.
    made: Any = njit(forceinline=True, error_model="numpy", fastmath=False)(function)
    return cast(G, made)


@inline
def _elements(slot: int, program: Array, objects: Array, scratch: int, at: int, count: int, one: Element) -> Array:
    """The elements of a slot that belong to the block that begins ``at``."""
    arrays, size = program[0], size_of(one)
    if slot < arrays:
        return carray(_at(_word_at(objects[slot] + _DATA) + at * size, one), count)
    return carray(_at(scratch + (slot - arrays) * (APART * size), one), count)


@inline
def _spread(out: Array, place: int, program: Array, walk: int, at: int, one: Element) -> None:
    """Lay out a block's elements of an array. At ``walk`` the program has the number of its dimensions, their extents
    and their strides."""
    size, dims = size_of(one), program[walk]
    inner, step = program[walk + dims], program[walk + 2 * dims]
    done = 0
    while done < out.size:
        rest = (at + done) // inner
        column = at + done - rest * inner
        first = column * step
        for d in range(walk + dims - 1, walk, -1):
            first += rest % program[d] * program[d + dims]
            rest //= program[d]
        count = min(inner - column, out.size - done)
        if step == 1:
            found = carray(_at(place + first * size, one), count)
            for i in range(count):
                out[done + i] = found[i]
        elif step == 0:
            number = carray(_at(place + first * size, one), 1)[0]
            for i in range(count):
                out[done + i] = number
        else:
            for i in range(count):
                out[done + i] = carray(_at(place + (first + i * step) * size, one), 1)[0]
        done += count


@inline
def _function(code: int, out: Array, x: Array, y: Array) -> None:
    """The functions that have kernels of their own, with the formulas of these (:mod:`.activation`)."""
    if code == _TANH:
        for i in range(out.size):
            v = x[i]
            out[i] = v if (v > -_ITSELF) & (v < _ITSELF) else tanh(v)
    elif code == _SIGMOID:
        for i in range(out.size):
            out[i] = _ONE / (_ONE + exp(-x[i]))
    elif code == _SILU:
        for i in range(out.size):
            out[i] = x[i] / (_ONE + exp(-x[i]))
    elif code == _SILU_SLOPE:
        for i in range(out.size):
            share = _ONE / (_ONE + exp(-y[i]))
            out[i] = x[i] * (share * (y[i] * (_ONE - share) + _ONE))
    elif code == _GELU_BY_ERF:
        for i in range(out.size):
            out[i] = x[i] * (_HALF * (erf(x[i] * _ROOT_HALF) + _ONE))
    elif code == _GELU_BY_TANH:
        for i in range(out.size):
            v = x[i]
            out[i] = v * (_HALF * (tanh(v * (v * v * _TANH_CUBE + _TANH_SCALE)) + _ONE))
    elif code == _GELU_SLOPE_BY_ERF:
        for i in range(out.size):
            v = y[i]
            share = _HALF * (erf(v * _ROOT_HALF) + _ONE)
            out[i] = x[i] * (share + v * (exp(v * v * -_HALF) * _DENSITY))
    elif code == _GELU_SLOPE_BY_TANH:
        for i in range(out.size):
            v = y[i]
            s = v * v * _TANH_CUBE
            t = tanh(v * (s + _TANH_SCALE))
            out[i] = x[i] * (_HALF * (_ONE + t) + _HALF * v * (_ONE - t * t) * (s * F(3) + _TANH_SCALE))


@rounded
def _pair(code: int, out: Array, x: Array, y: Array, z: Array) -> None:
    """Two operations, each rounded."""
    count = out.size
    if code == 0:
        for i in range(count):
            out[i] = (x[i] + y[i]) + z[i]
    elif code == 1:
        for i in range(count):
            out[i] = (x[i] + y[i]) - z[i]
    elif code == 2:
        for i in range(count):
            out[i] = (x[i] + y[i]) * z[i]
    elif code == 3:
        for i in range(count):
            out[i] = z[i] - (x[i] + y[i])
    elif code == 4:
        for i in range(count):
            out[i] = (x[i] - y[i]) + z[i]
    elif code == 5:
        for i in range(count):
            out[i] = (x[i] - y[i]) - z[i]
    elif code == 6:
        for i in range(count):
            out[i] = (x[i] - y[i]) * z[i]
    elif code == 7:
        for i in range(count):
            out[i] = z[i] - (x[i] - y[i])
    elif code == 8:
        for i in range(count):
            out[i] = (x[i] * y[i]) + z[i]
    elif code == 9:
        for i in range(count):
            out[i] = (x[i] * y[i]) - z[i]
    elif code == 10:
        for i in range(count):
            out[i] = (x[i] * y[i]) * z[i]
    else:
        for i in range(count):
            out[i] = z[i] - (x[i] * y[i])


@native("float32", "float64")
def fused_blocks(numbers: In1, program: Int1, objects: Int1, size: Count, start: Count, stop: Count) -> None:
    """Run a program on blocks of ``size`` elements.

    Args:
        numbers: the first blocks of scratch memory hold one each.
        objects: the addresses of the array objects.
    """
    T = numbers.dtype.type
    one, zero = T(1), T(0)
    memory = np.empty(program[1] * APART, numbers.dtype)
    for k in range(numbers.size):
        memory[k * APART : k * APART + CHUNK] = numbers[k]
    scratch = address(memory)
    for at in range(start * CHUNK, min(stop * CHUNK, size), CHUNK):
        count = min(CHUNK, size - at)
        for s in range(HEAD, program[2], WIDTH):
            code, second = program[s], program[s + 3]
            out = _elements(program[s + 1], program, objects, scratch, at, count, one)
            if code == _SPREAD:
                _spread(out, _word_at(objects[program[s + 2]] + _DATA), program, second, at, one)
                continue
            x = _elements(program[s + 2], program, objects, scratch, at, count, one)
            y = _elements(second, program, objects, scratch, at, count, one)
            z = _elements(program[s + 4], program, objects, scratch, at, count, one)
            if code == _ADD:
                for i in range(count):
                    out[i] = x[i] + y[i]
            elif code == _SUBTRACT:
                for i in range(count):
                    out[i] = x[i] - y[i]
            elif code == _MULTIPLY:
                for i in range(count):
                    out[i] = x[i] * y[i]
            elif code == _DIVIDE:
                for i in range(count):
                    out[i] = x[i] / y[i]
            elif code == _NEGATE:
                for i in range(count):
                    out[i] = -x[i]
            elif code == _SQRT:
                for i in range(count):
                    out[i] = math.sqrt(x[i])
            elif code == _RELU:
                for i in range(count):
                    out[i] = zero if x[i] <= zero else x[i]
            elif code == _CUT:
                for i in range(count):
                    v = y[i] if x[i] < y[i] else x[i]
                    out[i] = z[i] if v > z[i] else v
            elif code == _LEAK:
                for i in range(count):
                    out[i] = x[i] if y[i] > zero else x[i] * z[i]
            elif code == _PASS_ABOVE:
                for i in range(count):
                    out[i] = zero if y[i] <= z[i] else x[i]
            elif code == _TANH_SLOPE:
                for i in range(count):
                    out[i] = x[i] * (one - y[i] * y[i])
            elif code == _SIGMOID_SLOPE:
                for i in range(count):
                    out[i] = x[i] * (y[i] * (one - y[i]))
            elif code >= _PAIRS:
                _pair(code - _PAIRS, out, x, y, z)
            else:
                _function(code, out, x, y)
    memory[0] = zero  # an array is freed after its last mention, and its address is none


class _Loop(NamedTuple):
    """A loop of a program: what it makes and takes, numbered as in a run."""

    code: int
    made: int
    reads: tuple[int, ...]


def _loops(run: Run) -> list[_Loop]:
    """The steps, two in one loop where the second alone takes what the first makes."""
    first = len(run.arrays) + run.numbers
    uses = Counter(slot for step in run.steps for slot in step.reads)
    uses.update(first + made for made in run.kept)
    loops: dict[int, _Loop] = {}
    for made, step in enumerate(run.steps, first):
        loops[made] = _Loop(OPERATIONS.index(step.operation), made, step.reads)
        if step.operation not in FIRSTS:
            continue
        for i, slot in enumerate(step.reads):
            before = loops.get(slot)
            if before is not None and uses[slot] == 1 and before.code < len(FIRSTS):
                second = 3 if i == 1 and step.operation == "subtract" else FIRSTS.index(step.operation)
                code = _PAIRS + len(SECONDS) * before.code + second
                loops[made] = _Loop(code, made, (*before.reads, step.reads[1 - i]))
                del loops[slot]
                break
    return list(loops.values())


def _program(run: Run, order: tuple[int, ...]) -> list[int]:
    """The loops as numbers, behind them the walks through arrays that lie otherwise than the results."""
    arrays, first = len(run.arrays), len(run.arrays) + run.numbers
    memory = arrays + len(run.kept)  # the slots behind these are scratch memory
    loops = _loops(run)
    last = {slot: i for i, loop in enumerate(loops) for slot in (loop.made, *loop.reads)}
    places = {arrays + i: memory + i for i in range(run.numbers)}
    places |= {first + made: arrays + i for i, made in enumerate(run.kept)}
    flat = ((prod(run.out.shape), 1),)
    free: list[int] = []
    blocks = run.numbers

    def room() -> int:
        nonlocal blocks
        if free:
            return free.pop()
        blocks += 1
        return memory + blocks - 1

    steps: list[list[int]] = []
    walks: list[tuple[int, tuple[tuple[int, int], ...]]] = []
    for i, loop in enumerate(loops):
        for slot in loop.reads:
            if slot not in places:
                way = walk(run.out, order, run.arrays[slot])
                if way == flat:
                    places[slot] = slot
                else:
                    places[slot] = room()
                    walks.append((len(steps), way))
                    steps.append([_SPREAD, places[slot], slot, 0, 0])
        # A result never lies where an operand does: a loop over one memory is not made of vectors.
        if loop.made not in places:
            places[loop.made] = room()
        reads = [places[slot] for slot in loop.reads]
        steps.append([loop.code, places[loop.made], *reads, *reads[:1] * (3 - len(reads))])
        gone = [places[slot] for slot in {loop.made, *loop.reads} if last[slot] == i]
        free.extend(place for place in gone if place >= memory + run.numbers)
    end = HEAD + WIDTH * len(steps)
    behind: list[int] = []
    for at, pairs in walks:
        steps[at][3] = end + len(behind)
        behind += [len(pairs), *[extent for extent, _ in pairs], *[stride for _, stride in pairs]]
    return [memory, max(blocks, 1), end, *[n for step in steps for n in step], *behind]


class _Machine:
    """A run as a function of its arrays and numbers. One thread calls it at a time."""

    def __init__(self, run: Run) -> None:
        order = order_of(run.out)
        assert order is not None, "results fill their memory"
        shape = run.out.shape
        self._laid = tuple([shape[d] for d in order])
        back = tuple(sorted(range(len(order)), key=order.__getitem__))
        self._turned = None if back == tuple(range(len(order))) else back
        self._dtype = np.dtype(run.out.dtype)
        self._size = prod(shape)
        self._count = len(run.arrays)
        self._made = range(len(run.kept))
        self._blocks = -(-self._size // CHUNK)
        self._work = CHUNK * max(1, len(run.steps) // STEPS)
        self._numbers = np.empty(run.numbers, self._dtype)
        self._objects = np.zeros(self._count + len(run.kept), np.int64)
        self._program = np.array(_program(run, order), np.int64)

    def __call__(self, *given: Any) -> Any:
        count = self._count
        made = [np.empty(self._laid, self._dtype) for _ in self._made]
        self._objects[:] = [*map(id, given[:count]), *map(id, made)]
        if len(given) > count:
            self._numbers[:] = given[count:]
        threads.split(
            fused_blocks, self._blocks, self._work, self._numbers, self._program, self._objects, self._size
        )  # fmt: skip
        if self._turned is not None:
            made = [array.transpose(self._turned) for array in made]
        return made[0] if len(made) == 1 else made


MACHINES["cpu"] = _Machine
