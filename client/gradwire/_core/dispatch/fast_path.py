"""The fast path from a call to a record, for calls with a signature that was recorded before.

The long way (:func:`.dispatch.run`) finds out what a call is, and leaves what follows from its form alone
(:mod:`.signatures`). The next call of that form looks it up, and does only what is new each time: references, the line,
the node, the proxy. It is taken while an operation is nothing but its record, and by the thread that recorded last (see
:mod:`..context.modes` and :mod:`..context.biased_lock`); else the long way is.

The function that does this is written for the signature: a loop or a call inside it costs as much as half of what there
is to do. :func:`source_of` puts it together from the blocks below. Signatures that differ in dtypes and shapes only
have the same source, and share the function. Nothing that a program passes becomes part of it.

What is recorded is made before the turn is taken: whatever is allocated may start the collector of garbage, and that
runs destructors of the program's, which take their time or record something themselves. The end of a turn that was
taken away meanwhile is not recorded; the long way begins again.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from sys import _getframe
from textwrap import dedent, indent
from typing import Any, Final

from gradwire_protocol.ops.control import GRAD_MODE

from ..context.biased_lock import NOBODY
from ..context.call_sites import INSIDE
from ..context.modes import MODES
from ..graph.graph_mirror import Node, edge_of, next_seq
from ..graph.save_policy import KEPT, NO_TENSOR, Places
from ..tensor.tensor import Tensor
from .signatures import Signature

NOT_APPLICABLE: Final = object()
"""What the fast path returns where it cannot be taken after all."""

MOST_RECEIVERS: Final = 3
"""Operands that may receive a gradient, of which the source has a branch for each combination that matters."""

NAMES: Final[dict[str, Any]] = {
    "INSIDE": INSIDE, "KEPT": KEPT, "MODES": MODES, "NOBODY": NOBODY, "NOT_APPLICABLE": NOT_APPLICABLE,
    "Node": Node, "Tensor": Tensor, "edge_of": edge_of, "getframe": _getframe, "new": object.__new__,
    "next_seq": next_seq,
}  # fmt: skip
"""What the source refers to."""

_functions: dict[str, Callable[..., Any]] = {}
"""By their source."""


def prepare(signature: Signature, session: Any, key: int, *values: Any, line: Any = None) -> Any:
    """What records the second call of a form, which few calls of a program ever get to: it writes the function for the
    others."""
    signature.keeping = signature.entry.keeping
    bound = [*values, *signature.entry.defaults[len(values) :]]
    numbers = [bound[i] for i in signature.keeping.numbers]
    signature.asked = tuple([number if type(number) in NO_TENSOR else None for number in numbers])
    source = source_of(signature, bound)
    record = _functions.get(source)
    if record is None:
        # The name is one inside the package, so that its lines do not count as the program's.
        name = f"{__file__.removesuffix('.py')}_{len(_functions)}.py"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for tracebacks
        names = dict(NAMES)
        exec(compile(source, name, "exec"), names)  # noqa: S102  (the source is ours to the last character)
        record = _functions[source] = names["record"]
    signature.record = record
    return record(signature, session, key, *values, line=line)


# The blocks

_NO_HISTORY: Final = """
    if a0._inference or MODES.scopes:
        return NOT_APPLICABLE
    if key & {recording}:
        for x in ({operands},):
            if x._node is not None or x._requires or (x._base_tensor is not None and x.requires_grad):
                return NOT_APPLICABLE
    """
"""Of a write: one that autograd may refuse or record goes the long way."""

_EDGE: Final = """
    node = {x}._node
    if {x}._base_tensor is not None:
        if node is not None:
            {edge} = edge_of({x})
        elif {x}.requires_grad:
            return NOT_APPLICABLE
    elif node is not None:
        {edge} = (node, {x}._slot)
    elif {x}._requires:
        {edge} = edge_of({x})
    """

_LINE: Final = """
    if line is None:
        frame = getframe(2)
        code = frame.f_code
        if code is not signature.caller:
            if not INSIDE[code.co_filename]:
                signature.caller = code
            while INSIDE[code.co_filename] and frame.f_back is not None:
                frame = frame.f_back
                code = frame.f_code
        line = (code, frame.f_lasti)
    """

_TURN: Final = """
    builder = session.builder
    lock = builder.lock
    if lock.{ready} != key:
        return NOT_APPLICABLE
    lock.busy = True
    try:
        ops = builder.records
        if lock.{ready} != key or len(ops) >= builder.limit{too_large}:
            lock.busy = False
            return NOT_APPLICABLE
        first = builder.first
    """

_REFERENCE: Final = """
    number = {x}._id
    at = number - first
    if at < 0:
        table = builder.external
        known = table.get(number)
        if known is None:
            if number < 0:
                lock.busy = False
                return NOT_APPLICABLE
            known = table[number] = len(table)
        at = -1 - known
    args[{i}] = at
    """

_COMMIT: Final = """
    if not lock.busy:
        return NOT_APPLICABLE
    ops += records  # from here on nothing is called, so that nobody comes in between
    builder.lines += lines
    number = builder.next_id
    builder.next_id = number + {count}
    """

_END: Final = """
    except BaseException:
        lock.broken = True
        lock.ready = lock.joins = NOBODY
        lock.busy = False
        raise
    lock.busy = False
    if not builder.watched:
        builder.stir()
    """

_NODE: Final = """
    node = new(Node)
    node.signature = signature.node
    node.edges = edges
    node.line = line
    node.saved = saved
    node.numbers = {numbers}
    node.part = node.inner = node.retained = None
    node.seq = next_seq()
    """

_RESULTS: Final = """
    slot = 0
    for made in results:
        made._form = signature.visible[slot]
        made._base_tensor = made._versions = None
        if node is not None and slot in signature.floating:
            made._node, made._slot = node, slot
        else:
            made._node, made._slot = None, 0
        slot += 1
    """


@lru_cache(512)
def _laid_out(block: str, depth: int) -> str:
    """A block's lines at a depth. Most blocks come again and again, and finding their margin took half of the time of
    writing a function."""
    indentation = "    " * depth
    return indent(dedent(block).strip("\n"), indentation) if "\n" in block else indentation + block


def source_of(signature: Signature, values: Sequence[Any]) -> str:
    """The source of the function that records calls of a signature.

    Args:
        values: those of one such call, bound.
    """
    return "\n".join(_Source(signature, values).lines) + "\n"


def _without_difference(places: dict[tuple[bool, ...], Places]) -> dict[tuple[bool, ...], Places]:
    """What a derivative keeps by which operands receive a gradient, as far as that makes a difference: a bias does not.
    Ways with more receivers stay before those with fewer."""
    for at in range(len(next(iter(places)))):
        without = {way: (*way[:at], False, *way[at + 1 :]) for way in places}
        if all(places.get(other, places[way]) == places[way] for way, other in without.items()):
            places = {without[way]: found for way, found in places.items()}
    return places


class _Source:
    """The lines of one function. ``a0``, ``a1``, ... are the values of a call, with those of lists copied."""

    def __init__(self, signature: Signature, values: Sequence[Any]) -> None:
        self.lines: list[str] = []
        self._signature, self._values = signature, values
        self._writes = signature.entry.op.mutates is not None
        self._recorded = (
            not self._writes
            and signature.recorded
            and any(i in signature.references or i in signature.lists for i in signature.differentiable)
        )
        self._kept = self._places() if self._recorded else {}
        operands = ", ".join(f"a{i}=None" for i in range(len(values)))
        self._add(f"def record(signature, session, key, {operands}, line=None):", 0)
        self._look_at_sessions()
        if self._writes:
            self._add(_NO_HISTORY, recording=GRAD_MODE, operands=", ".join(f"a{i}" for i in signature.references))
        elif self._recorded:
            self._find_edges()
        self._add(_LINE)
        self._prepare_record()
        self._take_turn()
        if self._writes:
            self._add("return a0")
        else:
            self._finish_results()

    def _add(self, block: str, depth: int = 1, **names: Any) -> None:
        self.lines.append(_laid_out(block, depth).format(**names))

    def _places(self) -> dict[tuple[bool, ...], Places] | None:
        """What the derivative keeps, by which operands receive a gradient; ``None`` where that is looked up."""
        signature, keeping = self._signature, self._signature.keeping
        receive = [i in signature.references for i in signature.differentiable]
        found: dict[tuple[bool, ...], Places]
        if keeping.whole is not None:
            found = {(): keeping.whole}
        elif sum(receive) > MOST_RECEIVERS or any(i in signature.lists for i in signature.differentiable):
            return None
        else:
            ways = [way for way in product(*[(True, False) if one else (False,) for one in receive]) if any(way)]
            edges = [tuple([one or None for one in way]) for way in ways]
            found = {way: keeping.places(edge, signature.recipe) for way, edge in zip(ways, edges, strict=True)}
            found = _without_difference(found)
            if len(set(found.values())) == 1:
                found = {(): next(iter(found.values()))}
        operands = {at for places in found.values() for at in places[0]}
        results = {places[1] for places in found.values()}
        return None if operands & {*signature.lists} or len(results) > 1 else found

    def _look_at_sessions(self) -> None:
        for i in self._signature.references[1:]:
            self._add("if a{i}._session is not session:\n    return NOT_APPLICABLE", i=i)
        for i in self._signature.lists:
            self._add("""
                a{i} = list(a{i})
                for x in a{i}:
                    if x is not None and (x._session is not session or x._id < 0):
                        return NOT_APPLICABLE
                """, i=i)  # fmt: skip

    def _find_edges(self) -> None:
        signature = self._signature
        self._add(f"edges = None\nif key & {GRAD_MODE}:")
        if any(i in signature.lists for i in signature.differentiable):
            self._add("found = []", 2)
            for i in signature.differentiable:
                if i in signature.lists:
                    self._add("for x in a{i}:\n    edge = None\n    if x is not None:", 2, i=i)
                    self._add(_EDGE, 4, x="x", edge="edge")
                    self._add("found.append(edge)", 3)
                elif i in signature.references:
                    self._add("edge = None", 2)
                    self._add(_EDGE, 2, x=f"a{i}", edge="edge")
                    self._add("found.append(edge)", 2)
                else:
                    self._add("found.append(None)", 2)
            self._add("if found.count(None) < len(found):\n    edges = tuple(found)", 2)
        else:
            receivers = [i for i in signature.differentiable if i in signature.references]
            for i in receivers:
                self._add("e{i} = None", 2, i=i)
                self._add(_EDGE, 2, x=f"a{i}", edge=f"e{i}")
            named = [f"e{i}" if i in receivers else "None" for i in signature.differentiable]
            self._add(f"if {' or '.join(f'e{i} is not None' for i in receivers)}:", 2)
            self._add(f"edges = ({', '.join(named)},)", 3)
        self._save_operands()

    def _save_operands(self) -> None:
        """Before the record, since what was made in inference mode is refused."""
        if self._kept is None:
            self._add(f"""
                kept = signature.keeping.places(edges, signature.recipe)
                saved = signature.keeping.held(kept, ({self._all()},)) if kept[0] else ()
                """, 3)  # fmt: skip
            return
        for at, (way, (operands, _)) in enumerate(self._kept.items()):
            depth = 3
            if way:
                receivers = zip(way, self._signature.differentiable, strict=True)
                asked = " and ".join(f"e{i} is not None" for one, i in receivers if one)
                self._add(f"{'elif' if at else 'if'} {asked}:" if asked else "else:", 3)
                depth = 4
            self._add(f"saved = {self._saved(operands, depth)}", depth)

    def _saved(self, operands: Sequence[int], depth: int) -> str:
        """An expression for what is kept of operands."""
        parts = []
        for i in operands:
            if i in self._signature.references:
                self._add("c{i} = a{i}._versions or a{i}._kept_cell()", depth, i=i)
                parts.append(f"(c{i}, c{i}[0], {i}, a{i}._id, a{i}._form), ")
            elif i in self._signature.keeping.wrapped and self._values[i] is not None:
                parts.append("KEPT, ")
        return f"({''.join(parts)})"

    def _all(self) -> str:
        return ", ".join(f"a{i}" for i in range(len(self._values)))

    def _prepare_record(self) -> None:
        signature = self._signature
        if self._writes:
            self._add("cell = a0._versions or a0._cell()\nnoted = cell[0] + 1, signature.name, line")
        elif signature.alone:
            self._add("made = new(Tensor)")
        else:
            self._add("results = [new(Tensor) for _ in signature.visible]\ncount = len(results)")
        counted = ", count" if signature.counted else ""
        self._add(f"args = {self._arguments()}\nrecords = ([signature.name, args{counted}],)\nlines = (line,)")
        if signature.numbers:
            self._add(f"numbers = ({', '.join(f'a{i}' for i in signature.numbers)},)")

    def _arguments(self) -> str:
        """An expression for the record's arguments, without references."""
        signature = self._signature
        replaced = {*signature.references, *signature.lists}
        written = ["0" if i in replaced else f"signature.template[{i}]" for i in range(len(signature.template))]
        return f"[{', '.join(written)}]" if len(written) < 3 else "signature.template.copy()"

    def _take_turn(self) -> None:
        signature = self._signature
        ready = "joins" if signature.joins else "ready"
        too_large = "" if signature.control else " or signature.largest > session.max_tensor_bytes"
        self._add(_TURN, ready=ready, too_large=too_large)
        for i in signature.references:
            self._add(_REFERENCE, 2, x=f"a{i}", i=i)
        for i in signature.lists:
            self._add("args[{i}] = builder.references(a{i})", 2, i=i)
        self._add(_COMMIT, 2, count=0 if self._writes else 1 if signature.alone else "count")
        if signature.numbers:
            self._add("builder.scalars += numbers", 2)
        if signature.control or self._writes:
            self._add("builder.changes += 1", 2)
        if self._writes:
            self._add("cell[:] = noted", 2)
        elif signature.alone:
            self._add("made._id = number\nmade._session = session  # from here on it is released when it goes", 2)
        else:
            self._add("for made in results:\n    made._id = number\n    made._session = session\n    number += 1", 2)
        self._add(_END)

    def _finish_results(self) -> None:
        signature = self._signature
        if self._recorded:
            self._add("node = None\nif edges is not None:")
            self._add(_NODE, 2, numbers=self._numbers())
        if signature.alone:
            self._add("made._form = signature.out\nmade._slot = 0\nmade._base_tensor = made._versions = None")
            self._add(f"made._node = {'node' if self._recorded else 'None'}")
        else:
            if not self._recorded:
                self._add("node = None")
            self._add(_RESULTS)
        if signature.view:
            view = f"_view_of(a0, {signature.with_history}, {signature.counted}, key & {GRAD_MODE} != 0)"
            self._add(f"made.{view}" if signature.alone else f"for made in results:\n    made.{view}")
        if self._recorded:
            self._save_results()
        self._add("return made" if signature.alone else "return tuple(results)")

    def _numbers(self) -> str:
        """An expression for the numbers that the derivative asks for."""
        signature = self._signature
        written = []
        for place, (i, asked) in enumerate(zip(signature.keeping.numbers, signature.asked, strict=True)):
            if asked is None:
                written.append("None, ")
            elif self._values[i] is signature.entry.defaults[i]:  # a call by operator leaves it out
                written.append(f"signature.asked[{place}], ")
            else:
                written.append(f"a{i}, ")
        constant = written and all(not one.startswith("a") for one in written)
        return "signature.asked" if constant else f"({''.join(written)})"

    def _save_results(self) -> None:
        results = "(made,)" if self._signature.alone else "results"
        if self._kept is None:
            self._add(f"if edges is not None and kept[1]:\n    signature.keeping.keep_results(node, kept, {results})")
            return
        kept = next(iter(self._kept.values()))[1]
        if kept == (0,) and self._signature.alone and not self._signature.view:
            self._add("""
                if edges is not None:
                    made._versions = cell = [0]
                    node.saved = (*saved, (cell, 0, -1, number, signature.out))
                """)  # fmt: skip
        elif kept:
            self._add(f"if edges is not None:\n    signature.keeping.keep_results(node, ((), {kept}), {results})")
