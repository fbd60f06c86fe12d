"""Runs of a plan's instructions that only launch kernels: each is a function of arrays, which may become a CUDA graph.

Whether and when is for :mod:`..runtime.cuda.graphs` to say; what cannot be a graph runs as the same straight line.
Every kernel is taken for one that only launches until a capture shows otherwise. Then its name, or the number that is
never twice the same, becomes a :class:`Separators` entry, and the frame gets a new plan that is parted there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .program import Instruction, KernelCall, Lay, Number, PlanProgram, View, Write, operands_of, outs_of, target_of

if TYPE_CHECKING:
    from .emitting import PlanEmitter

FEWEST_LAUNCHES: Final = 3
"""A run with fewer is not worth a graph."""

SOURCE: Final = "<plan>"
"""The file name of a plan's code."""

_CALLED: Final = re.compile(r"= (k\d+)\(|^\s*(k\d+)\(")


@dataclass(slots=True)
class Separators:
    """What parts the runs of one structure's plans.

    Attributes:
        names: of instructions that a graph cannot hold.
        places: of the frame's numbers that differ each time, and :func:`_beginning` of views that do.
        outdated: whether plans were made before the last of these was found.
    """

    names: set[str] = field(default_factory=set)
    places: set[int] = field(default_factory=set)
    outdated: bool = False


class SegmentOwner:
    """The plan whose runs become graphs; it is told why one does not.

    Attributes:
        lines: the plan's source by line, once it is compiled.
        named: by the name of a kernel in the source, that of its instruction.
        places: by run, what its numbers are known by.
    """

    def __init__(self, separators: Separators) -> None:
        self.separators = separators
        self.lines: list[str] = []
        self.named: dict[str, str] = {}
        self.places: dict[int, list[int]] = {}

    def refused(self, error: BaseException) -> None:
        """A capture ended with this error: part the runs at the kernel that raised it."""
        name = None
        seen: BaseException | None = error
        while seen is not None and name is None:
            trace = seen.__traceback__
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == SOURCE and trace.tb_lineno <= len(self.lines):
                    found = _CALLED.search(self.lines[trace.tb_lineno - 1])
                    name = self.named.get(found[1] or found[2]) if found else name
                trace = trace.tb_next
            seen = seen.__context__
        if name is not None and name not in self.separators.names:
            self.separators.names.add(name)
            self.separators.outdated = True

    def unsteady(self, begin: int, numbers: Sequence[int]) -> None:
        """These of a run's numbers, by position, are not twice the same: part the runs where they are used."""
        self.separators.places.update(self.places[begin][i] for i in numbers)
        self.separators.outdated = True


@dataclass(slots=True)
class GraphSegment:
    """Instructions in a row that only launch kernels, as a function of arrays.

    Attributes:
        end: of the instruction behind the last one.
        inputs, outs: values that it takes, and those of its own that are needed later.
        written: the inputs whose memory it writes to.
        again: views of memory of others: they are made once more behind it, since a graph lends only its own.
        numbers: that it takes: as the source has them, and by what they are known: a place among the frame's, or
            :func:`_beginning` of a view.
        draws: whether it takes random numbers.
    """

    end: int
    inputs: list[int] = field(default_factory=list)
    outs: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    again: list[View] = field(default_factory=list)
    numbers: dict[int, str] = field(default_factory=dict)
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
    program: PlanProgram,
    code: list[Instruction],
    last: dict[int, list[int]],
    kept: set[int],
    random: object,
    separators: Separators,
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
        while end < len(code) and _launches(code[end], program, inside, separators):
            inside.update(out for out in outs_of(code[end]) if program.memory[out] == out)
            launches += type(code[end]) is not View
            end += 1
        if launches >= FEWEST_LAUNCHES:
            stretch = _stretch(program, code, i, end, inside, kept, dies, random)
            if stretch.outs or stretch.written:
                found[i] = stretch
        i = max(end, i + 1)
    return found


def _launches(instruction: Instruction, program: PlanProgram, inside: set[int], separators: Separators) -> bool:
    """Whether an instruction does nothing but launch kernels, as far as is known, and writes only to memory of the run
    itself or to such as was there before the frame."""
    target = target_of(instruction)
    if target is not None:
        memory = program.memory[target]
        reached = target in program.inputs or memory in program.inputs
        if memory not in inside and not (memory in program.old and reached):
            return False
    if type(instruction) is KernelCall:
        if not instruction.launches or instruction.name in separators.names:
            return False
        if separators.places and not separators.places.isdisjoint(_places(instruction)):
            return False
        return all(out.numel for out in instruction.metas)
    if type(instruction) is View:
        if 0 in instruction.shape:
            return False
        # A part of what was there before, such as a batch, is another one each time.
        moves = type(instruction.offset) is not int
        return not moves or not (instruction.memory in program.inputs or _beginning(instruction) in separators.places)
    if type(instruction) is Lay:
        return not instruction.scalar and instruction.meta.numel > 0
    return type(instruction) is Write


def _beginning(view: View) -> int:
    """What stands for the beginning of a view among places of numbers."""
    return -1 - view.out


def _places(call: KernelCall) -> list[int]:
    """The places of the frame's numbers that a call takes."""
    flat = [each for arg in call.args for each in (arg if type(arg) is list else (arg,))]
    return [each.place for each in flat if type(each) is Number]


def _stretch(
    program: PlanProgram, code: list[Instruction], begin: int, end: int, inside: set[int], kept: set[int],
    dies: dict[int, int], random: object,
) -> GraphSegment:  # fmt: skip
    stretch, made, written = GraphSegment(end), set[int](), set[int]()
    for instruction in code[begin:end]:
        stretch.inputs.extend(v for v in operands_of(instruction) if v not in made and v not in stretch.inputs)
        made.update(outs_of(instruction))
        for out in outs_of(instruction):
            if out in kept or dies.get(out, end) >= end:
                if program.memory[out] in inside:
                    stretch.outs.append(out)
                elif type(instruction) is View:
                    stretch.again.append(instruction)
        if type(instruction) is View and type(instruction.offset) is not int:
            stretch.numbers[_beginning(instruction)] = ""
        target = target_of(instruction)
        if target is not None and program.memory[target] not in inside:
            written.add(program.memory[target])
        if type(instruction) is KernelCall:
            stretch.numbers.update({place: f"repr(s[{place}])" for place in _places(instruction)})
            stretch.draws = stretch.draws or any(arg is random for arg in instruction.args)
    stretch.written = [value for value in stretch.inputs if program.memory[value] in written]
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
    begins = {_beginning(v): emitter.beginning(v.offset) for v in code[begin : stretch.end] if type(v) is View}
    numbers = "".join([f"{text or begins[place]}, " for place, text in stretch.numbers.items()])
    random = "G" if stretch.draws else "None"
    groups: dict[int, list[int]] = {}
    for value in stretch.written:
        groups.setdefault(emitter.program.memory[value], []).append(stretch.inputs.index(value))
    written = "".join([f"{tuple(group)}, " for group in groups.values()])
    emitter.owner.places[begin] = list(stretch.numbers)
    made = f"{', '.join(outs)}, = " if outs else ""
    arguments = f"g{begin}, [{', '.join(inputs)}], ({numbers}), {random}, ({written}), OWNER"
    emitter.line(f"{made}B.graphs.run((OWNER, {begin}), {arguments})")
    for view in stretch.again:
        emitter.instruction(view)
    if given_up:
        emitter.line(f"del {', '.join(given_up)}")


def written_before(program: PlanProgram, code: list[Instruction]) -> list[int]:
    """The values through which a run writes to memory that was there before: each memory once, as it can be saved."""
    found: dict[int, int] = {}
    for instruction in code:
        target = target_of(instruction)
        if target is not None and program.memory[target] in program.old:
            memory = program.memory[target]
            found.setdefault(memory, memory if memory in program.inputs else target)
    return list(found.values())
