"""What the client precomputes of an op, and what it memoises of a call. Data only: nothing here records."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import Kind, Op

from ..context.handles import is_tensor
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


def ways_of(op: Op) -> tuple[int, ...]:
    """How the arguments of an op count in its keys."""
    ways = [WAY_CONSTANT if param.name in op.underived else _WAYS.get(param.kind, WAY_OTHER) for param in op.params]
    if op.name == "select":
        ways[2] = WAY_INDEX  # the result is the same wherever it lies, as long as it is in range
    return tuple(ways)


def can_shift(name: str, described: list[Any]) -> bool:
    """Whether it is a 0-dim int64 tensor, an operator of those known here, and a number."""
    one = described[0] if described else None
    return name in ARITHMETIC and type(one) is Meta and one.shape == () and one.dtype is dtypes.int64


class OpBinding:
    """What the client precomputes of one op."""

    # All of it is read at the first call, since a program calls few of the ops.

    def __init__(self, op: Op) -> None:
        self.op = op

    def _of(self, *kinds: Kind) -> tuple[int, ...]:
        return tuple(i for i, p in enumerate(self.op.params) if p.kind in kinds)

    @cached_property
    def tensors(self) -> tuple[int, ...]:
        return self._of(Kind.TENSOR, Kind.OPERAND, *LISTS)

    @cached_property
    def scalars(self) -> tuple[int, ...]:
        return self._of(Kind.SCALAR, Kind.POSITION)

    @cached_property
    def attributes(self) -> tuple[int, ...]:
        return self._of(Kind.ATTRIBUTE)

    @cached_property
    def payloads(self) -> tuple[int, ...]:
        return self._of(Kind.PAYLOAD)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return tuple(i for i in self.attributes if {int, float} <= set(self.op.params[i].check))

    @cached_property
    def differentiable(self) -> tuple[int, ...]:
        return tuple(i for i in self.tensors if self.op.params[i].name in self.op.differentiable)

    @cached_property
    def ways(self) -> tuple[int, ...]:
        """How the arguments count where a form of call is told from others."""
        return ways_of(self.op)

    @cached_property
    def defaults(self) -> tuple[Any, ...]:
        return self.op.defaults

    @cached_property
    def keeping(self) -> SavePolicy:
        """What its derivative keeps."""
        return SavePolicy(self.op)


class RecordedCall:
    """What is memoised of a call: the rule's answer, and the record's arguments but for references and numbers.

    Attributes:
        entry, described: the op, and its arguments as the rule sees them.
        kept: what its derivative keeps, by which operands receive a gradient.
        template: the arguments; ``None`` where they are encoded anew each time.
        largest: bytes of the largest result that is new memory.
        carries: whether some result is of a dtype that gradients can be of.
        node: what all nodes of such calls have in common.
        nowhere: whether all that it makes or changes is on the meta device, so that there is nothing to compute.
        references, lists: where in the template the reference to a tensor goes, and those to several.
        numbers: the values that go to the frame's table of scalars, in order.
        missing: why there is no derivative, and by which operands (none: by all); ``None`` where there is one.
        shifts: whether it is arithmetic that the client can do as well.
    """

    __slots__ = (
        "carries", "described", "entry", "inferred", "kept", "largest", "lists", "missing", "node", "nowhere",
        "numbers", "references", "shifts", "template",
    )  # fmt: skip

    def __init__(self, entry: OpBinding, described: list[Any], inferred: Inference, values: list[Any]) -> None:
        self.entry = entry
        self.described = described
        self.shifts = can_shift(entry.op.name, described)
        self.kept: dict[Any, Any] = {}
        self.inferred = inferred
        why = entry.op.underivable
        self.missing = inferred.missing if why is None else (why, ())
        constant = entry.op.constant
        self.carries = any(
            out.dtype.carries_gradient and i not in constant for i, out in enumerate(inferred.outs[: entry.op.results])
        )
        made = inferred.outs if entry.op.mutates is None else tuple(described[:1])
        self.node = NodeSignature(inferred.grad_fn or entry.op.grad_fn or entry.op.name, made, self)
        self.nowhere = bool(made) and all(type(out) is Meta and out.device == "meta" for out in made)
        self.largest = 0 if inferred.is_view or self.nowhere else max((out.nbytes for out in inferred.outs), default=0)
        self.template: list[Any] | None = None
        self.references: tuple[int, ...] = ()
        self.numbers: tuple[int, ...] = ()
        self.lists: tuple[int, ...] = ()
        op = entry.op
        if entry.payloads or any(type(v) is complex for v in values):
            return
        scalars: list[Any] = []
        self.template = encode_args(op, values, is_tensor, lambda tensor: 0, scalars, [])
        sent = range(len(self.template))
        self.references = tuple(i for i in entry.tensors if i in sent and is_tensor(values[i]))
        self.lists = tuple(i for i in entry.tensors if i in sent and type(values[i]) is list)
        taken = [
            i for i in sent
            if (i in entry.scalars or i in entry.tensors) and values[i] is not None
            and i not in self.references and i not in self.lists
        ]  # fmt: skip
        self.numbers = tuple(taken)
        assert len(self.numbers) == len(scalars)

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
