"""Kernels and derivatives, registered for the ops of the table by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from gradwire_protocol.table import Kind, Op, lookup

if TYPE_CHECKING:
    from .tape import Node

Kernel = Callable[..., Any]
Target = tuple[str, int | None]
"""A differentiable operand: its parameter, and its place if the parameter is a list."""

_LISTS: Final = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)


Operands = tuple[str, ...]


class When(NamedTuple):
    """The operands that a gradient depends on where an argument decides: ``then`` if it has the value."""

    parameter: str
    value: bool
    then: Operands
    otherwise: Operands


class Kept(NamedTuple):
    """What a node saves: operands with the positions of their parameters, results with their numbers."""

    operands: tuple[tuple[str, int], ...]
    results: tuple[tuple[str, int], ...]


class Row:
    """All that the engine knows of one op.

    Attributes:
        kernel: computes on arrays; ``None`` for views, which need none, and for control ops.
        compiled: does the same on the CPU in machine code, where it applies; ``None`` until it is loaded, and for most.
        settle: the same for one layout of the arguments; see :func:`settled`.
        half: whether the kernel takes float16 and bfloat16 as they are; otherwise it is given float32.
        announced: whether the kernel is also given the meta of its first result.
        across: whether the kernel takes operands of other devices, which are then brought to its own first.
        rules: per operand, what its gradient needs saved and the function that computes it.
        joint: computes the gradients of all operands at once, where they share work.
        saves: what ``joint`` needs saved.
        dispensable: the results among what is saved that a derivative can do without: once they were changed in place,
            it finds ``None`` there.
        tensor_at, scalar_at, ...: positions of the parameters that the pipeline treats alike.
        undefined: the derivative accepts ``None`` for a result that received no gradient.
        writes: whether the kernel of an in-place form writes into its first array itself, and returns nothing.
        composite: for an op made of other ops, the function that calls them; it needs no kernel and no derivative.
        measure: for an op whose need depends on values, what finds it out; see :func:`measured`.
        uses: for such an op, on which operands the gradient by each one depends (or a :class:`When` where an argument
            decides); ``None`` where it may be all.
        keeps: for such an op, the operands that its inner ops keep for backward; ``None`` where it may be all.
    """

    __slots__ = (
        "_keeps_results", "_kept", "across", "announced", "compiled", "composite", "differentiable", "dispensable",
        "half", "has_lists", "joint", "keeps", "kernel", "measure", "number_at", "number_like_at", "op", "payload_at",
        "rules", "saves", "scalar_at", "settle", "static_targets", "tensor_at", "undefined", "uses", "writes",
    )  # fmt: skip

    def __init__(self, op: Op) -> None:
        self.op = op
        self.kernel: Kernel | None = None
        self.compiled: Kernel | None = None
        self.settle: Callable[..., Kernel | None] | None = None
        self.half = False
        self.announced = False
        self.across = False
        self.writes = op.mutates is not None and op.base is None
        self.rules: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {}
        self.joint: Callable[..., Any] | None = None
        self.saves: tuple[str, ...] = ()
        self.dispensable: frozenset[str] = frozenset()
        self.undefined = False
        self.composite: Callable[..., Any] | None = None
        self.measure: Callable[..., tuple[int, int]] | None = None
        self.uses: Mapping[str, Operands | When] | None = None
        self.keeps: Operands | None = None
        tensors = (Kind.TENSOR, Kind.OPERAND, *_LISTS)
        self.tensor_at = tuple(i for i, p in enumerate(op.params) if p.kind in tensors)
        self.differentiable = tuple(i for i in self.tensor_at if op.params[i].name in op.differentiable)
        self.has_lists = any(op.params[i].kind in _LISTS for i in self.tensor_at)
        self._kept: dict[tuple[bool, ...] | None, Kept] = {}
        self._keeps_results: bool | None = None
        self.scalar_at = tuple(i for i, p in enumerate(op.params) if p.kind is Kind.SCALAR)
        self.number_like_at = tuple(i for i, p in enumerate(op.params) if p.kind in (Kind.SCALAR, Kind.OPERAND))
        attributes = [i for i, p in enumerate(op.params) if p.kind is Kind.ATTRIBUTE]
        self.number_at = tuple(i for i in attributes if {int, float} <= set(op.params[i].check))
        payloads = [i for i, p in enumerate(op.params) if p.kind is Kind.PAYLOAD]
        self.payload_at = payloads[0] if payloads else None
        self.static_targets: tuple[Target, ...] = tuple((op.params[i].name, None) for i in self.differentiable)

    @property
    def has_derivative(self) -> bool:
        return bool(self.rules) or self.joint is not None

    def kept(self, edges: Sequence[Any]) -> Kept:
        """What the derivative needs saved, given which operands receive a gradient."""
        if len(self.differentiable) == 1 or self.joint is not None or self.has_lists:
            found = self._kept.get(None)  # a node without any edge is not made
            if found is None:
                found = self._kept[None] = self._sort(self._needs(None))
            return found
        mask = tuple([e is not None for e in edges])
        found = self._kept.get(mask)
        if found is None:
            found = self._kept[mask] = self._sort(self._needs(mask))
        return found

    @property
    def keeps_results(self) -> bool:
        """Whether a node of this op may save a result at all."""
        if self._keeps_results is None:  # asked when the derivatives are registered
            self._keeps_results = bool(self._sort(self._needs(None)).results)
        return self._keeps_results

    def _needs(self, mask: tuple[bool, ...] | None) -> list[str]:
        if self.joint is not None:
            return list(self.saves)
        if mask is None:
            return [name for needs, _ in self.rules.values() for name in needs]
        names: list[str] = []
        for i, wanted in zip(self.differentiable, mask, strict=True):
            rule = self.rules.get(self.op.params[i].name) if wanted else None
            names.extend(rule[0] if rule is not None else ())
        return names

    def _sort(self, names: list[str]) -> Kept:
        unique = dict.fromkeys(names)
        positions = self.op.positions
        operands = tuple((n, positions[n]) for n in unique if n in positions)
        results = tuple((n, int(n.removeprefix("result") or 0)) for n in unique if n not in positions)
        return Kept(operands, results)

    def targets(self, node: Node) -> tuple[Target, ...]:
        """The operands that the node's edges stand for, in order."""
        if not self.has_lists:
            return self.static_targets
        found: list[Target] = []
        for i in self.differentiable:
            name = self.op.params[i].name
            if self.op.params[i].kind in _LISTS:
                found.extend((name, k) for k in range(len(node.values[i] or ())))
            else:
                found.append((name, None))
        return tuple(found)


CONTROLS: Final[dict[str, Callable[..., Any]]] = {}
"""What control ops do: ``f(engine, *values)`` on engine tensors."""

WRITING: Final[dict[str, str]] = {}
"""The control ops that write to memory by themselves, and whose it is: that of their operands or of the gradients."""

ROWS: Final[dict[str, Row]] = {}


def row(name: str) -> Row:
    """The row of this op, made at first mention."""
    found = ROWS.get(name)
    if found is None:
        found = ROWS[name] = Row(lookup(name))
        base = found.op.base
        if base is not None:
            origin = row(base.name)
            found.kernel, found.half, found.rules = origin.kernel, origin.half, dict(origin.rules)
            found.compiled, found.settle = origin.compiled, origin.settle
            found.announced, found.across, found.measure = origin.announced, origin.across, origin.measure
            found.joint, found.saves, found.undefined = origin.joint, origin.saves, origin.undefined
    return found


def kernel(
    *names: str, half: bool = False, announced: bool = False, across: bool = False, writes: bool = False
) -> Callable[[Kernel], Kernel]:
    """Register ``f(xp, *arguments)`` as the computation of these ops.

    Tensors arrive as arrays, already cast to the rule's compute dtype (float16 and bfloat16 as float32, unless
    ``half=True``) and *not* broadcast; numbers and attributes arrive as they are. A random op's kernel gets the
    session's generator after ``xp``, one registered with ``announced=True`` then the meta of its first result
    (where the dtype may be a default, or an announcement saves a cast). With ``across=True`` operands may be on
    any device: they are copied to that of the result. The result is cast to the dtype that the rule announced. The
    kernel of an op that only exists in place writes into its first array and returns nothing; so does one that is
    registered for an in-place form with ``writes=True``, to spare a copy of the whole.
    """

    def register(function: Kernel) -> Kernel:
        for name in names:
            entry = row(name)
            entry.kernel, entry.half, entry.announced, entry.across = function, half, announced, across
            entry.writes = entry.writes or writes
        return function

    return register


def _with_forms(names: Sequence[str]) -> list[Row]:
    """The rows of these ops, and of their in-place forms whose kernels do not write by themselves."""
    entries = [row(name) for name in names]
    ops = [entry.op for entry in entries]
    return entries + [form for form in ROWS.values() if form.op.base in ops and not form.writes]


def settled(*names: str) -> Callable[[Callable[..., Kernel | None]], Callable[..., Kernel | None]]:
    """Register how these ops' compiled kernel settles what depends on the layout of its arguments once and for all.

    ``f(*arguments)`` gives a function of the arrays among the arguments, in their order: for arrays of the same dtypes,
    shapes and strides, and the same other arguments, it does what the compiled kernel does. ``None`` where there is
    none. It is asked only where the compiled kernel applies. An in-place form has that of its op.
    """

    def register(settle: Callable[..., Kernel | None]) -> Callable[..., Kernel | None]:
        for entry in _with_forms(names):
            entry.settle = settle
        return settle

    return register


def compiled(*names: str) -> Callable[[Kernel], Kernel]:
    """Register ``f`` as these ops' kernel in machine code: the kernel's arguments, its results to within rounding.

    It returns ``NotImplemented`` where it does not apply, before it has changed anything or drawn a random number; then
    the kernel runs. Whether it applies may depend on dtypes, shapes, strides and attributes, never on values. See
    :mod:`.compiled`. An in-place form takes that of its op along, unless its kernel writes by itself.
    """

    def register(function: Kernel) -> Kernel:
        for entry in _with_forms(names):
            entry.compiled = function
        return function

    return register


def measured(*names: str) -> Callable[[Callable[..., tuple[int, int]]], Callable[..., tuple[int, int]]]:
    """Register ``f(xp, *arguments)``, called with what the kernel gets and before it, for ops of which the rule cannot
    know what they take: it depends on values. Returns the bytes they take, and the steps (see :mod:`.work`), or 0.
    """

    def register(function: Callable[..., tuple[int, int]]) -> Callable[..., tuple[int, int]]:
        for name in names:
            row(name).measure = function
        return function

    return register


def derivative(name: str, /, **rules: Callable[..., Any] | tuple[str, Callable[..., Any]]) -> None:
    """Register gradients operand by operand: ``derivative("mul", self=("other", lambda s, g: g * s.other), ...)``.

    A rule is ``f(saved, *gradients)``, written in differentiable ops; the string before it names what it needs
    saved (operands, ``result``, or ``result0``, ``result1``, ...); a result with a question mark is dispensable (see
    :class:`Row`). Shapes, dtypes and reality are the driver's
    business: a rule may return a gradient that is still broadcast, in another dtype, or complex.
    """
    entry = row(name)
    for operand, rule in rules.items():
        needs, function = rule if isinstance(rule, tuple) else ("", rule)
        if operand not in entry.op.differentiable:
            raise ValueError(f"{name} does not declare {operand!r} differentiable")
        names = needs.split()
        entry.dispensable |= {name[:-1] for name in names if name.endswith("?")}
        entry.rules[operand] = (tuple([name.removesuffix("?") for name in names]), function)


def joint_derivative(name: str, saves: str = "", undefined: bool = False) -> Callable[[Kernel], Kernel]:
    """Register ``f(saved, *gradients)`` that returns the gradients of all differentiable operands, in order of the
    parameters; ``None`` where there is none or ``saved.needs(name)`` is false; a list for a list of tensors.
    """

    def register(function: Kernel) -> Kernel:
        entry = row(name)
        entry.joint, entry.saves, entry.undefined = function, tuple(saves.split()), undefined
        return function

    return register


def control(
    name: str, writes: Literal["", "operands", "gradients"] = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``f(engine, *values)`` as what a control op does; tensors arrive as engine tensors.

    ``writes`` tells whose memory it writes to by itself, and not by running other ops.
    """
    if not lookup(name).control:
        raise ValueError(f"{name} is not declared as a control op")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CONTROLS[name] = function
        if writes:
            WRITING[name] = writes
        return function

    return register


def composite(
    name: str, gradients: Mapping[str, Operands | When] | None = None, keeps: Operands | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``f(engine, *values)`` that computes the op with other ops, on engine tensors.

    The rule still runs first, so shapes and sizes are checked as for any op; history is what the inner ops record.
    ``gradients`` says on which operands the gradient by each one depends, where it is not on all of them; ``keeps``
    which operands the inner ops keep themselves, rather than what they made of them, where it may not be all.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        entry = row(name)
        entry.composite, entry.uses, entry.keeps = function, gradients, keeps
        return function

    return register
