"""What is the same for every frame of a plan: small arrays that follow from constants alone, as the gradient that a
backward begins with. They are made when the plan is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .program import Instruction, KernelCall, Lay, Number, View, operands_of, outs_of, target_of

if TYPE_CHECKING:
    from .emitting import PlanEmitter

MOST_ELEMENTS: Final = 16


def without(emitter: PlanEmitter, code: list[Instruction]) -> list[Instruction]:
    """The instructions without those that make constants which nobody else sees or writes to: these are run here, and
    what they make is there under its name."""
    memory = emitter.program.memory
    seen = {memory[value] for value in emitter.kept_values()}
    seen |= {memory[target] for target in map(target_of, code) if target is not None}
    for instruction in reversed(code):  # an array that is well laid out already is taken as it is
        if type(instruction) is Lay and memory[instruction.out] in seen:
            seen.add(memory[instruction.raw])
    left: list[Instruction] = []
    for instruction in code:
        outs = outs_of(instruction)
        if (
            outs and not any(memory[out] in seen for out in outs)
            and all(value in emitter.known for value in operands_of(instruction)) and _is_constant(instruction)
        ):  # fmt: skip
            emitter.instruction(instruction)
            emitter.known.update(outs)
        else:
            left.append(instruction)
    emitter.names["B"] = emitter.backend
    exec("\n".join([line.strip() for line in emitter.lines]), emitter.names)  # noqa: S102  (the source is ours)
    del emitter.names["B"]
    emitter.lines.clear()
    return left


def _is_constant(instruction: Instruction) -> bool:
    """Whether it makes small arrays of its operands and of what does not change from frame to frame."""
    if type(instruction) is KernelCall:
        return (
            instruction.pure and instruction.total and instruction.compiled is None and bool(instruction.metas)
            and all(out.known and out.numel <= MOST_ELEMENTS for out in instruction.metas)
            and not any(type(arg) is Number for arg in instruction.args)
        )  # fmt: skip
    return type(instruction) is Lay or (type(instruction) is View and type(instruction.offset) is int)
