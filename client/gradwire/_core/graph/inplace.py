"""In-place writes as the client sees them: what the engine will refuse, and whose history changes.

The engine has a module of the same name; both follow :mod:`gradwire_protocol.history`.
"""

from __future__ import annotations

import warnings
from typing import Any, Final
from weakref import ref

from gradwire_protocol.errors import ArgumentError, GraphError
from gradwire_protocol.history import PLAIN, WHY_NOT
from gradwire_protocol.meta import Meta
from gradwire_protocol.ops.control import INFERENCE_MODE
from gradwire_protocol.overlap import repeats
from gradwire_protocol.table import TABLE, Expanded, Op

from ..context.handles import Handle
from ..context.modes import MODES
from .graph_mirror import Edge, Node, edge_of
from .node_hooks import remember_tensor
from .node_signature import NodeSignature

_SHOWN: Final = {
    "AsStridedBackward0": TABLE["as_strided"], "ViewAsComplexBackward0": TABLE["view_as_complex"],
    "ViewAsRealBackward0": TABLE["view_as_real"],
}  # fmt: skip

Path = tuple[tuple[str, Meta], ...]
"""Names of the nodes between a base and a view, with what each shows; see ``Tensor.path`` of the engine."""


def check_inplace(op: Op, values: list[Any], requires: bool, itself: bool = False) -> None:
    """Check that autograd and memory allow an in-place write, as the engine will.

    Args:
        values: the arguments; the first one is the tensor that is written to.
        requires: whether the write will be recorded.
        itself: whether the second argument is the same view of the same memory.

    Raises:
        GraphError: for a leaf that requires grad, a view of one, and views that cannot take part in history.
        ArgumentError: when several elements share one place in memory.
    """
    target: Handle = values[0]
    expanded = repeats(target._form)
    if expanded:
        check_expanded(target, op.name, op.may_write_expanded(sum(hasattr(value, "_form") for value in values), itself))
    _check_history(op.name, target, requires)
    if expanded and op.expanded is Expanded.WARNED:
        warnings.warn(
            f"{op.name}: the {list(target._form.shape)} tensor is expanded, an element that is written to changes all "
            "that are the same place in memory: clone it first",
            UserWarning,
            stacklevel=4,
        )


def _check_history(name: str, target: Handle, requires: bool) -> None:
    if MODES.scopes and not MODES.scopes[-1].holds(target):
        raise GraphError(
            f"{name}: a function that is differentiated changes a {target._form!r} tensor from outside of it in place: "
            "the derivative would not know of it. Return the new value, or clone the tensor inside of the function"
        )
    if target._inference and not MODES.flags & INFERENCE_MODE:
        raise GraphError(
            f"{name}: a tensor created in inference mode cannot be modified in place outside of it; clone it first"
        )
    if not requires:
        return
    base = target._base_tensor
    if base is None:
        if target._requires:
            raise GraphError(f"{name}: a leaf that requires grad cannot be modified in place; use no_grad, or clone it")
        return
    if target._creation != PLAIN:
        raise GraphError(f"{name}: {WHY_NOT[target._creation]}")
    if base._node is None and target.requires_grad:
        raise GraphError(f"{name}: a view of a leaf that requires grad cannot be modified in place; use no_grad")


def check_expanded(target: Handle, name: str, allowed: bool = False) -> None:
    """Check that no two elements are one place in memory, unless writing to them is ``allowed``.

    Raises:
        ArgumentError: when they are.
    """
    if repeats(target._form) and not allowed:
        raise ArgumentError(
            f"{name}: the {list(target._form.shape)} tensor is expanded, several of its elements are one place in "
            "memory: clone it first"
        )


class Rebasing:
    """The written tensor's history, and that of its base, beginning at a node. Prepared, so that it can be carried out
    a second time where the first was interrupted.

    Attributes:
        root: the tensor whose history begins anew: the written one, or the base that it is a view of.
        node: where that history begins.
    """

    __slots__ = ("_before", "_target", "node", "root")

    def __init__(self, target: Handle, node: Node) -> None:
        base = target._base_tensor
        self._target = target
        root: Any = target if base is None else base
        self.root = root
        self._before = root._node, root._slot
        if base is not None:
            copied = Node(NodeSignature("CopySlices", (base._form,)), (edge_of(base), *node.edges[1:]))
            copied.inner = node
            node = copied
        self.node = node

    def carry_out(self) -> None:
        """Change the mirror. Done twice, it is done once."""
        root = self.root
        root._node, root._slot, root._requires = self.node, 0, False
        keep_watching(root, *self._before)
        if root is not self._target:
            regenerate(self._target)


def keep_watching(tensor: Handle, node: Node | None, slot: int) -> None:
    """A gradient that is retained is the one for the tensor as it is now, so the watch moves from its former node."""
    if not tensor._retains:
        return
    if node is not None and node.retained:
        node.retained.pop(slot, None)
    made = tensor._node
    if made is not None:
        made.retained = {**(made.retained or {}), tensor._slot: ref(tensor)}


def path_of(source: Handle, described: Meta) -> Path | None:
    """The path to a view of ``source``; None for one that is an ``as_strided`` away from the base."""
    before = source._form.dtype
    crosses = before is not described.dtype and before.is_complex != described.dtype.is_complex
    path = source._path
    if not crosses:
        return None if path is None else (*path, ("AsStridedBackward0", described))
    if path is None:
        path = () if source._base_tensor is None else (("AsStridedBackward0", source._form),)
    name = "ViewAsComplexBackward0" if described.dtype.is_complex else "ViewAsRealBackward0"
    return (*path, (name, described))


def regenerate(view: Handle) -> None:
    """Give a view whose memory was written to since a history that goes through its base.

    Raises:
        GraphError: for a view that cannot take part in history.
    """
    base = view._base_tensor
    if view._node is None and not base.requires_grad:
        return
    if view._creation != PLAIN:
        raise GraphError(WHY_NOT[view._creation])
    edge: Edge | None = edge_of(base)
    path = view._path
    if path is None or edge is not None:  # a path is recorded anew: a base without history gives it none
        for name, described in path or (("AsStridedBackward0", view._form),):
            node = Node(NodeSignature(name, (described,), op=_SHOWN[name]), (edge,))
            edge = node, 0
    before = view._node, view._slot
    view._node, view._slot, view._requires = None if edge is None else edge[0], 0, False
    view._seen = view._version
    keep_watching(view, *before)
    if view._retains and edge is not None:
        view._tell("retain_grad")  # the server gives a view its new history when it is asked for it


def note_renewed(view: Handle) -> None:
    """Note that the program has seen a view's new history. The server gives it one when it is asked for it."""
    base, renewed = view._base_tensor, view._base_tensor._renewed
    if renewed is None or renewed[0] != view._seen:
        renewed = base._renewed = (view._seen, [])
    renewed[1].append(ref(view))


def settle(view: Handle) -> None:
    """Give a view whose memory was written to its new history now, on the server, too."""
    if view._base_tensor is not None and not view._inference and view._seen != view._version:
        node = view._grad_node()
        if node is not None:
            remember_tensor(node, view)


def settle_views(base: Handle) -> None:
    """Let the server give views the histories that the program has seen: their base is about to lose its own."""
    renewed, base._renewed = base._renewed, None
    for reference in renewed[1] if renewed is not None and renewed[0] == base._version else ():
        view = reference()
        if view is not None and view._node is not None:
            remember_tensor(view._node, view)
