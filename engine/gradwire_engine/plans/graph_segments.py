"""Runs of a plan's instructions that only launch kernels: each is a function of arrays, which may become a CUDA graph.

Whether and when is for :mod:`..runtime.cuda.graphs` to say; what cannot be a graph runs as the same straight line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .program import Instruction, KernelCall, Lay, Number, PlanProgram, View, Write, operands_of, outs_of

if TYPE_CHECKING:
    from .emitting import PlanEmitter

FEWEST_LAUNCHES: Final = 3
"""A run with fewer is not worth a graph."""


@dataclass(slots=True)
class GraphSegment:
    """Instructions in a row that only launch kernels, as a function of arrays.

    Attributes:
        end: of the instruction behind the last one.
        inputs, outs: values that it takes, and those of its own that are needed later.
        again: views of memory of others: they are made once more behind it, since a graph lends only its own.
        places: of the frame's numbers that it takes.
        draws: whether it takes random numbers.
    """

    end: int
    inputs: list[int] = field(default_factory=list)
    outs: list[int] = field(default_factory=list)
    again: list[View] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    draws: bool = False


def hoisted(program: PlanProgram, code: list[Instruction]) -> list[Instruction]:
    """The instructions with those in front that take nothing of the others and would part a run: copies from the host,
    and views that begin where a number says."""
    first = [
        (type(each) is KernelCall and each.name in ("constant", "upload"))
        or (type(each) is View and type(each.offset) is not int and each.memory in program.inputs)
        for each in code
    ]
    return [each for wanted in (True, False) for each, leads in zip(code, first, strict=True) if leads is wanted]


def stretches(
    program: PlanProgram, code: list[Instruction], last: dict[int, list[int]], kept: set[int], random: object
) -> dict[int, GraphSegment]:
    """The runs worth a graph, by the position of their first instruction.

    Args:
        last: the values that go after each instruction; the ``kept`` ones outlive all.
        random: what stands for the generator among arguments.
    """
    found: dict[int, GraphSegment] = {}
    dies = {value: i for i, values in last.items() for value in values}
    i = 0
    while i < len(code):
        end, inside, launches = i, set[int](), 0
        while end < len(code) and _launches(code[end], program, inside):
            inside.update(out for out in outs_of(code[end]) if program.memory[out] == out)
            launches += type(code[end]) is not View
            end += 1
        if launches >= FEWEST_LAUNCHES:
            stretch = _stretch(program, code, i, end, inside, kept, dies, random)
            if stretch.outs:
                found[i] = stretch
        i = max(end, i + 1)
    return found


def _launches(instruction: Instruction, program: PlanProgram, inside: set[int]) -> bool:
    """Whether an instruction does nothing but launch kernels that write to memory of the run itself."""
    if type(instruction) is KernelCall:
        return instruction.launches and instruction.writes is None and all(out.numel for out in instruction.metas)
    if type(instruction) is View:
        return type(instruction.offset) is int and 0 not in instruction.shape
    if type(instruction) is Lay:
        return not instruction.scalar and instruction.meta.numel > 0
    return type(instruction) is Write and program.memory[instruction.target] in inside


def _stretch(
    program: PlanProgram, code: list[Instruction], begin: int, end: int, inside: set[int], kept: set[int],
    dies: dict[int, int], random: object,
) -> GraphSegment:  # fmt: skip
    stretch, made = GraphSegment(end), set[int]()
    for instruction in code[begin:end]:
        stretch.inputs.extend(v for v in operands_of(instruction) if v not in made and v not in stretch.inputs)
        made.update(outs_of(instruction))
        for out in outs_of(instruction):
            if out in kept or dies.get(out, end) >= end:
                if program.memory[out] in inside:
                    stretch.outs.append(out)
                elif type(instruction) is View:
                    stretch.again.append(instruction)
        if type(instruction) is KernelCall:
            for arg in instruction.args:
                for each in arg if type(arg) is list else (arg,):
                    if type(each) is Number and each.place not in stretch.places:
                        stretch.places.append(each.place)
                    stretch.draws = stretch.draws or each is random
    return stretch


def write(
    emitter: PlanEmitter, code: list[Instruction], begin: int, stretch: GraphSegment, last: dict[int, list[int]]
) -> None:
    """Spell a run as a function within the plan, and its call."""
    for value in stretch.inputs:
        emitter.load(value)
    inputs, outs = ([f"a{value}" for value in values] for values in (stretch.inputs, stretch.outs))
    emitter.line(f"def g{begin}(given):")
    emitter.indent += " "
    if inputs:
        emitter.line(f"{', '.join(inputs)}, = given")
    given_up = []
    for i in range(begin, stretch.end):
        emitter.instruction(code[i])
        gone = [f"a{value}" for value in last.get(i, ())]
        if gone:
            emitter.line(f"del {', '.join(gone)}")
        given_up += [name for name in gone if name in inputs]
    emitter.line(f"return [{', '.join(outs)}]")
    emitter.indent = emitter.indent[:-1]
    numbers = "".join([f"repr(s[{place}]), " for place in stretch.places])
    random = "G" if stretch.draws else "None"
    emitter.line(
        f"{', '.join(outs)}, = B.graphs.run((OWNER, {begin}), g{begin}, [{', '.join(inputs)}], ({numbers}), {random})"
    )
    for view in stretch.again:
        emitter.instruction(view)
    if given_up:
        emitter.line(f"del {', '.join(given_up)}")
