"""The tape: nodes as slotted data, and what they save. Nothing here computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from gradwire_protocol.errors import GraphError
from gradwire_protocol.meta import Meta

from ..runtime.memory import MemoryAccount
from .registry import Row
from .tensor import Tensor

if TYPE_CHECKING:
    from .engine_context import EngineContext

Edge = tuple["GraphNode", int]
"""Where a gradient goes next: a node, and which of its outputs the gradient belongs to."""


class GraphNode(Protocol):
    """What backward goes through: a :class:`Node`, a leaf's :class:`AccumulateGrad`, a write to a view, or a node whose
    derivative is a client's."""

    name: str
    seq: int
    edges: tuple[Edge | None, ...]
    watchers: dict[int, ref[Tensor]] | None

    @property
    def suspends(self) -> bool:
        """Whether only the client that made it can go through it."""

    @property
    def position(self) -> int:
        """The record that made it."""

    @property
    def outs(self) -> tuple[Meta, ...]:
        """The metas of the results."""

    @property
    def saved_bytes(self) -> int:
        """Bytes that are kept for backward."""

    def free(self) -> None:
        """Forget what was saved."""

    def apply(self, engine: EngineContext, grads: list[Tensor | None], needed: list[bool]) -> list[Tensor | None]:
        """The gradients for the edges that need one, given those for the results."""


class Node:
    """One recorded operation.

    Attributes:
        name: PyTorch's name for it, e.g. ``"MulBackward0"``.
        row: the op's kernel and derivative.
        values: the op's arguments with every tensor replaced by its meta.
        edges: one per differentiable operand, flattened over lists; ``None`` where no gradient is needed.
        outs: metas of the results.
        saved: what the derivative asked to keep, by parameter name; ``None`` once freed.
        watchers: the tensors, by output, whose gradient is retained.
        seq: rises with every node, so that a node's operands were always made by nodes with lower numbers.
        position: the record that made it, as ``gradwire_protocol.frames.position_of`` numbers them.
    """

    __slots__ = (
        "__weakref__",
        "account",
        "edges",
        "name",
        "outs",
        "position",
        "row",
        "saved",
        "seq",
        "values",
        "watchers",
    )

    suspends = False

    def __init__(
        self, name: str, row: Row, values: list[Any], edges: tuple[Edge | None, ...], outs: tuple[Meta, ...], seq: int,
        account: MemoryAccount, position: int = 0,
    ) -> None:  # fmt: skip
        self.name = name
        self.row = row
        self.values = values
        self.edges = edges
        self.outs = outs
        self.saved: dict[str, Any] | None = None
        self.seq = seq
        self.position = position
        self.account = account
        self.watchers: dict[int, ref[Tensor]] | None = None
        account.nodes += 1

    def __del__(self) -> None:
        self.account.nodes -= 1

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def free(self) -> None:
        """Forget what was saved. A node that saved nothing can run again."""
        if self.saved:
            self.saved = None

    @property
    def saved_bytes(self) -> int:
        """Bytes that are kept for backward, counting shared memory each time."""
        total = 0
        for entry in (self.saved or {}).values():
            for item in entry if type(entry) is list else (entry,):
                if type(item) is SavedTensor:
                    total += item.tensor.meta.nbytes
        return total

    apply: Callable[..., list[Tensor | None]]
    """(engine, gradients for the results, which edges need one): gradients for the edges. Backward attaches it."""


class AccumulateGrad:
    """Where a gradient arrives at a leaf. Held weakly by the leaf, strongly by the graph."""

    __slots__ = ("__weakref__", "leaf")

    name = "AccumulateGrad"
    suspends = False
    position = 0
    watchers: dict[int, ref[Tensor]] | None = None
    saved_bytes = 0
    edges: tuple[Edge | None, ...] = ()
    seq = 1 << 62

    def __init__(self, leaf: Tensor) -> None:
        self.leaf = leaf

    @property
    def outs(self) -> tuple[Meta, ...]:
        return (self.leaf.meta,)

    def free(self) -> None:
        """Nothing is saved here."""

    apply: Callable[..., list[Tensor | None]]
    """Add the gradient to the leaf's ``grad``. Backward attaches it."""


class SavedTensor:
    """A tensor kept for backward, with the version it had.

    An operand is kept as it is. A result is kept without its node (which would be a cycle) and gets the node
    back when it is unpacked.
    """

    __slots__ = ("is_result", "slot", "tensor", "version")

    def __init__(self, tensor: Tensor, is_result: bool = False) -> None:
        if tensor.inference:
            raise GraphError("a tensor created in inference mode cannot be saved for backward; clone it outside first")
        self.version = tensor.storage.version
        self.is_result = is_result
        self.slot = tensor.slot
        if is_result:
            alias = Tensor(tensor.engine, tensor.array, tensor.meta, tensor.storage, tensor.offset)
            alias.tangents = tensor.tangents
            self.tensor = alias
        else:
            self.tensor = tensor

    def unpack(self, node: Node, name: str, item: int | None = None) -> Tensor:
        """The tensor, if it is still what was saved. ``item`` is its place in a list.

        Raises:
            GraphError: when it was changed or detached in place since.
        """
        tensor = self.tensor
        if (
            not self.is_result and not tensor.requires_grad_flag
            and (tensor.history if tensor.base is None else tensor.grad_fn) is None
            and (node.row.has_lists or ((at := node.row.edge_at.get(name)) is not None and node.edges[at] is not None))
        ):  # fmt: skip
            _refuse_detached(node, name, item, tensor)
        if tensor.storage.version != self.version:
            raise GraphError(
                f"{node.name} needs its {'result' if self.is_result else f'operand {name!r}'}, a "
                f"{tensor.meta!r} tensor, but it was modified in place (it is at version "
                f"{tensor.storage.version}, saved at {self.version}). Use the out-of-place form, or clone it first"
            )
        if self.is_result:
            alias = Tensor(tensor.engine, tensor.array, tensor.meta, tensor.storage, tensor.offset)
            alias.grad_fn, alias.slot = node, self.slot
            alias.tangents = tensor.tangents
            return alias
        return tensor


class Saved:
    """What a derivative sees: saved tensors, numbers and attributes by parameter name; ``result`` for results.

    ``saved.meta("self")`` is the meta of an operand whether or not it was saved.
    """

    __slots__ = ("_needed", "_node")

    def __init__(self, node: Node, needed: list[bool]) -> None:
        self._node = node
        self._needed = needed

    def __getattr__(self, name: str) -> Any:
        node = self._node
        kept = node.saved
        if kept is not None and name in kept:
            entry = kept[name]
            if type(entry) is SavedTensor:
                if name in node.row.dispensable and entry.tensor.storage.version != entry.version:
                    return None
                return entry.unpack(node, name)
            if type(entry) is list:
                if any(e is None for e in entry):  # Tensors compare elementwise
                    self._check_absent(name, entry)
                return [e.unpack(node, name, i) if type(e) is SavedTensor else e for i, e in enumerate(entry)]
            if entry is None:
                self._check_absent(name, entry)
            return entry
        at = node.row.op.positions.get(name)
        if at is None:
            raise AttributeError(f"the derivative of {node.row.op.name} did not save {name!r}")
        value = node.values[at]
        if type(value) is Meta:
            raise AttributeError(f"the derivative of {node.row.op.name} did not save {name!r}")
        return value

    def _check_absent(self, name: str, entry: list[Any] | None) -> None:
        """Check that there was no tensor where none is kept.

        Raises:
            GraphError: where the client took one (``let_go``) and did not bring it back.
        """
        at = self._node.row.op.positions.get(name)
        was: Any = None if at is None else self._node.values[at]
        wanting = [i for i, e in enumerate(entry) if e is None] if type(entry) is list else []
        if at is None or type(was) is Meta or any(type(was[i]) is Meta for i in wanting):
            raise GraphError(
                f"the value that {self._node.name} saved as {name!r} was moved to the client and not restored"
            )

    def meta(self, name: str) -> Any:
        """The meta of a tensor operand (a list of them for a list of tensors)."""
        return self._node.values[self._node.row.op.positions[name]]

    def needs(self, name: str) -> bool:
        """Whether any gradient for this operand is wanted."""
        return True in self.needs_each(name)

    def needs_each(self, name: str) -> list[bool]:
        """For a list of tensors: which of them want a gradient."""
        targets = self._node.row.targets(self._node.values)
        return [n for n, (p, _) in zip(self._needed, targets, strict=True) if p == name]

    @property
    def outs(self) -> tuple[Meta, ...]:
        """The metas of the results."""
        return self._node.outs


def _refuse_detached(node: Node, name: str, item: int | None, tensor: Tensor) -> None:
    """Refuse a saved operand without history that had one: the node still has the edge."""
    for edge, target in zip(node.edges, node.row.targets(node.values), strict=False):
        if target == (name, item) and edge is not None and not isinstance(edge[0], AccumulateGrad):
            raise GraphError(
                f"{node.name} keeps its operand {name!r}, a {tensor.meta!r} tensor, for backward; it was detached in "
                "place since. Use detach(), which returns another tensor"
            )


def edge_of(tensor: Tensor) -> Edge | None:
    """Where a gradient for this tensor goes."""
    node = tensor.grad_fn
    if node is not None:
        return node, tensor.slot
    if not tensor.requires_grad_flag:
        return None
    found = tensor.accumulator() if tensor.accumulator is not None else None
    if found is None:
        accumulator = AccumulateGrad(tensor)
        tensor.accumulator = ref(accumulator)
        return accumulator, 0
    return found, 0


def join(tensor: Tensor, edge: Edge | None) -> None:
    """Let a tensor without history stand where the edge leads."""
    if edge is None:
        return
    node = edge[0]
    if isinstance(node, AccumulateGrad):
        tensor.requires_grad_flag, tensor.accumulator = True, ref(node)
    else:
        tensor.grad_fn, tensor.slot = node, edge[1]
