"""Kernels and derivatives, registered for the ops of the table by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, Final, Literal, NamedTuple

from gradwire_protocol.table import Kind, Op, lookup

Kernel = Callable[..., Any]
Target = tuple[str, int | None]
"""A differentiable operand: its parameter, and its place if the parameter is a list."""

_LISTS: Final = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)


class SavedSpec(NamedTuple):
    """What a node saves: operands with the positions of their parameters, results with their numbers."""

    operands: tuple[tuple[str, int], ...]
    results: tuple[tuple[str, int], ...]


class Row:
    """All that the engine knows of one op.

    Attributes:
        kernel: computes on arrays; ``None`` for views, which need none, and for control ops.
        compiled: does the same on the CPU in machine code, where it applies; ``None`` until it is loaded, and for most.
        settle: the same for one layout of the arguments; see :func:`bind_layout`.
        half: whether the kernel takes float16 and bfloat16 as they are; otherwise it is given float32.
        announced: whether the kernel is also given the meta of its first result.
        across: whether the kernel takes operands of other devices, which are then brought to its own first.
        rules: per operand, what its gradient needs saved and the function that computes it.
        joint: computes the gradients of all operands at once, where they share work.
        saves: what ``joint`` needs saved.
        describe: :func:`.describing.described` for this op, once it was asked.
        dispensable: the results among what is saved that a derivative can do without: once they were changed in place,
            it finds ``None`` there.
        tensor_at, scalar_at, ...: positions of the parameters that the pipeline treats alike.
        edge_at: of each differentiable operand the place of its edge, where no operand is a list.
        forward: the derivative of the result along tangents of the operands, where forward mode does not follow from
            the rules; see :func:`forward_derivative`.
        flat: what has no tangent where it is 0; see :func:`flat_at_zero`.
        passed_on: the numbers that the derivative hands on to other ops, if it uses them at all; see :func:`passes_on`.
        undefined: the derivative accepts ``None`` for a result that received no gradient.
        writes: whether the kernel of an in-place form writes into its first array itself, and returns nothing.
        composite: for an op made of other ops, the function that calls them; it needs no kernel and no derivative.
        measure: for an op whose need depends on values, what finds it out; see :func:`measured`.
    """

    __slots__ = (
        "_keeps_results", "_kept", "_one_for_all", "_rule_list", "across", "announced", "compiled", "composite",
        "describe", "differentiable", "dispensable", "edge_at", "flat", "forward", "fractions_at", "half",
        "has_lists", "joint", "kernel", "measure", "number_at", "number_like_at", "op", "passed_on",
        "payload_at", "rules", "saves", "scalar_at", "settle", "static_targets", "tensor_at", "undefined", "writes",
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
        self.describe: Callable[..., Any] | None = None
        self.saves: tuple[str, ...] = ()
        self.dispensable: frozenset[str] = frozenset()
        self.undefined = False
        self.forward: Callable[..., Any] | None = None
        self.flat: str | None = None
        self.passed_on: frozenset[str] = frozenset()
        self.composite: Callable[..., Any] | None = None
        self.measure: Callable[..., tuple[int, int]] | None = None
        tensors = (Kind.TENSOR, Kind.OPERAND, *_LISTS)
        self.tensor_at = tuple(i for i, p in enumerate(op.params) if p.kind in tensors)
        self.differentiable = tuple(i for i in self.tensor_at if op.params[i].name in op.differentiable)
        self.edge_at = {op.params[i].name: k for k, i in enumerate(self.differentiable)}
        self.has_lists = any(op.params[i].kind in _LISTS for i in self.tensor_at)
        self._kept: dict[tuple[bool, ...] | None, SavedSpec] = {}
        self._one_for_all: bool | None = None
        self._keeps_results: bool | None = None
        self._rule_list: tuple[Callable[..., Any] | None, ...] | None = None
        self.scalar_at = tuple(i for i, p in enumerate(op.params) if p.kind is Kind.SCALAR)
        self.number_like_at = tuple(i for i, p in enumerate(op.params) if p.kind in (Kind.SCALAR, Kind.OPERAND))
        attributes = [i for i, p in enumerate(op.params) if p.kind is Kind.ATTRIBUTE]
        self.number_at = tuple(i for i in attributes if {int, float} <= set(op.params[i].check))
        fractions = [i for i in attributes if {float, complex} & set(op.params[i].check)]
        self.fractions_at = (*self.number_like_at, *fractions)
        payloads = [i for i, p in enumerate(op.params) if p.kind is Kind.PAYLOAD]
        self.payload_at = payloads[0] if payloads else None
        self.static_targets: tuple[Target, ...] = tuple((op.params[i].name, None) for i in self.differentiable)

    @property
    def has_derivative(self) -> bool:
        return bool(self.rules) or self.joint is not None

    def kept(self, edges: Sequence[object]) -> SavedSpec:
        """What the derivative needs saved, given which operands receive a gradient."""
        if self._one_for_all is None:  # asked when the derivatives are registered
            self._one_for_all = len(self.differentiable) == 1 or self.joint is not None or self.has_lists
        # A node without any edge is not made.
        mask = None if self._one_for_all else tuple([e is not None for e in edges])
        found = self._kept.get(mask)
        if found is None:
            found = self._kept[mask] = self._sort(self._needs(mask))
        return found

    def needed_saved(self) -> list[tuple[str, tuple[int, ...] | None]]:
        """What the derivative needs saved, by name, and the positions of the operands for whose gradients; None where
        it does not matter which are wanted."""
        self.kept([True] * len(self.differentiable))
        operands, results = self._sort(self._needs(None))
        names = [name for name, _ in operands + results]
        if self._one_for_all:
            return [(name, None) for name in names]
        rules = {i: self.rules.get(self.op.params[i].name, ((), None))[0] for i in self.differentiable}
        return [(name, tuple([i for i, needs in rules.items() if name in needs])) for name in names]

    @property
    def keeps_results(self) -> bool:
        """Whether a node of this op may save a result at all."""
        if self._keeps_results is None:  # asked when the derivatives are registered
            self._keeps_results = bool(self._sort(self._needs(None)).results)
        return self._keeps_results

    @property
    def rule_list(self) -> tuple[Callable[..., Any] | None, ...]:
        """What computes the gradient of each differentiable operand, where there is no ``joint`` and are no lists."""
        if self._rule_list is None:
            named = [self.rules.get(self.op.params[i].name) for i in self.differentiable]
            self._rule_list = tuple([None if rule is None else rule[1] for rule in named])
        return self._rule_list

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

    def _sort(self, names: list[str]) -> SavedSpec:
        positions = self.op.positions  # in whose order it is saved, whatever is wanted
        operands = tuple((n, i) for n, i in positions.items() if n in names)
        results = tuple((n, int(n.removeprefix("result") or 0)) for n in dict.fromkeys(names) if n not in positions)
        return SavedSpec(operands, results)

    def targets(self, values: list[Any]) -> tuple[Target, ...]:
        """The operands that the edges of a node with these arguments stand for, in order."""
        if not self.has_lists:
            return self.static_targets
        found: list[Target] = []
        for i in self.differentiable:
            name = self.op.params[i].name
            if self.op.params[i].kind in _LISTS:
                found.extend((name, k) for k in range(len(values[i] or ())))
            else:
                found.append((name, None))
        return tuple(found)


CONTROLS: Final[dict[str, Callable[..., Any]]] = {}
"""What control ops do: ``f(engine, *values)`` on engine tensors."""

WRITING: Final[dict[str, str]] = {}
"""The control ops that write to memory by themselves, and whose it is: that of their operands or of the gradients."""

PLANNED: Final[set[str]] = set()
"""The control ops that a plan can hold: optimizers' steps, and what only moves objects about or computes with ops."""

SETTLING: Final[set[str]] = set()
"""The control ops that only write down what others have computed: optimizers' steps, and what sets gradients."""

BACKWARDS: Final[set[str]] = set()
"""The control ops that run backward, or a part of it, and leave gradients in leaves."""

GRAPH_WALKS: Final[set[str]] = set()
"""The control ops that a plan can hold and that go through the graph."""

ROWS: Final[dict[str, Row]] = {}
_MAKING: Final = RLock()
"""A thread registers compiled kernels while sessions mention ops for the first time: a form made meanwhile has them."""


def row(name: str) -> Row:
    """The row of this op, made at first mention."""
    found = ROWS.get(name)
    return _made(name) if found is None else found


def _made(name: str) -> Row:
    with _MAKING:
        found = ROWS.get(name)
        if found is not None:
            return found
        found = Row(lookup(name))
        base = found.op.base
        if base is not None:
            origin = row(base.name)
            found.kernel, found.half, found.rules = origin.kernel, origin.half, dict(origin.rules)
            found.compiled, found.settle = origin.compiled, origin.settle
            found.passed_on = origin.passed_on
            found.announced, found.across, found.measure = origin.announced, origin.across, origin.measure
            found.joint, found.saves, found.undefined = origin.joint, origin.saves, origin.undefined
        ROWS[name] = found
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


def bind_layout(*names: str) -> Callable[[Callable[..., Kernel | None]], Callable[..., Kernel | None]]:
    """Register how these ops' compiled kernel settles what depends on the layout of its arguments once and for all.

    ``f(*arguments)`` gives a function of the arrays among the arguments, in their order: for arrays of the same dtypes,
    shapes and strides, and the same other arguments, it does what the compiled kernel does. ``None`` where there is
    none. It is asked only where the compiled kernel applies. An in-place form has that of its op.
    """

    def register(settle: Callable[..., Kernel | None]) -> Callable[..., Kernel | None]:
        with _MAKING:
            for entry in _with_forms(names):
                entry.settle = settle
        return settle

    return register


def compiled(*names: str) -> Callable[[Kernel], Kernel]:
    """Register ``f`` as these ops' kernel in machine code: the kernel's arguments, its results to within rounding.

    It returns ``NotImplemented`` where it does not apply, before it has changed anything or drawn a random number; then
    the kernel runs. Whether it applies may depend on dtypes, shapes, strides and attributes, never on values. See
    :mod:`..kernels.cpu`. An in-place form takes that of its op along, unless its kernel writes by itself.
    """

    def register(function: Kernel) -> Kernel:
        with _MAKING:
            for entry in _with_forms(names):
                entry.compiled = function
        return function

    return register


def measured(*names: str) -> Callable[[Callable[..., tuple[int, int]]], Callable[..., tuple[int, int]]]:
    """Register ``f(xp, *arguments)``, called with what the kernel gets and before it, for ops of which the rule cannot
    know what they take: it depends on values. Returns the bytes they take, and the steps (see :mod:`..runtime.work`),
    or 0.
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


def forward_derivative(name: str, function: Callable[..., Any]) -> None:
    """Register ``f(*values, *tangents)`` as the tangent of an op's result, where PyTorch's forward mode differs from
    its reverse mode at the op's kinks. A tangent may be ``None``, not all of them.
    """
    row(name).forward = function


def flat_at_zero(*names: str, of: Literal["self", "result"] = "result") -> None:
    """Let the tangent of these ops' first result be 0 where that, or the operand, is 0 and there is no derivative."""
    for name in names:
        row(name).flat = of


def passes_on(name: str, *numbers: str) -> None:
    """Let a plan take these numbers of an op from each frame: its derivative looks at none, but gives them to ops."""
    for entry in _with_forms([name]):
        entry.passed_on = frozenset(numbers)


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
    name: str, *, writes: Literal["", "operands", "gradients"] = "", planned: bool = False, settles: bool = False,
    backward: bool = False, walks: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Register ``f(engine, *values)`` as what a control op does; tensors arrive as engine tensors.

    ``writes`` tells whose memory it writes to by itself, and not by running other ops. The flags put it into
    :data:`PLANNED`, :data:`SETTLING`, :data:`BACKWARDS` and :data:`GRAPH_WALKS`.
    """
    op = lookup(name)
    if not op.control:
        raise ValueError(f"{name} is not declared as a control op")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CONTROLS[name] = function
        if writes:
            WRITING[name] = writes
        for names, holds in (
            (PLANNED, op.step or planned), (SETTLING, op.step or settles), (BACKWARDS, backward), (GRAPH_WALKS, walks),
        ):  # fmt: skip
            if holds:
                names.add(name)
        return function

    return register


def composite(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``f(engine, *values)`` that computes the op with other ops, on engine tensors.

    The rule still runs first, so shapes and sizes are checked as for any op; history is what the inner ops record.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        row(name).composite = function
        return function

    return register
