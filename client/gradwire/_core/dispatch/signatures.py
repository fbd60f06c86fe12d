"""Forms of calls: what tells calls of an op apart, and what is known of those that were made before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.dtypes import DType
from gradwire_protocol.meta import Meta

from ..context.size import Size
from ..graph.recorded_call import WAY_ATTRIBUTE, WAY_CONSTANT, WAY_INDEX, WAY_LIST, WAY_OTHER, OpBinding, RecordedCall
from ..session.frame_builder import joins
from ..tensor.tensor import Tensor

if TYPE_CHECKING:
    from ..session.session import Session

SIGNATURES_KEPT: Final = 16_384
"""Forms of calls that are remembered, over all ops."""
LOOKS: Final = frozenset({"grad_of"})
"""What changes nothing and is recorded at any time, with one result that has no history."""

_DEFAULT: Final = object()
"""Stands in a key for an argument that was left out."""
_NUMBERS: Final = frozenset({bool, int, float})
_PLAIN: Final = frozenset({str, type(None), DType})
BOTH, LEFT, RIGHT = (0, 1), (0,), (1,)


class Signature:
    """What is known of a form of call.

    Attributes:
        name, template: of the record; references go where ``references`` says, numbers from where ``numbers`` says.
        tells: whether nothing comes of it: it only tells the server something.
        joins: whether it belongs to a frame that is due to end.
        visible, out: the metas of the results that the program gets, and the first of them. ``counted`` are those of an
            op whose record says how many they are; ``floating`` are the places of those that can have a history.
        recorded: whether there is a node where some operand requires a gradient.
        differentiable: positions of the operands that gradients flow to.
        kept: places of what its derivative keeps; ``None`` where that depends on which operands require a gradient.
        view, with_history: whether the result shares the first operand's memory, and is a view for autograd.
        both, kind: of an op of two operands: whether the second is a tensor, else the kind of the number that it is.
        asked: of such an op, the numbers that its derivative may ask for, where these are defaults; else ``None``.
    """

    __slots__ = (
        "alone", "asked", "both", "counted", "differentiable", "entry", "floating", "joins", "keeping", "kept", "kind",
        "largest", "lists", "name", "node", "numbers", "out", "outs", "recipe", "recorded", "references", "single",
        "tells", "template", "view", "visible", "with_history",
    )  # fmt: skip

    def __init__(self, entry: OpBinding, recipe: RecordedCall) -> None:
        op = entry.op
        self.entry = entry
        self.recipe = recipe
        self.name = op.name
        self.template: list[Any] = recipe.template or []
        self.references = recipe.references
        self.lists = recipe.lists
        self.numbers = recipe.numbers
        self.outs = recipe.inferred.outs
        self.node = recipe.node
        self.tells = op.control
        self.joins = joins(op)
        self.out: Any = self.outs[0] if self.outs else None
        self.alone = op.results == 1
        self.counted = op.results is None
        self.visible = self.outs if self.counted else self.outs[: op.results]
        self.floating = frozenset(
            i for i, out in enumerate(self.visible) if out.dtype.carries_gradient and i not in op.constant
        )
        self.recorded = op.grad_fn is not None and recipe.carries
        self.differentiable = entry.differentiable
        self.keeping = entry.keeping
        self.kept: Any = self.keeping.whole
        self.view = recipe.inferred.offsets is not None and not op.untracked
        self.with_history = op.grad_fn is not None
        self.largest = recipe.largest
        self.single = self.is_single
        self.both = len(self.references) == 2
        self.kind: str = self.template[1] if not self.both and len(self.template) == 2 else ""
        asked = self.keeping.numbers
        defaults = [None, None, *entry.defaults[2:]]
        self.asked = self.keeping.numbers_of(defaults) if asked and asked[0] > 1 and self.is_pair else None

    def session_of(self, values: list[Any]) -> Session:
        """The session of the first operand."""
        if self.references:
            found: Session = values[self.references[0]]._session
        else:
            found = next(t for i in self.lists for t in values[i] if t is not None)._session
        return found

    def receivers(self, values: list[Any]) -> list[Any]:
        """The arguments that gradients flow to, with those of lists one by one."""
        if not self.lists:
            return [values[i] for i in self.differentiable]
        found: list[Any] = []
        for i in self.differentiable:
            value = values[i]
            if type(value) is list or type(value) is tuple:
                found.extend(value)
            else:
                found.append(value)
        return found

    @property
    def is_single(self) -> bool:
        """Whether it is of one tensor, and all else is part of the form."""
        return (
            self.references == LEFT and not self.numbers and not self.lists and self.differentiable in ((), LEFT)
            and not self.keeping.numbers and self.alone
        )  # fmt: skip

    @property
    def is_pair(self) -> bool:
        """Whether it is of two operands, the first one a tensor, and of nothing else."""
        ours = self.references == BOTH or (self.references == LEFT and self.numbers == RIGHT)
        return ours and len(self.template) == 2 and not self.view and self.alone and self.differentiable in ((), BOTH)


_signatures: dict[Any, Signature] = {}
"""By the op's entry and the key of the form."""


def known(key: Any) -> Signature | None:
    """What is known of the form of call that has this key."""
    return _signatures.get(key)


def key_of(entry: OpBinding, values: list[Any]) -> Any:
    """What tells a form of call from others: a tuple; ``None`` for one that is not remembered."""
    key: list[Any] = [entry]
    for way, value, default in zip(entry.ways, values, entry.defaults, strict=True):
        if value is default:
            key.append(_DEFAULT)
        elif isinstance(value, Tensor):
            if way and (way != WAY_CONSTANT or value.requires_grad):
                return None
            key.append(value._meta)
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
                    metas.append(item._meta)
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
    if type(dim) is not int or not isinstance(x, Tensor) or not x._meta.known:
        return False
    shape = x._meta.shape
    if not -len(shape) <= dim < len(shape):
        return False
    return -shape[dim] <= index < shape[dim]


def learn(key: Any, entry: OpBinding, recipe: RecordedCall) -> None:
    """Remember a form of call, if its records are made of references, numbers and nothing else that is new."""
    op = entry.op
    tells = op.control and (op.results == 0 or op.name in LOOKS)
    if (
        not (tells or (op.results != 0 and not op.control)) or op.mutates is not None
        or recipe.template is None or not (recipe.references or recipe.lists) or recipe.nowhere or recipe.shifts
        or recipe.inferred.check is not None or (recipe.missing is not None and recipe.carries)
    ):  # fmt: skip
        return
    for part in key:
        for meta in part if type(part) is tuple else (part,):
            if type(meta) is Meta and not meta.known:
                return
    if len(_signatures) >= SIGNATURES_KEPT:
        _signatures.clear()
    _signatures[key] = Signature(entry, recipe)
