"""Writing into tensors that others see: PyTorch's checks, and how history follows the write.

An in-place op on a view changes its base. Autograd's record of that is a CopySlices node on the base, and views
of the base get a fresh AsStrided node the next time their history is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from gradwire_protocol.dtypes import bool_
from gradwire_protocol.errors import ArgumentError, GraphError
from gradwire_protocol.history import PLAIN, WHY_NOT
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.overlap import Overlap, Region, find_overlap, repeats, share_elements
from gradwire_protocol.table import Op

from ..runtime.arrays import Array
from .functional import F
from .registry import Row, row
from .tape import Edge, GraphNode, Node, edge_of
from .tensor import Storage, Tensor

if TYPE_CHECKING:
    from .engine_context import EngineContext


def check_writable(op: Op, values: list[Any], tensors: int, engine: EngineContext, requires: bool) -> None:
    """Check that autograd and memory allow an in-place write.

    Args:
        values: the arguments; the first one is the tensor that is written to.
        tensors: how many operands are tensors, the written one included.
        requires: whether the write will be recorded.

    Raises:
        GraphError: for a leaf that requires grad, a view of one, and views that cannot take part in history.
        ArgumentError: when several elements share one place in memory.
    """
    name, target = op.name, values[0]
    if repeats(target.meta) and not op.may_write_expanded(tensors, tensors == 2 and _is_same_view(target, values[1])):
        raise ArgumentError(
            f"{name}: the {list(target.shape)} tensor is expanded, so its elements share memory; clone it first"
        )
    if target.inference and not engine.inference:
        raise GraphError(
            f"{name}: a tensor created in inference mode cannot be modified in place outside of it; clone it first"
        )
    if not requires:
        return
    if target.base is not None:
        if target.creation != PLAIN:
            raise GraphError(f"{name}: {WHY_NOT[target.creation]}")
        if target.base.is_leaf and target.requires_grad:
            raise GraphError(f"{name}: a view of a leaf that requires grad cannot be modified in place; use no_grad")
    elif target.requires_grad_flag and target.is_leaf:
        raise GraphError(f"{name}: a leaf that requires grad cannot be modified in place; use no_grad, or clone it")


def _is_same_view(target: Tensor, operand: Any) -> bool:
    return (
        type(operand) is Tensor
        and operand.storage.array is target.storage.array
        and operand.offset == target.offset
        and operand.meta == target.meta
    )


def separate(engine: EngineContext, entry: Row, values: list[Any]) -> list[Any]:
    """The operands of an in-place op as its kernel may read them while it writes to the first one.

    Most kernels compute their result before it is written. For those that write by themselves, an operand that has an
    element in common with what is written is replaced by a copy.

    Raises:
        ArgumentError: where operand and target share memory in a way that PyTorch refuses.
        OutOfMemory: when there is none for the copy.
    """
    target: Tensor = values[0]
    memory = target.storage.array
    written = Region.of(target.meta, target.offset)
    found = values
    read_first = {*entry.op.copied, *_filled_with(entry.op, values)}
    for i in entry.tensor_at:
        value = values[i]
        several = type(value) in (list, tuple)
        for k, operand in enumerate(value if several else (value,)):
            if i == 0 or type(operand) is not Tensor or operand.storage.array is not memory:
                continue
            read = Region.of(operand.meta, operand.offset)
            name = entry.op.params[i].name
            if name not in read_first:
                _check_apart(entry.op, name, written, read)
            if not entry.writes or not share_elements(written, read):
                continue
            if found is values:
                found = list(values)
            if several:
                found[i] = list(found[i])
                found[i][k] = copy_of(engine, operand)
            else:
                found[i] = copy_of(engine, operand)
    return found


def _check_apart(op: Op, name: str, written: Region, read: Region) -> None:
    overlap = find_overlap(written, read)
    if overlap is Overlap.PARTIAL or (overlap is Overlap.FULL and op.apart):
        raise ArgumentError(
            f"{op.name}: its operand {name!r} and the written tensor share memory ({overlap.value}); clone one "
            "of them first"
        )


def _filled_with(op: Op, values: list[Any]) -> frozenset[str]:
    """The operand of ``index_put_`` that is one value for all places where masks are true: PyTorch reads it first."""
    if op.name != "index_put_" or values[3] or values[2].numel != 1:
        return frozenset()
    masks = all(index is None or index.dtype is bool_ for index in values[1])
    return frozenset({"values"}) if masks else frozenset()


def copy_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    """A tensor with the same values in memory of its own, without history.

    Raises:
        OutOfMemory: when there is none.
    """
    try:
        data = engine.on_arrays("copy", _copied, tensor.array)
    except MemoryError as error:
        raise engine.out_of_memory("a copy of an operand", error) from None
    return Tensor(engine, data, meta(tensor.shape, tensor.dtype, tensor.device), Storage(data, engine.account))


def _copied(array: Array) -> Array:
    return array.copy()


class CopySlices:
    """The history of a base after one of its views was written to.

    The gradient for the base's former value is the incoming one with the view's part replaced by what the write's
    own derivative makes of that part.
    """

    __slots__ = ("__weakref__", "account", "base", "edges", "inner", "offset", "seq", "view", "watchers")

    name = "CopySlices"
    suspends = False

    def __init__(self, former: Edge | None, inner: Node, base: Meta, view: Meta, offset: int, seq: int) -> None:
        self.inner = inner
        self.base = base
        self.view = view
        self.offset = offset
        self.edges: tuple[Edge | None, ...] = (former, *inner.edges[1:])
        self.seq = seq
        self.watchers: dict[int, ref[Tensor]] | None = None
        self.account = inner.account
        self.account.nodes += 1

    def __del__(self) -> None:
        self.account.nodes -= 1

    def __repr__(self) -> str:
        return "<CopySlices>"

    @property
    def position(self) -> int:
        return self.inner.position

    @property
    def outs(self) -> tuple[Meta, ...]:
        return (self.base,)

    @property
    def saved_bytes(self) -> int:
        return self.inner.saved_bytes

    def free(self) -> None:
        """Forget what was saved, and that nothing was: unlike other nodes, this one never runs again."""
        self.inner.saved = None

    def apply(self, engine: EngineContext, grads: list[Tensor | None], needed: list[bool]) -> list[Tensor | None]:
        grad = grads[0]
        assert grad is not None
        if needed[0] and repeats(self.view):
            raise GraphError(f"{self.inner.name} wrote to an expanded tensor, so its previous value has no gradient")
        base, view, place = self.base, self.view, (self.view.shape, self.view.stride, self.offset)
        # The place counts elements of the base's memory, so the gradient must lie in memory as the base does.
        if base.contiguous:
            laid = F.contiguous(grad)
        else:
            laid = F.restride(grad, base.stride, 0, (_reach(base),), (1,), 0)
        # Where one is complex and the other real, the place counts reals.
        halved = base.dtype.is_complex and not view.dtype.is_complex
        doubled = view.dtype.is_complex and not base.dtype.is_complex
        if halved:
            laid = F.view_as_real(laid)
        elif doubled:
            place = ((*view.shape, 2), (*(2 * n for n in view.stride), 1), 2 * self.offset)
        part = F.as_strided(laid, *place)
        if doubled:
            part = F.view_as_complex(part)
        inner = self.inner.apply(engine, [part], list(needed))
        first: Tensor | None = None
        if needed[0]:
            replaced = inner[0] if inner[0] is not None else F.zeros_like(part)
            first = F.as_strided_scatter(laid, F.view_as_real(replaced) if doubled else replaced, *place)
            if halved:
                first = F.view_as_complex(first)
            if not base.contiguous:
                first = F.as_strided(first, base.shape, base.stride)
        return [first, *inner[1:]]


def _reach(meta: Meta) -> int:
    """How many elements of memory a tensor spans, gaps included."""
    return 1 + sum((n - 1) * s for n, s in zip(meta.shape, meta.stride, strict=True)) if meta.numel else 0


def rebase(target: Tensor, node: Node, engine: EngineContext) -> None:
    """Let the written tensor's history, and that of its base, begin at ``node``."""
    base = target.base
    if base is None:
        before = target._grad_fn, target.slot
        target.grad_fn, target.slot, target.requires_grad_flag = node, 0, False
        keep_watching(target, *before)
        return
    former = edge_of(base)
    start = base.offset * base.dtype.itemsize // target.dtype.itemsize
    copied = CopySlices(former, node, base.meta, target.meta, target.offset - start, engine.new_node_seq())
    before = base._grad_fn, base.slot
    base.grad_fn, base.slot, base.requires_grad_flag = copied, 0, False
    keep_watching(base, *before)
    regenerate(target)


def keep_watching(tensor: Tensor, node: GraphNode | None, slot: int) -> None:
    """A gradient that is retained is the one for the tensor as it is now, so the watch moves from its former node."""
    if not tensor.retains_grad:
        return
    if node is not None and node.watchers is not None:
        node.watchers.pop(slot, None)
    made = tensor._grad_fn
    if made is not None:  # a view of what was detached since may have lost its history
        made.watchers = {tensor.slot: ref(tensor), **(made.watchers or {})}


def path_of(op: Op, source: Tensor, view: Tensor) -> tuple[tuple[Any, ...], ...] | None:
    """The ops that lead from the base to a view that ``op`` made of ``source``; see ``Tensor.path``."""
    if source.dtype is view.dtype or not op.linear:
        if source.path is None:
            return None
        return (*source.path, ("as_strided", view.meta.shape, view.meta.stride, view.offset - source.offset))
    before = source.path
    if before is None:
        base = source.base
        before = () if base is None else (
            ("as_strided", source.meta.shape, source.meta.stride, source.offset - base.offset),
        )  # fmt: skip
    return (*before, (op.name,))


def regenerate(view: Tensor) -> None:
    """Give a view whose base was written to a history that goes through the base.

    Raises:
        GraphError: for a view that cannot take part in history.
    """
    base = view.base
    assert base is not None
    version = view.storage.version
    if not base.requires_grad and view._grad_fn is None:
        return
    if view.creation != PLAIN:
        raise GraphError(WHY_NOT[view.creation])
    engine = view.engine
    if engine.undo is not None:
        engine.undo.note(view)
    if engine.tracer is not None:
        engine.tracer.placed(view)
    if view.path is not None:
        shown = _follow(view.path, base)
        before = view._grad_fn, view.slot
        view.grad_fn, view.slot, view.requires_grad_flag = shown.grad_fn, shown.slot, False
        view.seen_version = version
        keep_watching(view, *before)
        return
    entry = row("as_strided")
    values: list[Any] = [base.meta, view.meta.shape, view.meta.stride, view.offset - base.offset, False]
    node = Node(
        "AsStridedBackward0", entry, values, (edge_of(base),), (view.meta,), engine.new_node_seq(), engine.account
    )
    node.saved = {}
    before = view._grad_fn, view.slot
    view.grad_fn, view.slot, view.requires_grad_flag = node, 0, False
    view.seen_version = version
    keep_watching(view, *before)


def looked_at(view: Tensor) -> GraphNode | None:
    """The node that asking for the view's ``grad_fn`` would give, without writing its history anew: looking at a
    session from outside must not change what its frames compute. Where that would fail, the history it had."""
    base = view.base
    stale = base is not None and view.seen_version != view.storage.version
    if base is None or not stale or view.creation != PLAIN or view.path is not None or not base.requires_grad:
        return view._grad_fn
    engine = view.engine
    values: list[Any] = [base.meta, view.meta.shape, view.meta.stride, view.offset - base.offset, False]
    edges = (edge_of(base),)
    return Node("AsStridedBackward0", row("as_strided"), values, edges, (view.meta,), engine._seq + 1, engine.account)


def _follow(path: tuple[tuple[Any, ...], ...], base: Tensor) -> Tensor:
    """The view at the end of a path, made anew and recorded, whatever the modes."""
    engine = base.engine
    modes = engine.grad_enabled, engine.inference
    engine.grad_enabled, engine.inference = True, False
    try:
        shown = base
        for name, *arguments in path:
            shown = engine.call(name, shown, *arguments)
        return shown
    finally:
        engine.grad_enabled, engine.inference = modes


Tensor.regenerate = regenerate  # type: ignore[assignment, method-assign]
