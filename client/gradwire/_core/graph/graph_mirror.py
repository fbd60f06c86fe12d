"""The client's light mirror of the autograd graph: names and edges, no values.

It answers what a program asks about history (``grad_fn``, ``next_functions``, which leaves receive a gradient)
without a round trip.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakValueDictionary, ref

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.meta import Meta

from ..context.handles import Handle
from ..context.hook_handles import RemovableHandle
from .node_hooks import hooks_of, remember_way
from .node_signature import NodeSignature

if TYPE_CHECKING:
    from .node_hooks import NodeHooks

LATER: Final[dict[str, Callable[..., Any]]] = {}
"""Functions of modules that need this one, which put them here."""
_NAMESPACED = ("AccumulateGrad", "CopyBackwards", "CopySlices")

Edge = tuple["Node", int]

next_seq = count(1).__next__


class Node:
    """One recorded operation: ``grad_fn`` as a program sees it.

    ``signature`` is what it shares with the nodes of all such calls. ``seq`` rises with every node, so that descending
    numbers are an order in which gradients can flow. ``part`` is what the program takes part in when gradients pass
    (hooks, a derivative of its own), or ``None``. ``line`` is where the program made it, ``numbers`` those of its
    arguments that a derivative may ask for, ``saved`` what it keeps (see :mod:`.save_policy`; ``None`` once freed),
    ``retained`` the tensors, by output, whose gradient is retained. ``inner`` is the node of the write, where this one
    is a base's ``CopySlices``.
    """

    # What every node has of its own. Making one is on the path of every op.
    __slots__ = (
        "__dict__", "__weakref__", "edges", "inner", "line", "numbers", "part", "retained", "saved", "seq", "signature",
    )  # fmt: skip

    saved: tuple[Any, ...] | None
    # Few nodes have one of these, but every backward looks: a slot is read in a fraction of what a class's default is.
    inner: Node | None
    numbers: tuple[Any, ...]
    part: NodeHooks | None
    retained: dict[int, ref[Any]] | None

    # What few nodes ever change.
    metadata_: dict[Any, Any] | None = None
    plain: ClassVar[type[Node] | None] = None
    """For a class that is named after its nodes, the one that it stands for: see :func:`shown`."""
    told: bool = False
    """Whether the name is what the facts of derivatives say, and not what the program recorded."""

    def __init__(self, signature: NodeSignature, edges: tuple[Edge | None, ...], line: Any = None) -> None:
        self.signature: NodeSignature = signature
        self.edges: tuple[Edge | None, ...] = edges
        self.line: Any = line
        self.saved = self.numbers = ()
        self.part = self.inner = self.retained = None
        self.seq: float = next_seq()

    def name(self) -> str:
        """PyTorch's name of the node, e.g. ``MulBackward0``; with its namespace for those that PyTorch gives one."""
        name = self.signature.name
        return f"torch::autograd::{name}" if name in _NAMESPACED else name

    @property
    def label(self) -> str:
        """The name as tensors print it."""
        return self.signature.name

    @property
    def outs(self) -> tuple[Meta, ...]:
        """What the operation returned."""
        return self.signature.outs

    @property
    def recipe(self) -> Any:
        """The recorded call; ``None`` where the program recorded none."""
        return self.signature.recipe

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Where the gradients go: pairs of a node (or None) and its output's number."""
        for i, edge in enumerate(self.edges):
            if edge is not None:
                remember_way(edge[0], self, i)
        recipe = self.signature.recipe
        hidden = recipe.hidden if recipe is not None else ()
        return tuple(
            (None, 0) if e is None else (shown(e[0]), e[1]) for i, e in enumerate(self.edges) if i not in hidden
        )

    @property
    def requires_grad(self) -> bool:
        """Always True: what requires no gradient has no node."""
        return True

    def _sequence_nr(self) -> int:
        """A number that rises from node to node."""
        return int(self.seq)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_inputs, grad_outputs)`` after each run of this node; what it returns, if anything, replaces
        ``grad_inputs``."""
        return hooks_of(self).after.register(fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call ``fn(grad_outputs)`` before each run of this node; what it returns, if anything, replaces them."""
        return hooks_of(self).before.register(fn)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the program's own use."""
        if self.metadata_ is None:
            self.metadata_ = {}
        return self.metadata_

    def free(self) -> None:
        """Backward has gone through, and nothing is kept for another time. A node that kept nothing can run again,
        unless it is a write into a view, which forgets how it is derived."""
        inner = self.inner
        if inner is not None:
            inner.saved = None
        elif self.saved:
            self.saved = None

    def __repr__(self) -> str:
        return f"<{self.signature.name} object at {id(self):#x}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")) and "saved" in LATER:
            return LATER["saved"](self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *LATER["names"](self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ArgumentTypeError(f"a node of the graph is neither copied nor pickled: {self.signature.name}")


class AccumulateGrad(Node):
    """Where a gradient arrives at a leaf."""

    __slots__ = ("_leaf_meta", "variable")
    __module__ = "builtins"  # where PyTorch's node classes seem to be

    def __init__(self, leaf: Handle) -> None:
        # Not by way of Node: one is made for each parameter in each step.
        self._leaf_meta = leaf._form
        self.edges = ()
        self.line = self.inner = self.retained = None
        self.saved = self.numbers = ()
        self.seq = next_seq()
        self.part = leaf._part
        self.variable: Any = leaf

    @property
    def signature(self) -> NodeSignature:  # type: ignore[override]  # made where it is asked for: few programs do
        return NodeSignature("AccumulateGrad", (self._leaf_meta,))


_named: dict[tuple[type[Node], str], type[Node]] = {}


def shown(node: Node) -> Node:
    """The node as a program sees it: an instance of a class that is named after it, as ``MulBackward0``.

    Nodes are recorded without, and few are ever looked at.
    """
    _ = node.edges  # one of a replay becomes a plain node first
    cls, name = type(node), node.signature.name
    if cls.__name__ != name and not issubclass(cls, AccumulateGrad):
        plain = cls.plain or cls
        found = _named.get((plain, name))
        if found is None:
            found = type(name, (plain,), {"__slots__": (), "__module__": "builtins", "plain": plain})
            _named[plain, name] = found
        node.__class__ = found
    return node


def edge_of(tensor: Handle) -> Edge | None:
    """Where a gradient for this proxy goes."""
    node = tensor._node if tensor._base_tensor is None else tensor._grad_node()
    if node is not None:
        return node, tensor._slot
    if not tensor._requires:
        return None
    found = tensor._accumulator() if tensor._accumulator is not None else None
    if found is None:
        found = AccumulateGrad(tensor)
        tensor._accumulator = ref(found)
    return found, 0


_late_leaves: WeakValueDictionary[tuple[int, int], Handle] = WeakValueDictionary()
"""Leaves that something may have kept before they required grad, by version cell and id. A cell is alive as long as a
node that keeps it."""


def became_leaf(tensor: Handle) -> None:
    """Note that a tensor requires grad from now on; the graph may have kept it by then."""
    if tensor._versions is not None:
        _late_leaves[id(tensor._versions), tensor._id] = tensor


def edge_now(edge: Edge | None, kept: Any) -> Edge | None:
    """Where a gradient for a kept operand goes. One that had a history keeps it, but whether a leaf requires grad is
    asked when a derivative uses it, not when it was kept.

    Args:
        edge: where it went when the operand was kept.
        kept: how (:data:`.save_policy.Saved`), if that is known.
    """
    if edge is not None:
        return None if type(edge[0]) is AccumulateGrad and not edge[0].variable._requires else edge
    late = None if kept is None else _late_leaves.get((id(kept[0]), kept[3]))
    return edge_of(late) if late is not None and late._requires and late._versions is kept[0] else None


def receiving_leaves(nodes: list[Node]) -> list[AccumulateGrad]:
    """Those of these nodes that are leaves, and will take a gradient: a leaf may have been told to stop since."""
    return [node for node in nodes if type(node) is AccumulateGrad and node.variable._requires]


def retaining(nodes: list[Node], arrivals: set[Edge]) -> list[tuple[Node, int, Any]]:
    """The tensors made by these nodes that retain the gradient that arrives there, with node and output."""
    return [
        (node, slot, tensor)
        for node in nodes
        if node.retained
        for slot, reference in node.retained.items()
        if (node, slot) in arrivals and (tensor := reference()) is not None
    ]


def arrivals_of(roots: list[Edge], passed: list[Node]) -> set[Edge]:
    """The outputs of nodes at which a gradient arrives, where it starts at ``roots`` and runs through ``passed``. Of a
    node with several outputs, those that nothing has used receive none."""
    found = set(roots)
    for node in passed:
        found.update([edge for edge in node.edges if edge is not None])
    return found
