"""``Session.repeat``: many calls of a compiled function in one message, over data that the server holds."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

from gradwire_protocol import envelope
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError
from gradwire_protocol.frames import Structure, structure_hash
from gradwire_protocol.meta import meta

from ..context.modes import MODES, no_grad
from ..dispatch.dispatch import call
from ..surface.creation import tensor
from ..tensor.tensor import Tensor
from .capture import renumbered, structure_of
from .function import ATTEMPTS, CompiledFunction
from .module import CompiledModule
from .replay_sender import FrameTemplate, send, skip_ids
from .variant import Variant

if TYPE_CHECKING:
    from ..session.session import Session

DEFAULT_OPS: int = 200_000
"""Operations of one message, where the server does not tell its limit."""


class each:
    """Marks an argument of :meth:`Session.repeat`: each iteration gets a copy of the next row.

    Raises:
        ArgumentTypeError: for what is no tensor.
        ArgumentValueError: for a tensor without rows, or one that requires grad.
    """

    def __init__(self, rows: Tensor) -> None:
        if not isinstance(rows, Tensor):
            raise ArgumentTypeError(f"each() takes a tensor on the server, not {type(rows).__name__}")
        if not rows.dim():
            raise ArgumentValueError("each() takes a tensor with rows, not one of no dimensions")
        if rows.requires_grad:
            raise ArgumentValueError("each() takes a tensor that does not require grad: detach() it")
        self.tensor: Tensor = rows

    def row(self, at: int) -> Tensor:
        """What iteration ``at`` gets."""
        return call("select", call("index_select", self.tensor, 0, tensor([at], device=self.tensor.device)), 0, 0)


def repeat(
    session: Session, step: Any, times: int, *args: Any, after: Callable[[], Any] | None = None, **kwargs: Any
) -> Any:
    """See :meth:`gradwire.Session.repeat`."""
    compiled = step.__dict__.get("_compiled") if isinstance(step, CompiledModule) else step
    if not isinstance(compiled, CompiledFunction):
        raise ArgumentTypeError(
            f"repeat takes a compiled function (gradwire.compile), not {type(step).__name__}: it has to know what the "
            "function does without running it"
        )
    if type(times) is not int or times < 1:
        raise ArgumentValueError(f"times is an int of at least 1, not {times!r}")
    for value in (*args, *kwargs.values()):
        if isinstance(value, each) and value.tensor.shape[0] < times:
            raise ArgumentValueError(
                f"{times} iterations need {times} rows, each() was given a tensor of {value.tensor.shape[0]}"
            )

    def given(at: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple([v.row(at) if isinstance(v, each) else v for v in args]), {
            k: v.row(at) if isinstance(v, each) else v for k, v in kwargs.items()
        }

    done: list[Any] = []
    with session.lock:
        while len(done) < times:
            rows = given(len(done))
            variant, tensors = compiled.variant(session, *rows)
            if variant is not None:
                break
            if len(done) >= ATTEMPTS:
                raise ArgumentError(f"the function cannot be replayed, so it cannot be repeated: {compiled.explain()}")
            done.append(compiled(*rows[0], **rows[1]))  # the first calls record what the others repeat
            if after is not None:
                after()
        else:
            return _stacked(done, [])
        many = [v.tensor for v in (*args, *kwargs.values()) if isinstance(v, each)]
        ids = {r._id: v for r, v in zip(_rows(args, kwargs, rows), many, strict=True)}
        return _stacked(done, Loop(variant, tensors, ids).run(len(done), times, after))


def _rows(args: Any, kwargs: Any, rows: Any) -> list[Any]:
    found = [r for v, r in zip(args, rows[0], strict=True) if isinstance(v, each)]
    return found + [rows[1][k] for k, v in kwargs.items() if isinstance(v, each)]


class Loop:
    """A recorded call, to be repeated.

    Args:
        variant: the call.
        arguments: its tensors, with the first rows in place of what is iterated over.
        many: by id of those rows, the tensors that they are rows of.

    Raises:
        ArgumentError: for a call that does not leave things as the next one would have to find them.
    """

    def __init__(self, variant: Variant, arguments: list[Tensor], many: dict[int, Tensor]) -> None:
        self._variant = variant
        self._session = variant.session
        if variant.repeatable is not None:
            raise ArgumentError(f"the function cannot be repeated on the server: {variant.repeatable}")
        if len(variant.parts) != 1:
            raise ArgumentError("the function cannot be repeated on the server: it takes more than one message")
        externals = variant.resolve(arguments)
        if externals is None:
            raise ArgumentError("the function cannot be repeated: its tensors share memory in another way than before")
        self._externals = externals
        self._many = list(many.values())
        self._wanted, part = self._rewritten(variant.parts[0], [t._id for t in externals], list(many))
        self._part = part

    def _rewritten(self, part: FrameTemplate, ids: list[int], rows: list[int]) -> tuple[list[Any], FrameTemplate]:
        """The frame with the choice of rows in front of it, and what is wanted of each iteration."""
        count = len(rows)
        kept = [n for n in part.external if ids[n] not in rows]
        place = {n: i for i, n in enumerate(kept)}

        def moved(ref: int) -> int:
            if ref >= 0:
                return ref + 2 * count
            number = part.external[-1 - ref]
            return 2 * rows.index(ids[number]) + 1 if ids[number] in rows else -1 - place[number]

        structure = structure_of(part)
        ops: list[Any] = []
        if count:  # rows by a position that the server holds: a number in the frame would be another plan each time
            at = -1 - len(kept) - count
            for i in range(count):
                ops += [["index_select", [-1 - len(kept) - i, 0, at]], ["select", [2 * i, 0, "int"]]]
            ops.append(["add_", [at, "int"]])
        self._prefix = len(ops)
        self._before = [*[0] * count, *[1] * bool(count)]
        ops += [renumbered(record, moved) for record in structure.ops]
        wanted: list[Any] = []
        self._variant.result(lambda reference: wanted.append(reference) if reference not in wanted else None)
        self._stacked = [
            self._variant.weave.tensors[n].offset + 2 * count if kind == "made" else moved(-1 - self._place(part, n))
            for kind, n in wanted
        ]
        encoded = envelope.encode_part(
            Structure(ops=ops, drops=[*range(2 * count), *[n + 2 * count for n in structure.drops]])
        )
        made = copy(part)
        made.structure, made.key, made.external = encoded, structure_hash(encoded), kept
        made.lines = [None] * self._prefix + part.lines
        made.records = part.records + self._prefix
        return wanted, made

    def _place(self, part: FrameTemplate, number: int) -> int:
        if number not in part.external:
            raise ArgumentError("the function cannot be repeated: it returns a tensor that it does not compute with")
        return part.external.index(number)

    def run(self, begin: int, end: int, after: Callable[[], Any] | None) -> list[Any]:
        """Repeat for the iterations from ``begin`` on; returns results, stacked, of one message after the other."""
        session = self._session
        most = session.link.limits.get("max_ops_per_frame", DEFAULT_OPS) // max(
            self._part.records + len(self._stacked), 1
        )
        numbers = self._all_numbers(begin, end, after)
        many = self._many
        if many:
            self._at = tensor([begin], device=many[0].device)
            many = [*many, self._at]
        self._rows = [t._id for t in many]
        session.flush(must=True)
        found = []
        while begin < end:
            count = min(max(most, 1), end - begin)
            found.append(self._message(count, [n for each in numbers[:count] for n in each]))
            del numbers[:count]
            begin += count
        return found

    def _all_numbers(self, begin: int, end: int, after: Callable[[], Any] | None) -> list[list[Any]]:
        """Every iteration's scalars. Optimizers count their steps, or nothing has changed."""
        session, variant = self._session, self._variant
        found: list[list[Any]] = []
        session.flush(must=True)
        session.link.make_room()
        with variant.optimizers_kept() as keep:
            for at in range(begin, end):
                scalars = variant.numbers(self._externals)
                if scalars is None:
                    raise ArgumentError(f"the function does something else in iteration {at}: it cannot be repeated")
                found.append(self._before + scalars[0])
                if after is not None:
                    recorded = session.recorded
                    after()
                    if session.recorded != recorded:
                        raise ArgumentError("what is called after each iteration must not compute on the server")
            keep()
        return found

    def _message(self, count: int, scalars: list[Any]) -> Any:
        session, variant, part = self._session, self._variant, self._part
        session.link.make_room(sum(p.nbytes for p in part.payloads))
        base, first = session.builder.next_id, 2 * len(self._many)
        versions = [t._cell()[0] for t in self._externals]
        external = [self._externals[n]._id for n in part.external] + self._rows
        moved = copy(part)
        moved.first, moved.releases = 0, []
        made = first + variant.made
        skip_ids(session, made + len(self._stacked))
        send(session, moved, base, external, scalars, count, self._stacked)
        variant.finish(self._externals, variant.later(versions, count - 1), base + first)
        tensors = {}
        for i, reference in enumerate(self._wanted):
            kind, n = reference
            one = variant.weave.tensors[n].meta if kind == "made" else self._externals[n]._form
            shape = meta((count, *one.shape), one.dtype, one.device)
            tensors[reference] = Tensor._make(session, base + made + i, shape)
        return variant.result(lambda reference: tensors[reference])


def _stacked(done: list[Any], found: list[Any]) -> Any:
    """Results of single calls, and stacked ones of many, as one."""
    flags = MODES.flags
    with no_grad():
        try:
            single = [_map(lambda *ts: call("stack", list(ts), 0), *done)] if done else []
            parts = [*single, *found]
            return parts[0] if len(parts) == 1 else _map(lambda *ts: call("cat", list(ts), 0), *parts)
        finally:
            MODES.flags = flags


def _map(join: Callable[..., Any], *values: Any) -> Any:
    """Apply to the tensors at each place of some values of one form; of anything else, the first is taken."""
    one = values[0]
    if isinstance(one, Tensor):
        return join(*[v.detach() for v in values])
    if isinstance(one, tuple) and hasattr(one, "_make"):
        return one._make([_map(join, *items) for items in zip(*values, strict=True)])
    if type(one) in (list, tuple):
        return type(one)([_map(join, *items) for items in zip(*values, strict=True)])
    if type(one) is dict:
        return {key: _map(join, *[v[key] for v in values]) for key in one}
    return one
