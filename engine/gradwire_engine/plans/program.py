"""A captured frame as data: instructions on numbered values, in order. Nothing here computes.

A *value* is an array, named by its number. Values have one of three origins: memory that was there before the frame
(:class:`Input`), a payload, and instructions. Each shows a *memory*, named by the number of the value that owns it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradwire_protocol.meta import Inference, Meta

from ..autograd.registry import Row
from ..runtime.fusing import Layout


@dataclass(frozen=True, slots=True)
class At:
    """The value of this number, as an argument."""

    value: int


@dataclass(frozen=True, slots=True)
class Number:
    """The number at this place of the frame's table, as an argument.

    Attributes:
        compute: the dtype among whose elements an int is taken, which may wrap it around.
    """

    place: int
    compute: Any = None


@dataclass(frozen=True, slots=True)
class Offset:
    """Where a view begins that depends on numbers of the frame: a constant plus what rules say, in elements.

    Attributes:
        terms: (which of the program's :class:`DynamicView` entries, which of its results); -1 and the number of a thing
            stand for where that begins.
    """

    constant: int
    terms: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DynamicView:
    """A view whose beginning is data: its rule is asked again with the numbers of the frame.

    Attributes:
        args: what the rule saw, with :class:`Number` where it saw a position.
        inferred: what it said; all but the offsets must be the same again.
        known: the offsets that it said since, by the numbers: a loop goes over the same parts again and again.
    """

    row: Row
    args: tuple[Any, ...]
    inferred: Inference
    known: dict[tuple[Any, ...], tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)


@dataclass(slots=True)
class Input:
    """An array that was there before: of the object of this number, or of its storage."""

    value: int
    thing: int
    whole: bool


@dataclass(slots=True)
class KernelCall:
    """``outs = function(*args)``.

    Attributes:
        name: the op's, or what else it is.
        compiled: tried first with the same arguments, where there is one and they do not settle whether it applies.
        machine: the function is a compiled kernel, which applies.
        steps: of work that it takes, by :mod:`..runtime.work`.
        writes: the value written to, where the function writes by itself.
        total: no values of the operands make it fail.
        pure: it draws no random numbers and has no other effect.
        metas: of the results, as the op's rule announced them, where it is an op.
        several: it returns a tuple.
        expression: of NumPy's, that gives the same; its fields are the arguments behind the first.
        launches: on a GPU it does nothing but launch kernels, as far as is known, so it may be part of a graph.
    """

    name: str
    function: Callable[..., Any]
    args: list[Any]
    outs: list[int]
    compiled: Callable[..., Any] | None = None
    writes: int | None = None
    total: bool = False
    pure: bool = True
    metas: tuple[Meta, ...] = ()
    several: bool = False
    expression: str = ""
    launches: bool = False
    machine: bool = False
    steps: int = 0


@dataclass(slots=True)
class Lay:
    """A kernel's raw result in the dtype and order that its rule announced. ``scalar``: it only has to become an
    array. ``plain``: it is a number of NumPy's, and of that dtype."""

    out: int
    raw: int
    meta: Meta
    operands: list[int]
    scalar: bool
    plain: bool = False


@dataclass(slots=True)
class View:
    """An array over the memory of another value; strides in bytes, offset in bytes or in elements of ``size``.
    ``ordered``: the memory is an array in row-major order. ``source`` and ``way``: the same as a method of another
    value's array, where there is one, which takes a tenth of the time.
    """

    out: int
    memory: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int | Offset
    dtype: Any
    size: int
    ordered: bool
    source: int | None = None
    way: str = ""


@dataclass(slots=True)
class Write:
    """``target[...] = raw``, cast first to the target's dtype unless it has it."""

    target: int
    raw: int
    cast: bool


@dataclass(slots=True)
class ArrivedGradient:
    """A gradient that has arrived at a leaf by the time an optimizer runs."""

    param: int
    grad: Any


@dataclass(slots=True)
class OptimizerStep:
    """An optimizer's step, run as it is on the tensors themselves.

    Attributes:
        given: what the parameters have in ``grad`` at this point.
        args: with :class:`Thing` for tensors.
        written: objects whose memory it may change.
    """

    name: str
    function: Callable[..., Any]
    args: list[Any]
    given: list[ArrivedGradient]
    written: list[int]
    grad_enabled: bool


@dataclass(frozen=True, slots=True)
class Thing:
    """An object that was there before the frame, by number."""

    number: int


@dataclass(frozen=True, slots=True)
class New:
    """An object that the frame makes and that outlives it, by the number of its template."""

    number: int


Instruction = KernelCall | Lay | View | Write | OptimizerStep


def target_of(instruction: Instruction) -> int | None:
    """The value that an instruction writes to."""
    if type(instruction) is Write:
        return instruction.target
    return instruction.writes if type(instruction) is KernelCall else None


def outs_of(instruction: Instruction) -> list[int]:
    """The values that an instruction makes."""
    if type(instruction) is KernelCall:
        return instruction.outs
    return [instruction.out] if type(instruction) in (View, Lay) else []  # type: ignore[union-attr]


def operands_of(instruction: Instruction) -> list[int]:
    """The values that an instruction takes."""
    kind = type(instruction)
    if kind is KernelCall:
        flat = [e for arg in instruction.args for e in (arg if type(arg) is list else (arg,))]  # type: ignore[union-attr]
        return [each.value for each in flat if type(each) is At]
    if kind is View:
        if instruction.source is not None:  # type: ignore[union-attr]
            return [instruction.source]  # type: ignore[union-attr]
        return [instruction.memory]  # type: ignore[union-attr]
    if kind is Lay:
        return [instruction.raw, *instruction.operands]  # type: ignore[union-attr]
    if kind is Write:
        return [instruction.target, instruction.raw]  # type: ignore[union-attr]
    return []


@dataclass
class PlanProgram:
    """A frame without its tape.

    Attributes:
        code: the instructions.
        inputs: by value.
        payloads: value by the number of the payload.
        memory: value by value: which value owns its memory.
        old: the values whose memory was there before, or is a payload's.
        guarded: places of numbers that must be the same again.
        places: the views whose beginning is data.
        offsets: the beginning of values that are such views.
        fixed: things that must begin where they did, with that.
        layouts: by value, how its array lies in memory; ``None`` for what is no array.
    """

    code: list[Instruction] = field(default_factory=list)
    inputs: dict[int, Input] = field(default_factory=dict)
    payloads: list[tuple[int, int]] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    old: set[int] = field(default_factory=set)
    guarded: set[int] = field(default_factory=set)
    places: list[DynamicView] = field(default_factory=list)
    offsets: dict[int, Offset] = field(default_factory=dict)
    fixed: dict[int, int] = field(default_factory=dict)
    layouts: list[Layout | None] = field(default_factory=list)
