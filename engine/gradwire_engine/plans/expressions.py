"""Calls whose kernel is one expression of NumPy's: a plan writes it out and calls no kernel.

Among arrays that saves a call of Python's. Among arrays of no dimension it saves most of the op: NumPy computes with
its own numbers in a tenth of the time that it takes for such arrays, to the same bits, as each of these operations is
rounded once.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final, NamedTuple

from gradwire_protocol import dtypes

from ..runtime.arithmetic import BY_THREADS, LARGE
from .program import At, Instruction, KernelCall, Lay, Number, OptimizerStep, PlanProgram, Write


class Spelled(NamedTuple):
    """An op's kernel as an expression of its operands.

    Attributes:
        arrays: with NumPy's functions.
        numbers: with Python's operators; empty where the two may differ.
        fixed: what the arguments behind the operands must be.
        flat: only for results of at most two dimensions.
    """

    arrays: str
    numbers: str
    fixed: tuple[Any, ...] = ()
    flat: bool = False


_PRODUCT: Final = Spelled("matmul({}, {})", "")
EXPRESSIONS: Final = {
    "add": Spelled("add({}, {})", "{} + {}", (1,)),
    "sub": Spelled("subtract({}, {})", "{} - {}", (1,)),
    "rsub": Spelled("subtract({1}, {0})", "{1} - {0}", (1,)),
    "mul": Spelled("multiply({}, {})", "{} * {}"),
    "div": Spelled("true_divide({}, {})", "{} / {}", (None,)),
    "neg": Spelled("negative({})", "-{}"),
    "relu": Spelled("maximum({}, 0)", ""),
    "mm": _PRODUCT, "bmm": _PRODUCT, "mv": _PRODUCT, "dot": _PRODUCT,
    "matmul": Spelled("matmul({}, {})", "", flat=True),
}  # fmt: skip
"""By op."""

FUNCTIONS: Final = ("add", "matmul", "maximum", "multiply", "negative", "subtract", "true_divide")
"""NumPy's, that these name."""

THREADED: Final = "threaded_"
"""What precedes the name of a function of :data:`..runtime.arithmetic.BY_THREADS`."""

_ROUNDED_ONCE: Final = frozenset({dtypes.float32, dtypes.float64})
_EXACT: Final = 1 << 24
"""Ints up to here are the same in every way that they become floats."""


def spell_out(program: PlanProgram) -> None:
    """Give calls their expressions, where they have one. Operands that are arrays of no dimension become the numbers
    that those were made of, where there are."""
    numbers: dict[int, int] = {}
    for instruction in program.code:
        if type(instruction) is KernelCall:
            spelled = _spelled(instruction)
            if spelled is not None:
                instruction.expression = _by_threads(instruction, spelled.arrays)
                if spelled.numbers and _is_number(instruction):
                    instruction.expression = _among_numbers(instruction, spelled.numbers, numbers)
        elif type(instruction) is Lay and instruction.plain:
            numbers[instruction.out] = instruction.raw
        if numbers:
            _forget(program, instruction, numbers)


def _by_threads(call: KernelCall, expression: str) -> str:
    """The same for a large result: NumPy's function by several threads, where there is one by now."""
    name = expression.partition("(")[0]
    large = name in BY_THREADS and prod(call.metas[0].shape) >= LARGE
    return THREADED + expression if large else expression


def _spelled(call: KernelCall) -> Spelled | None:
    spelled = EXPRESSIONS.get(call.name)
    if spelled is None or call.compiled is not None or call.machine or call.writes is not None or len(call.metas) != 1:
        return None
    operands = call.args[1 : len(call.args) - len(spelled.fixed)]
    fixed = call.args[1 + len(operands) :]
    if len(operands) != (1 if call.name in ("neg", "relu") else 2) or any(
        type(value) is not type(wanted) or value != wanted for value, wanted in zip(fixed, spelled.fixed, strict=True)
    ):
        return None
    return None if spelled.flat and len(call.metas[0].shape) > 2 else spelled


def _is_number(call: KernelCall) -> bool:
    """Whether the result is of no dimension, and so are all operands, of dtypes among which NumPy's numbers compute as
    its arrays do."""
    out = call.metas[0]
    return (
        out.shape == ()
        and out.dtype in _ROUNDED_ONCE
        and all(type(arg) is not Number or arg.compute is None for arg in call.args)
        and all(type(arg) is not int or abs(arg) < _EXACT for arg in call.args)
    )


def _among_numbers(call: KernelCall, expression: str, numbers: dict[int, int]) -> str:
    """The expression; what has no number yet is asked for its only element."""
    shown = []
    for i, arg in enumerate(call.args[1:], 1):
        is_array = type(arg) is At and arg.value not in numbers
        if type(arg) is At and not is_array:
            call.args[i] = At(numbers[arg.value])
        shown.append(f"{{{i - 1}}}[()]" if is_array else f"{{{i - 1}}}")
    return expression.format(*shown)


def _forget(program: PlanProgram, instruction: Instruction, numbers: dict[int, int]) -> None:
    """Arrays that an instruction writes to have another number from there on."""
    target = instruction.target if type(instruction) is Write else None
    if type(instruction) is KernelCall:
        target = instruction.writes
    if type(instruction) is OptimizerStep:
        numbers.clear()
    elif target is not None:
        owner = program.memory[target]
        for value in [value for value in numbers if program.memory[value] == owner]:
            del numbers[value]
