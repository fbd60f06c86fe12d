"""Forms of calls: what tells calls of an op apart, and what is known of those that were made before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Meta
from gradwire_protocol.overlap import repeats

from ..context.size import Size
from ..graph.recorded_call import (
    ENTRIES,
    WAY_ATTRIBUTE,
    WAY_CONSTANT,
    WAY_INDEX,
    WAY_LIST,
    WAY_OTHER,
    OpBinding,
    RecordedCall,
)
from ..graph.save_policy import SavePolicy
from ..session.current_session import current_session
from ..tensor.tensor import Tensor

if TYPE_CHECKING:
    from gradwire_protocol.table import Op

    from ..session.session import Session

SIGNATURES_KEPT: Final = 16_384
"""Forms of calls that are remembered, over all ops."""
LOOKS: Final = frozenset({"grad_of"})
"""What changes nothing and is recorded at any time, with one result that has no history."""

_DEFAULT: Final = object()
"""Stands in a key for an argument that was left out."""
_NUMBERS: Final = frozenset({bool, int, float})
_PLAIN: Final = frozenset({str, type(None), DType})

Recorder = Callable[..., Any]


class Signature:
    """What is known of a form of call.

    Attributes:
        entry, recipe: what is known of the op, and of a call of this form.
        name, template: of the record; references go where ``references`` says, those to several tensors where ``lists``
            says, and ``numbers`` are the positions of what goes to the table of scalars.
        control: whether it computes nothing: it tells the server something, or asks for what there is.
        joins: whether it belongs to a frame that is due to end.
        visible, out: the metas of the results that the program gets, and the first of them. ``alone``: it gets one
            tensor, and no tuple. ``counted``: the record says how many there are. ``floating`` are the places of those
            that can have a history.
        largest: bytes of the largest result that is new memory.
        recorded: whether there is a node where some operand requires a gradient.
        node: what all nodes of such calls have in common.
        differentiable: positions of the operands that gradients flow to.
        keeping: what the derivative keeps. ``asked``: the numbers that it asks for, as they were in one call; ``None``
            for what is no number. Both are known from the second call on.
        caller: the code that made the latest call, if it is the program's own.
        view, with_history: whether the result shares the first operand's memory, and is a view for autograd.
        record: the function that records such calls: ``record(signature, session, key, *values)``, with the key of the
            caller's modes. Values that are defaults, at the end, may be left out; ``line=`` spares it the search for
            the program's line. It returns what the call makes, or ``NOT_APPLICABLE``, and then has done nothing.
    """

    __slots__ = (
        "alone", "asked", "caller", "control", "counted", "differentiable", "entry", "floating", "joins", "keeping",
        "largest", "lists", "name", "node", "numbers", "out", "recipe", "record", "recorded", "references", "template",
        "view", "visible", "with_history",
    )  # fmt: skip

    keeping: SavePolicy
    asked: tuple[Any, ...]

    def __init__(self, entry: OpBinding, recipe: RecordedCall, record: Recorder) -> None:
        op = entry.op
        self.entry = entry
        self.recipe = recipe
        self.record = record
        self.name = op.name
        self.template: list[Any] = recipe.template or []
        self.references = recipe.references
        self.lists = recipe.lists
        self.numbers = recipe.numbers
        self.control = op.control
        self.joins = op.after_backward
        self.alone = op.results == 1
        self.counted = op.results is None
        self.visible = recipe.visible
        self.out: Any = self.visible[0] if self.visible else None
        self.floating = recipe.floating
        self.largest = recipe.largest
        self.recorded = op.grad_fn is not None and recipe.carries
        self.node = recipe.node
        self.differentiable = entry.differentiable
        self.caller: Any = None
        self.view = recipe.inferred.offsets is not None and not op.untracked
        self.with_history = op.grad_fn is not None

    def session_of(self, values: list[Any]) -> Session:
        """The session of the first operand; the current one for a call without any."""
        if self.references:
            found: Session = values[self.references[0]]._session
        elif self.lists:
            found = next(t for i in self.lists for t in values[i] if t is not None)._session
        else:
            found = current_session()
        return found


_signatures: dict[Any, Signature] = {}
"""By the op's entry and the key of the form."""


known: Final[Callable[[Any], Signature | None]] = _signatures.get
"""What is known of the form of call that has this key."""


def key_of(entry: OpBinding, values: list[Any]) -> Any:
    """What tells a form of call from others: a tuple; ``None`` for one that is not remembered."""
    key: list[Any] = [entry]
    for way, value, default in zip(entry.ways, values, entry.defaults, strict=True):
        if value is default:
            key.append(_DEFAULT)
        elif isinstance(value, Tensor):
            if way and (way != WAY_CONSTANT or value.requires_grad):
                return None
            key.append(value._form)
        elif way == WAY_ATTRIBUTE:
            kind = type(value)
            if kind is tuple or kind is Size:
                for item in value:
                    if type(item) is not int:
                        return None
                value = tuple(value)
            elif kind in _NUMBERS:
                key.append(kind)
            elif kind not in _PLAIN:
                return None
            key.append(value)
        elif way == WAY_LIST:
            if type(value) is not list and type(value) is not tuple:
                return None
            metas: list[Meta | None] = []
            for item in value:
                if isinstance(item, Tensor):
                    metas.append(item._form)
                elif item is None:
                    metas.append(None)
                else:
                    return None
            key.append(tuple(metas))
        elif way == WAY_INDEX:
            if type(value) is not int or not _is_within(values[0], values[1], value):
                return None
            key.append(int)
        elif way == WAY_OTHER or type(value) not in _NUMBERS:
            return None
        else:
            key.append(type(value))
    return tuple(key)


def _is_within(x: Any, dim: Any, index: int) -> bool:
    if type(dim) is not int or not isinstance(x, Tensor) or not x._form.known:
        return False
    shape = x._form.shape
    if not -len(shape) <= dim < len(shape):
        return False
    return -shape[dim] <= index < shape[dim]


def learn(key: Any, entry: OpBinding, recipe: RecordedCall, record: Recorder) -> None:
    """Remember a form of call, if its records are made of references, numbers and nothing else that is new."""
    op = entry.op
    tells = op.results == 0 or op.name in LOOKS
    if (
        (not _may_write(op, recipe) if op.mutates is not None else tells != op.control)
        or recipe.template is None or recipe.nowhere or recipe.shifts
        or recipe.inferred.check is not None or (recipe.missing is not None and recipe.carries)
    ):  # fmt: skip
        return
    for part in key:
        for meta in part if type(part) is tuple else (part,):
            if type(meta) is Meta and not meta.known:
                return
    if len(_signatures) >= SIGNATURES_KEPT:
        forget()
    signature = _signatures[key] = Signature(entry, recipe, record)
    alone = type(key[1]) is Meta and op.required < 2 and key[2:].count(_DEFAULT) == len(key) - 2
    if alone and not op.control and not entry.placed:
        entry.singles[key[1]] = signature
    given = [part for part in key[1:] if part is not _DEFAULT]
    if len(given) in (2, 3) and all(type(part) is Meta for part in given) and not op.control and not entry.placed:
        metas = tuple(given)
        if key[1:] == (*metas, *[_DEFAULT] * (len(key) - 1 - len(metas))) and not any(entry.ways[: len(metas)]):
            entry.several[metas] = signature


def _may_write(op: Op, recipe: RecordedCall) -> bool:
    """Whether writes of this form are known to be allowed: those to memory in which each place is one element."""
    return op.results == 0 and not recipe.lists and not repeats(recipe.described[0])


def forget() -> None:
    """Forget all forms of calls."""
    _signatures.clear()
    for entry in ENTRIES.values():
        entry.singles.clear()
        entry.several.clear()
