"""Runs of elementwise work in a plan become one call each, which passes over memory once.

A run collects calls whose results have one shape, dtype and layout. It is computed where something first needs one of
its results, or writes to memory that it reads: until then its calls wait, so they need not stand side by side. What
nobody needs behind a run has no memory.

Only calls take part that cannot fail and whose bits the run computes too: NumPy's sums, products and quotients, which
are rounded once, and the formulas of compiled kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ..runtime.fusing import MACHINES, Layout, Run, RunStep, order_of
from .program import At, Instruction, KernelCall, Number, OptimizerStep, PlanProgram, operands_of, target_of

SMALLEST: Final = 1 << 13
"""Elements of a result from which calls wait for a run."""

WORTH: Final = 1 << 17
"""Elements of all its calls from which a run beats them: it costs eight microseconds, and each of them one."""

MOST_ARRAYS: Final = 48
MOST_STEPS: Final = 96
"""Bounds of a run, so that what it works on at a time stays in the nearest cache."""

Reads = tuple[Any, ...]
Spelled = list[tuple[str, Reads]]
"""Operations with what they read: arguments of the call, numbers, or the result of the operation before."""


class _Before:
    """The result of the operation before, of the same call."""


def _binary(operation: str) -> Callable[..., Spelled | None]:
    def spell(x: Any, y: Any) -> Spelled | None:
        return [(operation, (x, y))]

    return spell


def _sum(operation: str) -> Callable[..., Spelled | None]:
    def spell(x: Any, y: Any, alpha: Any) -> Spelled | None:
        if _is_one(alpha):
            return [(operation, (x, y))]
        if type(y) is not At:
            return None
        return [("multiply", (y, alpha)), (operation, (x, _Before()))]

    return spell


def _is_one(value: Any) -> bool:
    return type(value) in (int, float) and value == 1


def _rsub(x: Any, y: Any, alpha: Any) -> Spelled | None:
    if _is_one(alpha):
        return [("subtract", (y, x))]
    return [("multiply", (x, alpha)), ("subtract", (y, _Before()))]


def _div(x: Any, y: Any, rounding: Any) -> Spelled | None:
    return [("divide", (x, y))] if rounding is None else None


def _addcmul(x: Any, first: Any, second: Any, value: Any) -> Spelled | None:
    if _is_one(value):
        return [("multiply", (first, second)), ("add", (x, _Before()))]
    return [("multiply", (first, value)), ("multiply", (_Before(), second)), ("add", (x, _Before()))]


def _addcdiv(x: Any, first: Any, second: Any, value: Any) -> Spelled | None:
    if _is_one(value):
        return [("divide", (first, second)), ("add", (x, _Before()))]
    return [("multiply", (first, value)), ("divide", (_Before(), second)), ("add", (x, _Before()))]


NUMPY: Final[dict[str, Callable[..., Spelled | None]]] = {
    "add": _sum("add"), "sub": _sum("subtract"), "rsub": _rsub, "mul": _binary("multiply"), "div": _div,
    "neg": lambda x: [("negate", (x,))], "square": lambda x: [("multiply", (x, x))],
    "sqrt": lambda x: [("sqrt", (x,))], "reciprocal": lambda x: [("divide", (1, x))],
    "rsqrt": lambda x: [("sqrt", (x,)), ("divide", (1, _Before()))], "addcmul": _addcmul, "addcdiv": _addcdiv,
}  # fmt: skip
"""What NumPy's kernel of an op computes, where all of that is rounded once."""

COMPILED: Final[dict[str, Callable[..., Spelled | None]]] = {
    "relu": lambda x: [("relu", (x,))],
    "relu6": lambda x: [("cut", (x, 0, 6))],
    "hardtanh": lambda x, low, high: [("cut", (x, low, high))],
    "threshold_backward": lambda g, x, limit=0: [("pass_above", (g, x, limit))],
    "leaky_relu": lambda x, slope: [("leak", (x, x, slope))],
    "leaky_relu_backward": lambda g, x, slope: [("leak", (g, x, slope))],
    "tanh": lambda x: [("tanh", (x,))],
    "tanh_backward": lambda g, y: [("tanh_slope", (g, y))],
    "sigmoid": lambda x: [("sigmoid", (x,))],
    "sigmoid_backward": lambda g, y: [("sigmoid_slope", (g, y))],
    "silu": lambda x: [("silu", (x,))],
    "silu_backward": lambda g, x: [("silu_slope", (g, x))],
    "gelu": lambda x, way: [("gelu_by_tanh" if way == "tanh" else "gelu_by_erf", (x,))],
    "gelu_backward": lambda g, x, way: [("gelu_slope_by_tanh" if way == "tanh" else "gelu_slope_by_erf", (g, x))],
}
"""What the compiled kernel of an op computes."""


@dataclass(slots=True)
class _Member:
    """A call that can be part of a run."""

    call: KernelCall
    spelled: Spelled
    out: Layout


@dataclass(slots=True)
class _Open:
    """A run that is still waiting.

    Attributes:
        made: the values that it makes.
        reads: the values that own the memory of what it reads.
    """

    members: list[_Member] = field(default_factory=list)
    made: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)
    arrays: set[int] = field(default_factory=set)
    steps: int = 0


def fuse(program: PlanProgram, code: list[Instruction], kept: set[int]) -> list[Instruction]:
    """The instructions with runs in place of the calls that these compute.

    Args:
        kept: the values that outlive the frame.
    """
    if "cpu" not in MACHINES:
        return code
    return _Fusion(program, code, kept).run()


class _Fusion:
    def __init__(self, program: PlanProgram, code: list[Instruction], kept: set[int]) -> None:
        self.program = program
        self.code = code
        self.kept = kept
        self.uses: dict[int, int] = {}
        for instruction in code:
            for value in operands_of(instruction):
                self.uses[value] = self.uses.get(value, 0) + 1
        self.open: dict[Layout, _Open] = {}
        self.done: list[Instruction] = []

    def run(self) -> list[Instruction]:
        for instruction in self.code:
            member = self._member(instruction)
            self._make_way(instruction, None if member is None else member.out)
            if member is None:
                self.done.append(instruction)
            else:
                self._join(member)
        for layout in list(self.open):
            self._close(layout)
        return self.done

    def _member(self, instruction: Instruction) -> _Member | None:
        """The call as part of a run, if it can be that."""
        if type(instruction) is not KernelCall or len(instruction.metas) != 1 or len(instruction.outs) != 1:
            return None
        call, layouts = instruction, self.program.layouts
        table = COMPILED if call.machine else NUMPY
        spell = table.get(call.name.removesuffix("_"))  # the result of one in place is written by the next instruction
        out = layouts[call.outs[0]]
        if (
            spell is None or out is None or call.metas[0].numel < SMALLEST or call.writes is not None
            or not (call.total and call.pure) or call.several or call.compiled is not None
            or out.dtype not in "fd" or out.shape != call.metas[0].shape or order_of(out) is None
        ):  # fmt: skip
            return None
        args = call.args[1:] if call.args and call.args[0] is np else call.args
        for arg in args:
            if type(arg) is At:
                layout = layouts[arg.value]
                if layout is None or not _readable(layout, out):
                    return None
        spelled = spell(*args)
        if spelled is None or not all(map(_is_operand, [r for _, reads in spelled for r in reads])):
            return None
        return _Member(call, spelled, out)

    def _make_way(self, instruction: Instruction, mine: Layout | None) -> None:
        """Compute the runs whose results an instruction takes, or whose operands it writes to."""
        if not self.open:
            return
        memory = self.program.memory
        taken = {memory[value] for value in operands_of(instruction)}
        target = target_of(instruction)
        written = None if target is None else memory[target]
        for layout, waiting in list(self.open.items()):
            if (
                type(instruction) is OptimizerStep
                or (written is not None and written in waiting.reads)
                or (layout != mine and not taken.isdisjoint(waiting.made))
            ):
                self._close(layout)

    def _join(self, member: _Member) -> None:
        waiting = self.open.get(member.out)
        operands = set(operands_of(member.call))
        if waiting is not None and (
            len(waiting.arrays | operands) > MOST_ARRAYS or waiting.steps + len(member.spelled) > MOST_STEPS
        ):
            self._close(member.out)
            waiting = None
        if waiting is None:
            waiting = self.open[member.out] = _Open()
        waiting.members.append(member)
        waiting.reads.update(self.program.memory[value] for value in operands)
        waiting.arrays.update(operands)
        waiting.made.update(member.call.outs)
        waiting.steps += len(member.spelled)

    def _close(self, layout: Layout) -> None:
        """Compute a run here."""
        waiting = self.open.pop(layout)
        calls = [member.call for member in waiting.members]
        if len(calls) < 2 or len(calls) * calls[0].metas[0].numel < WORTH:
            self.done.extend(calls)
        else:
            self.done.append(self._fused(waiting, layout))

    def _fused(self, waiting: _Open, out: Layout) -> KernelCall:
        inside: dict[int, int] = {}
        for member in waiting.members:
            for value in operands_of(member.call):
                inside[value] = inside.get(value, 0) + 1
        outs = [member.call.outs[0] for member in waiting.members]
        kept = [value for value in outs if value in self.kept or self.uses.get(value, 0) > inside.get(value, 0)]
        arrays = list(dict.fromkeys([v for m in waiting.members for v in operands_of(m.call) if v not in waiting.made]))
        numbers: list[Any] = []
        keys: dict[Any, int] = {}
        for member in waiting.members:
            for _, reads in member.spelled:
                for read in reads:
                    key = _key(read)
                    if key is not None and key not in keys:
                        keys[key] = len(numbers)
                        numbers.append(read)
        first = len(arrays) + len(numbers)
        steps: list[RunStep] = []
        found: dict[RunStep, int] = {}
        results: dict[int, int] = {}
        lasting, taken = set(kept), set[int]()
        for member in waiting.members:
            made = -1
            for operation, reads in member.spelled:
                slots = []
                for read in reads:
                    if type(read) is _Before:
                        slots.append(first + made)
                    elif type(read) is At:
                        inner = results.get(read.value)
                        slots.append(arrays.index(read.value) if inner is None else first + inner)
                    else:
                        slots.append(len(arrays) + keys[_key(read)])
                step = RunStep(operation, tuple(slots))
                made = found.setdefault(step, len(steps))  # what is computed twice is computed once
                if made == len(steps):
                    steps.append(step)
            if member.call.outs[0] in lasting:
                if made in taken:  # a second array of the same values
                    made = len(steps)
                    steps.append(step)
                taken.add(made)
            results[member.call.outs[0]] = made
        layouts = [self.program.layouts[value] for value in arrays]
        run = Run(
            out, tuple([each for each in layouts if each is not None]), len(numbers), tuple(steps),
            tuple([results[value] for value in kept]),
        )  # fmt: skip
        metas = {member.call.outs[0]: member.call.metas[0] for member in waiting.members}
        return KernelCall(
            name_of([member.call.name for member in waiting.members]), MACHINES["cpu"](run),
            [*map(At, arrays), *numbers], kept, total=True, metas=tuple([metas[value] for value in kept]),
            several=len(kept) > 1, machine=True, steps=sum(member.call.steps for member in waiting.members),
        )  # fmt: skip


def name_of(names: Sequence[str]) -> str:
    """What a run of these ops is called."""
    return f"run: {' '.join(names)}"


def _key(read: Any) -> Any:
    """What tells a number from others; ``None`` for what is none."""
    if type(read) in (At, _Before):
        return None
    return (type(read), read.place) if type(read) is Number else (type(read), repr(read))


def _is_operand(read: Any) -> bool:
    return type(read) in (At, Number, _Before, float, int)


def _readable(layout: Layout, out: Layout) -> bool:
    """Whether the elements of an array can be read as operands of such a result."""
    size = 4 if out.dtype == "f" else 8
    lead = len(out.shape) - len(layout.shape)
    return (
        layout.dtype == out.dtype
        and lead >= 0
        and all(n in (1, extent) for n, extent in zip(layout.shape, out.shape[lead:], strict=True))
        and all(stride % size == 0 for stride in layout.strides)
    )
