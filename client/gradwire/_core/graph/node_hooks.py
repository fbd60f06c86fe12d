"""What a program takes part in while gradients pass a node: hooks on tensors and nodes, and how the server knows it.

The server pauses a backward at a *place*: a tensor without elements that stands where the node stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from gradwire_protocol.errors import ArgumentTypeError, GraphError
from gradwire_protocol.meta import meta
from gradwire_protocol.table import TABLE

from ..context.handles import Handle, make
from ..context.hook_handles import HookTable, RemovableHandle

if TYPE_CHECKING:
    from .graph_mirror import Node


class NodeHooks:
    """What happens at one node.

    Attributes:
        arriving: hooks of tensors, by output of the node; they run first.
        before, after: hooks of the node itself, around its run.
        accumulated: for a leaf, hooks that run once its ``grad`` is up to date.
        place: the tensor by which the server knows the node, once one is needed.
        way: how the program came to this node: the node it came from (weakly) and the edge, or a tensor made by it.
        custom: the derivative is the program's own.
        packed: what the program keeps of the node's saved tensors, through hooks.
        region: the checkpointed stretch it belongs to, which is computed again first.
    """

    __slots__ = ("accumulated", "after", "arriving", "before", "custom", "packed", "place", "region", "way")

    def __init__(self) -> None:
        self.arriving: dict[int, HookTable] = {}
        self.before: HookTable = HookTable()
        self.after: HookTable = HookTable()
        self.accumulated: HookTable = HookTable()
        self.place: Any = None
        self.way: tuple[ref[Any], int | None] | None = None
        self.custom: bool = False
        self.region: Any = None  # a CheckpointRegion
        self.packed: Any = None  # a Packed

    @property
    def acts(self) -> bool:
        """Whether anything happens here at all."""
        return bool(
            self.custom or self.before or self.after or self.accumulated or self.region or self.packed
            or any(self.arriving.values())
        )  # fmt: skip


def hooks_of(node: Node) -> NodeHooks:
    """The part of this node, made at first mention together with a place, while the node can still be named."""
    from .graph_mirror import AccumulateGrad

    part = node.part
    if part is None:
        part = node.part = NodeHooks()
        if isinstance(node, AccumulateGrad):
            node.variable._part = part
    if part.place is None and not isinstance(node, AccumulateGrad):
        part.place = _place(node, part)
    return part


def remember_way(node: Node, source: Node, edge: int) -> None:
    """Note that the program reached ``node`` through ``source``, in case it registers a hook there."""
    from .graph_mirror import AccumulateGrad

    if isinstance(node, AccumulateGrad):
        return
    if node.part is None:
        node.part = NodeHooks()
    if node.part.place is None:
        node.part.way = ref(source), edge


def remember_origin(node: Node, tensor: Handle) -> None:
    """Note that the program came to ``node`` through this tensor's ``grad_fn``, which may outlive it."""
    if node.part is None:
        node.part = NodeHooks()
    if node.part.place is None:
        if tensor._id < 0 or tensor._levels or tensor._session.closed:
            node.part.way = ref(tensor), None
        else:
            node.part.place = _record(tensor, "place_of", [tensor])


def remember_tensor(node: Node, tensor: Handle) -> None:
    """Give a node a place through a tensor that it made."""
    if node.part is None:
        node.part = NodeHooks()
    if node.part.place is None:
        node.part.place = _record(tensor, "place_of", [tensor])


def remember_accumulator(leaf: Handle) -> None:
    """Give the node at which gradients of a leaf arrive a place of its own: the leaf is about to leave the graph, its
    hooks are not."""
    if leaf._part is not None and leaf._part.place is None and leaf._requires and leaf._id >= 0:
        leaf._part.place = _record(leaf, "place_of", [leaf])


def place_of(node: Node) -> Any:
    """The tensor by which the server knows this node."""
    from .graph_mirror import AccumulateGrad

    if isinstance(node, AccumulateGrad):
        kept = node.part and node.part.place
        return node.variable if kept is None else kept
    part = hooks_of(node)
    return part.place


def _place(node: Node, part: NodeHooks) -> Any:
    if part.way is None:
        raise GraphError(f"{node.label} was not reached through a tensor that is still there: it cannot take hooks")
    source, edge = part.way[0](), part.way[1]
    if source is None:
        raise GraphError(f"the node or tensor through which {node.label} was reached is gone: it cannot take hooks")
    if edge is None:
        return _record(source, "place_of", [source])
    from_place = place_of(source)
    return _record(from_place, "next_place", [from_place, edge])


def _record(tensor: Handle, op: str, values: list[Any]) -> Any:
    session = tensor._session
    number = session.record(TABLE[op], values, 1)
    return make(session, number, meta((0,), tensor.dtype, tensor._form.device))


def register_tensor_hook(tensor: Handle, hook: Callable[..., Any]) -> RemovableHandle:
    """``Tensor.register_hook``: call ``hook(gradient)`` whenever a gradient for the tensor is complete.

    Raises:
        GraphError: when the tensor does not require grad.
    """
    if not callable(hook):
        raise ArgumentTypeError(f"a hook is a function, not {type(hook).__name__}")
    if not tensor.requires_grad:
        raise GraphError(f"a {tensor._form!r} tensor that does not require grad receives no gradient to hook")
    if tensor._levels:
        raise GraphError(f"a hook on a {tensor._form!r} tensor inside vmap is not possible: hook the result outside")
    part = _part_of_tensor(tensor)
    table = part.arriving.get(tensor._slot)
    if table is None:
        table = part.arriving[tensor._slot] = HookTable()
    return table.register(hook)


def register_accumulated_hook(tensor: Handle, hook: Callable[..., Any]) -> RemovableHandle:
    """``Tensor.register_post_accumulate_grad_hook``: call ``hook(tensor)`` once its ``grad`` is up to date.

    Raises:
        GraphError: when the tensor is not a leaf that requires grad.
    """
    if not tensor.requires_grad:
        raise GraphError(f"a {tensor._form!r} tensor that does not require grad accumulates nothing")
    if not tensor.is_leaf:
        raise GraphError("only a leaf accumulates a gradient: use register_hook for the gradient of other tensors")
    return _part_of_tensor(tensor).accumulated.register(hook)


def _part_of_tensor(tensor: Handle) -> NodeHooks:
    node = tensor._grad_node()
    if node is not None:
        remember_tensor(node, tensor)
        part: NodeHooks = node.part
        return part
    if tensor._part is None:
        tensor._part = NodeHooks()
        accumulator = tensor._accumulator() if tensor._accumulator is not None else None
        if accumulator is not None:
            accumulator.part = tensor._part
    found: NodeHooks = tensor._part
    return found
