"""Tensors that a custom Function keeps for its derivative, and the hooks a program may put around keeping them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any
from weakref import ref

from gradwire_protocol.dtypes import FLOATING
from gradwire_protocol.errors import ArgumentTypeError, GraphError, IndexOutOfRange
from gradwire_protocol.meta import Meta
from gradwire_protocol.table import TABLE, Op

from ..context.modes import MODES, no_grad
from ..graph.graph_mirror import AccumulateGrad, Edge, edge_of
from ..graph.node_hooks import NodeHooks, place_of, remember_tensor, remember_way
from ..graph.save_policy import KEPT
from .tensor import Tensor


class saved_tensors_hooks:
    """Call ``pack_hook`` on each tensor that an operation inside keeps for backward, and ``unpack_hook`` on what it
    returned when backward needs the tensor again. Hooks may nest; the innermost ones are called.

    A pack hook may return anything; the unpack hook has to turn it into a tensor with the same values.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._regions: list[Any] = []

    def __enter__(self) -> None:
        if MODES.no_packing is not None:
            raise GraphError(MODES.no_packing)
        MODES.packing = (*MODES.packing, (self.pack_hook, self.unpack_hook))
        # What they pack inside a checkpointed function is theirs to keep: it is not computed again.
        self._regions.append(MODES.region)
        MODES.region = None

    def __exit__(
        self, kind: type[BaseException] | None = None, error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:  # fmt: skip
        if not self._regions:
            raise GraphError("saved_tensors_hooks: these hooks are not in force, so they cannot end")
        MODES.packing = MODES.packing[:-1]
        MODES.region = self._regions.pop()


class SavedTensor:
    """A tensor kept for backward, with the version it had.

    A result of the node that keeps it is held without the node, which would be a cycle, and is put back in its place
    when it is asked for.
    """

    __slots__ = ("_as_leaf", "_kept", "_form", "_node", "_own", "_packed", "_seen", "_slot", "_unpack", "_version")

    def __init__(self, tensor: Any, node: Any, is_result: bool) -> None:
        if tensor._inference:
            raise GraphError("a tensor created in inference mode cannot be saved for backward; clone it outside first")
        self._version: int = tensor._version
        self._form: Meta = tensor._form
        self._unpack: Callable[[Any], Any] | None = None
        self._packed: Any = None
        self._slot: int = tensor._slot
        self._seen: Callable[[], Any] = ref(tensor)
        self._own: Any = ref(node) if is_result else None
        edge = None if is_result else edge_of(tensor)
        self._node = None if edge is None else edge[0]
        self._as_leaf: bool = edge is None and not is_result and tensor.requires_grad  # a leaf's view of no_grad
        if MODES.packing:
            pack, self._unpack = MODES.packing[-1]
            if self._node is not None and not isinstance(self._node, AccumulateGrad):
                remember_tensor(self._node, tensor)  # while it still stands there
            with no_grad():
                self._packed = pack(tensor)
            if tensor._version != self._version:
                raise GraphError(
                    f"a pack hook changed the {tensor._form!r} tensor that it was given in place: an operation keeps "
                    "it for backward. Return a changed copy instead"
                )
            self._kept: Any = None
        elif is_result:
            with no_grad():
                self._kept = tensor.detach()
        else:
            self._kept = tensor
            self._node = None

    def unpack(self) -> Any:
        """The tensor as it was saved.

        Raises:
            GraphError: when it was changed in place since.
        """
        if self._unpack is not None:
            value = self._unpacked()
            if self._as_leaf:
                with no_grad():
                    return value.detach().requires_grad_()
            return self._rejoined(value, self._own() if self._own is not None else self._node)
        if self._kept._version != self._version:
            raise GraphError(
                f"a {self._kept._form!r} tensor that was saved for backward has been changed in place since (it is at "
                f"version {self._kept._version}, saved at {self._version}): clone it first, or change it out of place"
            )
        if self._own is None:
            return self._rejoined(self._kept, self._node)
        alive, node = self._seen(), self._own()
        made_here = alive is not None and (edge := edge_of(alive)) is not None and edge[0] is node
        return alive if made_here else self._rejoined(self._kept, node)  # it may have been detached in place

    @property
    def has_hooks(self) -> bool:
        """Whether the program's hooks keep the tensor."""
        return self._unpack is not None

    @property
    def is_result(self) -> bool:
        """Whether it is a result of the node that keeps it."""
        return self._own is not None

    @property
    def history(self) -> Edge | None:
        """Where a gradient for the tensor goes; for a result of the node itself that is to be had from the node."""
        return None if self._own is not None or self._kept is None else edge_of(self._kept)

    def place(self, node: Any) -> None:
        """Let the server know where the tensor stands, unless that can be had from ``node``."""
        edge = self.history
        if edge is not None and not isinstance(edge[0], AccumulateGrad) and edge not in node.edges:
            remember_tensor(edge[0], self._kept)

    def moved(self, node: Any, edge: Edge | None) -> SavedTensor:
        """What was saved here, as ``node`` saved it when the tensor had the history ``edge``."""
        if self._own is None and (self._kept is None or edge == edge_of(self._kept)):
            return self
        found: SavedTensor = SavedTensor.__new__(SavedTensor)
        for name in SavedTensor.__slots__:
            setattr(found, name, getattr(self, name))
        if self._own is not None:
            found._own, found._seen = ref(node), lambda: None
            return found
        with no_grad():
            found._kept = self._kept.detach()
        if edge is not None:
            found._node, found._slot = edge
            at = next((i for i, e in enumerate(node.edges) if e is not None and e[0] is edge[0]), None)
            if at is not None:
                remember_way(edge[0], node, at)
        return found

    def value(self, name: str, at: int) -> Any:
        """What the hooks give back, for the server to put in its place under a name: a result of the node without its
        history."""
        value = self._unpacked()
        self.check(value, name, at)
        return value if self._own is not None else self._rejoined(value, self._node)

    def check(self, value: Any, name: str, at: int) -> None:
        """Check that what the hooks give back can stand for the tensor that was saved under this name and number.

        Raises:
            IndexOutOfRange: for positions in a tensor, or a mask over it, of another kind or shape than was saved.
            GraphError: for anything else of another kind or shape.
        """
        saved, found = self._form, value._form
        chooses = saved.dtype.category < FLOATING
        apart = (saved.dtype.category if chooses else FLOATING) != min(found.dtype.category, FLOATING)
        if apart or (saved.known and found.known and saved.shape != found.shape):
            error = IndexOutOfRange if chooses and at >= 0 else GraphError  # lists of such tensors are x[...]'s
            raise error(f"an unpack hook returned a {found!r} tensor for {name!r}, where a {saved!r} one was saved")

    def _unpacked(self) -> Any:
        assert self._unpack is not None
        with no_grad():
            value = self._unpack(self._packed)
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(f"an unpack hook returns a tensor, not {type(value).__name__}")
        return value

    def _rejoined(self, value: Any, node: Any) -> Any:
        """The value with the history that the saved tensor had, where that can matter."""
        if node is None or (isinstance(node, AccumulateGrad) and not node.variable.requires_grad):
            return value
        place = place_of(node)
        session = value._session
        number = session.record(TABLE["rejoin"], [value, place, self._slot], 1)
        if not isinstance(node, AccumulateGrad):
            joined = Tensor._make(session, number, value._form, node, self._slot)
            joined._levels = value._levels
            return joined
        leaf = Tensor._make(session, number, value._form)
        leaf._levels = value._levels
        leaf._requires, leaf._accumulator = True, ref(node)
        return leaf


class Packed:
    """What the hooks made of the tensors that one operation saves, by the name of the operand or result."""

    __slots__ = ("_items", "_place")

    def __init__(self, place: Any, items: list[tuple[str, int, SavedTensor]]) -> None:
        self._place = place
        self._items = items
        self.let_go()

    def let_go(self) -> None:
        """Let the server forget these tensors; what the program made of them is all there is."""
        names, at = tuple([i[0] for i in self._items]), tuple([i[1] for i in self._items])
        self._place._session.record(TABLE["let_go"], [self._place, names, at], 0)

    def add(self, name: str, at: int, saved: SavedTensor) -> None:
        """Keep one more; the server forgets it."""
        self._items.append((name, at, saved))
        self._place._session.record(TABLE["let_go"], [self._place, (name,), (at,)], 0)

    def find(self, name: str, at: int) -> Any:
        """The tensor that was saved under a name, from the program's hook; ``None`` where that is not among these."""
        return next((saved.unpack() for n, i, saved in self._items if (n, i) == (name, at)), None)

    def has(self, name: str, at: int) -> bool:
        """Whether a tensor saved under this name is among these."""
        return any((n, i) == (name, at) for n, i, _ in self._items)

    def bring_back(self) -> None:
        """Give the tensors to the server again, from the program's unpack hooks."""
        session = self._place._session
        for name, at, saved in self._items:
            value = saved.value(name, at)
            session.record(TABLE["bring_back"], [self._place, value, name, at], 0)


def pack(node: Any, op: Op, places: Any, values: list[Any], results: list[Any], made: Tensor) -> None:
    """Call the innermost hooks on what a recorded operation saves, in the server's stead.

    Args:
        made: the tensor whose history begins at ``node``: a result, or the base of a view that was written to.
    """
    items = []
    for at in places[0]:
        name, value = op.params[at].name, values[at]
        if isinstance(value, Tensor):
            items.append((name, -1, SavedTensor(value, node, False)))
        elif isinstance(value, list):
            items.extend((name, i, SavedTensor(v, node, False)) for i, v in enumerate(value) if v is not None)
    for number in places[1]:
        if number < len(results):
            name = "result" if op.results == 1 else f"result{number}"
            result = results[number]
            own = node if node.inner is None else result._node  # of a view that was written to: what it became then
            items.append((name, -1, SavedTensor(result, own, True)))
    if not items:
        return
    # Whatever is changed in place, the hooks keep what they keep.
    (node.inner or node).saved = (KEPT,)
    remember_tensor(node, made)
    part: NodeHooks = node.part
    with no_grad():
        part.packed = Packed(part.place, items)
