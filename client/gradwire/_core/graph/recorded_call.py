"""What the client precomputes of an op, and what it memoises of a call. Data only: nothing here records."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import Kind, Op

from ..context.handles import TensorBase
from .node_signature import NodeSignature
from .save_policy import SavePolicy

LISTS: Final = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
ARITHMETIC: Final[dict[str, np.ufunc]] = {"add": np.add, "mul": np.multiply, "sub": np.subtract}
"""What the client can do as well, with a row that it knows and a number."""

WAY_TENSOR, WAY_SCALAR, WAY_ATTRIBUTE, WAY_LIST, WAY_INDEX, WAY_OTHER, WAY_CONSTANT = range(7)
"""How an argument counts where a form of call is told from others."""

_WAYS: Final = {
    Kind.TENSOR: WAY_TENSOR, Kind.OPERAND: WAY_TENSOR, Kind.SCALAR: WAY_SCALAR, Kind.POSITION: WAY_ATTRIBUTE,
    Kind.ATTRIBUTE: WAY_ATTRIBUTE, Kind.TENSORS: WAY_LIST, Kind.OPTIONAL_TENSORS: WAY_LIST,
}  # fmt: skip
_PLACES: Final = {
    Kind.TENSOR: "tensors", Kind.OPERAND: "tensors", Kind.TENSORS: "tensors", Kind.OPTIONAL_TENSORS: "tensors",
    Kind.SCALAR: "scalars", Kind.POSITION: "scalars", Kind.ATTRIBUTE: "attributes", Kind.PAYLOAD: "payloads",
}  # fmt: skip


class OpBinding:
    """What the client precomputes of one op.

    Attributes:
        tensors, scalars, attributes, payloads: the positions of the parameters that take these.
        numbers: those of the attributes that take ints and floats alike.
        differentiable: those of the tensors that gradients flow to.
        ways: how the arguments count where a form of call is told from others.
        defaults: of the parameters.
        placed: whether the op makes a tensor that the default device decides about.
        singles: what is known of calls with a tensor alone, by its meta.
        several: the same of calls with two or three tensors alone, by their metas.
    """

    tensors: tuple[int, ...]
    scalars: tuple[int, ...]
    attributes: tuple[int, ...]
    payloads: tuple[int, ...]
    numbers: tuple[int, ...]
    differentiable: tuple[int, ...]
    ways: tuple[int, ...]
    defaults: tuple[Any, ...]
    placed: bool

    def __init__(self, op: Op) -> None:
        self.op = op
        self.singles: dict[Meta, Any] = {}
        self.several: dict[tuple[Meta, ...], Any] = {}

    if not TYPE_CHECKING:  # it knows the names above, and no others

        def __getattr__(self, name):
            """All of it is found at the first call, since a program calls few of the ops."""
            vars(self).update(_arguments_of(self.op))
            try:
                return vars(self)[name]
            except KeyError:
                raise AttributeError(name) from None

    @cached_property
    def keeping(self) -> SavePolicy:
        """What its derivative keeps."""
        return SavePolicy(self.op, self.differentiable)


def _arguments_of(op: Op) -> dict[str, Any]:
    """What an :class:`OpBinding` tells of the arguments of an op."""
    places = {
        name: list[int]() for name in ("tensors", "scalars", "attributes", "payloads", "numbers", "differentiable")
    }
    ways: list[int] = []
    placed = False
    for i, param in enumerate(op.params):
        places[_PLACES[param.kind]].append(i)
        if param.kind is Kind.ATTRIBUTE and {int, float} <= set(param.check):
            places["numbers"].append(i)
        if param.name in op.differentiable and _PLACES[param.kind] == "tensors":
            places["differentiable"].append(i)
        ways.append(WAY_CONSTANT if param.name in op.underived else _WAYS.get(param.kind, WAY_OTHER))
        placed |= param.name == "device" and param.default == "cpu"
    if op.name == "select":
        ways[2] = WAY_INDEX  # the result is the same wherever it lies, as long as it is in range
    found: dict[str, Any] = {name: tuple(positions) for name, positions in places.items()}
    return found | {"ways": tuple(ways), "defaults": op.defaults, "placed": placed}


class RecordedCall:
    """What is memoised of a call: the rule's answer, and the record's arguments but for references and numbers.

    Attributes:
        entry, described: the op, and its arguments as the rule sees them.
        kept: what its derivative keeps, by which operands receive a gradient.
        template: the arguments; ``None`` where they are encoded anew each time.
        largest: bytes of the largest result that is new memory.
        visible: the metas of the results that the program gets. What a rule lists beyond those that are declared is for
            backward, and stays on the server.
        floating: the places of those that can have a history. ``carries``: whether there are any.
        node: what all nodes of such calls have in common.
        nowhere: whether all that it makes or changes is on the meta device, so that there is nothing to compute.
        references, lists: where in the template the reference to a tensor goes, and those to several.
        numbers: the values that go to the frame's table of scalars, in order.
        missing: why there is no derivative, and by which operands (none: by all); ``None`` where there is one.
        shifts: whether it is arithmetic that the client can do as well.
    """

    __slots__ = (
        "carries", "described", "entry", "floating", "inferred", "kept", "largest", "lists", "missing", "node",
        "nowhere", "numbers", "references", "shifts", "template", "visible",
    )  # fmt: skip

    def __init__(self, entry: OpBinding, described: list[Any], inferred: Inference, values: list[Any]) -> None:
        op = entry.op
        self.entry = entry
        self.described = described
        first = described[0] if described else None
        self.shifts = (
            op.name in ARITHMETIC and type(first) is Meta and first.shape == () and first.dtype is dtypes.int64
        )
        self.kept: dict[Any, Any] = {}
        self.inferred = inferred
        self.missing = inferred.missing if op.underivable is None else (op.underivable, ())
        self.visible = inferred.outs[: op.results]
        self.floating = frozenset(
            [i for i, out in enumerate(self.visible) if out.dtype.carries_gradient and i not in op.constant]
        )
        self.carries = bool(self.floating)
        made = inferred.outs if op.mutates is None else tuple(described[:1])
        self.node = NodeSignature(inferred.grad_fn or op.grad_fn or op.name, made, self)
        self.nowhere = {type(out) is Meta and out.device == "meta" for out in made} == {True}
        new = inferred.offsets is None and not self.nowhere
        self.largest = max([out.nbytes for out in inferred.outs], default=0) if new else 0
        self.template: list[Any] | None = None
        self.references: tuple[int, ...] = ()
        self.numbers: tuple[int, ...] = ()
        self.lists: tuple[int, ...] = ()
        if entry.payloads or complex in map(type, values):
            return
        scalars: list[Any] = []
        self.template = encode_args(op, values, TensorBase.__instancecheck__, lambda tensor: 0, scalars, [])
        references, lists, numbers = list[int](), list[int](), list[int]()
        for i, value in enumerate(values[: len(self.template)]):
            if i in entry.tensors and isinstance(value, TensorBase):
                references.append(i)
            elif i in entry.tensors and type(value) is list:
                lists.append(i)
            elif value is not None and (i in entry.tensors or i in entry.scalars):
                numbers.append(i)
        self.references, self.lists, self.numbers = tuple(references), tuple(lists), tuple(numbers)
        assert len(numbers) == len(scalars)

    @property
    def hidden(self) -> tuple[int, ...]:
        """The edges that PyTorch's node lacks, since its form of the op takes a number there."""
        op, params = self.entry.op, self.entry.op.params
        places = [i for i in self.entry.differentiable if params[i].kind is Kind.OPERAND]
        if not places or any(params[i].kind in LISTS for i in self.entry.differentiable):
            return ()
        tensors = any(type(self.described[i]) is Meta for i in places)
        return tuple(
            at for at, i in enumerate(self.entry.differentiable)
            if i in places and type(self.described[i]) is not Meta and not (tensors and self.described[i] is None)
            and params[i].name not in op.wrapped
        )  # fmt: skip


ENTRIES: Final[dict[str, OpBinding]] = {}


def entry_of(op: Op) -> OpBinding:
    found = ENTRIES.get(op.name)
    if found is None:
        found = ENTRIES[op.name] = OpBinding(op)
    return found
