"""Writing into tensors that others see: PyTorch's checks, and how history follows the write.

An in-place op on a view changes its base. Autograd's record of that is a CopySlices node on the base, and views
of the base get a fresh AsStrided node the next time their history is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradwire_protocol.errors import ArgumentError, GraphError
from gradwire_protocol.meta import Meta

from .functional import F
from .registry import row
from .tape import Edge, Node, edge_of
from .tensor import MADE_IN_INFERENCE, MADE_IN_NO_GRAD, ONE_OF_SEVERAL, Tensor

if TYPE_CHECKING:
    from .engine import Engine


def check_writable(target: Tensor, name: str, engine: Engine) -> None:
    """Check that autograd and memory allow an in-place write.

    Raises:
        GraphError: for a leaf that requires grad, a view of one, and views that cannot take part in history.
        ArgumentError: when several elements share one place in memory.
    """
    shape, stride = target.meta.shape, target.meta.stride
    if any(s == 0 and n > 1 for s, n in zip(stride, shape, strict=True)):
        raise ArgumentError(
            f"{name}: the {list(shape)} tensor is expanded, several of its elements are one place in memory: "
            "clone it first"
        )
    if target.inference and not engine.inference:
        raise GraphError(f"{name}: a tensor made in inference mode cannot be changed outside of it: clone it first")
    if not engine.grad_enabled:
        return
    if target.base is not None:
        # Elsewhere a view of a plain tensor: only what requires grad is restricted.
        restricted = target.requires_grad
        if target.creation == MADE_IN_NO_GRAD and restricted:
            raise GraphError(
                f"{name}: this view of a tensor that requires grad was made with gradients off and is changed with "
                "gradients on: make both in the same mode"
            )
        if target.creation == ONE_OF_SEVERAL and restricted:
            raise GraphError(
                f"{name}: this tensor is one of several views returned by one op (split, unbind, ...), which cannot "
                "be changed in place: clone it, or index the base instead"
            )
        if target.creation == MADE_IN_INFERENCE:
            raise GraphError(f"{name}: a view made in inference mode cannot be changed outside of it: clone it first")
        if target.base.requires_grad_flag and target.base.is_leaf:
            raise GraphError(f"{name}: a view of a leaf that requires grad cannot be changed in place: use no_grad")
    elif target.requires_grad_flag and target.is_leaf:
        raise GraphError(f"{name}: a leaf that requires grad cannot be changed in place: use no_grad, or clone it")


def check_overlap(target: Tensor, operands: list[Tensor], name: str) -> None:
    """Check that no operand shares part of the memory written to, other than being the very same view.

    Raises:
        ArgumentError: naming the op.
    """
    for operand in operands:
        if operand.storage is not target.storage:
            continue
        same = operand.offset == target.offset and operand.meta.stride == target.meta.stride
        if same and operand.meta.shape == target.meta.shape:
            continue
        start, end = extent(target)
        other_start, other_end = extent(operand)
        if start < other_end and other_start < end:
            raise ArgumentError(f"{name}: an operand overlaps the memory that is written to: clone it first")


def extent(tensor: Tensor) -> tuple[int, int]:
    """First and one past the last byte of the storage that the tensor can touch."""
    meta = tensor.meta
    size = meta.dtype.itemsize
    if meta.numel == 0:
        return 0, 0
    last = sum((n - 1) * s for n, s in zip(meta.shape, meta.stride, strict=True))
    return tensor.offset * size, (tensor.offset + last + 1) * size


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
        self.watchers: dict[int, Any] | None = None
        self.account = inner.account
        self.account.nodes += 1

    def __del__(self) -> None:
        self.account.nodes -= 1

    def __repr__(self) -> str:
        return "<CopySlices>"

    @property
    def outs(self) -> tuple[Meta, ...]:
        return (self.base,)

    @property
    def saved_bytes(self) -> int:
        return self.inner.saved_bytes

    def free(self) -> None:
        self.inner.free()

    def apply(self, engine: Engine, grads: list[Tensor | None], needed: list[bool]) -> list[Tensor | None]:
        grad = grads[0]
        assert grad is not None
        base, place = self.base, (self.view.shape, self.view.stride, self.offset)
        # The place counts elements of the base's memory, so the gradient must lie in memory as the base does.
        if base.contiguous:
            laid = F.contiguous(grad)
        else:
            laid = F.restride(grad, base.stride, 0, (_reach(base),), (1,), 0)
        halved = base.dtype.is_complex and not self.view.dtype.is_complex
        if halved:  # a view of real parts: its place counts reals
            laid = F.view_as_real(laid)
        part = F.as_strided(laid, *place)
        inner = self.inner.apply(engine, [part], [True, *needed[1:]])
        first: Tensor | None = None
        if needed[0]:
            replaced = inner[0] if inner[0] is not None else F.zeros_like(part)
            first = F.as_strided_scatter(laid, replaced, *place)
            if halved:
                first = F.view_as_complex(first)
            if not base.contiguous:
                first = F.as_strided(first, base.shape, base.stride)
        return [first, *inner[1:]]


def _reach(meta: Meta) -> int:
    """How many elements of memory a tensor spans, gaps included."""
    return 1 + sum((n - 1) * s for n, s in zip(meta.shape, meta.stride, strict=True)) if meta.numel else 0


def rebase(target: Tensor, node: Node, engine: Engine) -> None:
    """Let the written tensor's history, and that of its base, begin at ``node``."""
    base = target.base
    if base is None:
        target.grad_fn, target.slot, target.requires_grad_flag = node, 0, False
        return
    former = edge_of(base)
    start = base.offset * base.dtype.itemsize // target.dtype.itemsize
    copied: Any = CopySlices(former, node, base.meta, target.meta, target.offset - start, engine.new_node_seq())
    base.grad_fn, base.slot, base.requires_grad_flag = copied, 0, False
    target.seen_version = -1


def regenerate(view: Tensor) -> None:
    """Give a view whose base was written to a history that goes through the base."""
    base = view.base
    assert base is not None
    version = view.storage.version
    if not base.requires_grad:
        view.seen_version = version
        return
    engine = view.engine
    entry = row("as_strided")
    values: list[Any] = [base.meta, view.meta.shape, view.meta.stride, view.offset - base.offset]
    node = Node(
        "AsStridedBackward0",
        entry,
        values,
        (edge_of(base),),
        (view.meta,),
        engine.new_node_seq(),
        engine.account,
    )
    node.saved = {}
    view.grad_fn, view.slot, view.requires_grad_flag = node, 0, False
    view.seen_version = version
