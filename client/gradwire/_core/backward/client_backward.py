"""A backward in which the program takes part: hooks, and derivatives of its own.

The mirror knows the graph, so the order in which the program will be called is known before anything runs. The server
pauses at those places, and the gradients that stand there are proxies like any other: nothing waits, and
a backward with all its callbacks costs no round trip.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError, GraphError
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.ops.callbacks import ACCUMULATED, AFTER, BEFORE, BEFORE_RUN, HOLD, INSTEAD
from gradwire_protocol.ops.control import GRAD_MODE, INFERENCE_MODE, gradient_meta
from gradwire_protocol.table import TABLE

from ..context.modes import MODES
from ..graph.graph_mirror import AccumulateGrad, Edge, Node, edge_of
from ..graph.node_hooks import NodeHooks, place_of
from ..graph.save_policy import describe
from ..graph.vmap_levels import Levels
from ..tensor.saved_tensors import Packed
from ..tensor.tensor import NO_GRAD, PRESENT, Tensor
from .checkpoint_regions import CheckpointRegion
from .predicted_history import CONSTANT, Gradient, KnownGradients, accumulated, added, attach, begin, step

Gradients = list[Any]


class _Runs(threading.local):
    def __init__(self) -> None:
        self.stack: list[ClientBackward] = []


_RUNS: Final = _Runs()


def current_backward() -> ClientBackward:
    """The backward whose callback this thread is in.

    Raises:
        GraphError: when it is in none.
    """
    if not _RUNS.stack:
        raise GraphError("this is possible only while backward runs, in a hook or in the backward of a Function")
    return _RUNS.stack[-1]


def running_has(region: CheckpointRegion) -> bool:
    """Whether a backward of this thread has computed a region again, and not yet let go of it."""
    return any(region in run._repetitions for run in _RUNS.stack)


def reachable(starts: list[Node]) -> list[Node]:
    """All nodes that gradients from these nodes can reach."""
    stack = list(dict.fromkeys(starts))
    seen = set(stack)
    found = list(stack)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                found.append(edge[0])
                stack.append(edge[0])
    return found


def swept(start: Node) -> tuple[list[Node], list[Any]] | None:
    """What an ordinary backward from this node goes through, all at once: the nodes, and the leaves that receive a
    gradient. ``None`` where anything is out of the ordinary: what the program takes part in, what backward refuses."""
    seen = {start}
    nodes = [start]
    leaves = []
    for node in nodes:  # which grows meanwhile
        saved = node.saved
        if saved is None or node.part is not None or node.inner is not None or node.retained:
            return None
        for cell, version, _, _, _ in saved:
            if cell is not None and cell[0] != version:
                return None
        edges = node.edges
        if not edges and type(node) is AccumulateGrad:
            leaf = node.variable
            if leaf._node is not None:
                return None
            if leaf._requires:
                leaves.append(leaf)
        for edge in edges:
            if edge is not None:
                following = edge[0]
                if following not in seen:
                    seen.add(following)
                    nodes.append(following)
    return nodes, leaves


def takes_part(nodes: list[Node]) -> bool:
    """Whether the program is called while gradients pass these nodes."""
    return any(node.part is not None and node.part.acts for node in nodes)


def refuse_former_leaf(node: Node) -> None:
    """Refuse to accumulate in a tensor that was a leaf when it was used, and has been given a history since.

    Raises:
        GraphError: where such a tensor is what the node stands for.
    """
    if type(node) is AccumulateGrad and node.variable._node is not None:
        raise GraphError(
            f"a {node.variable._form!r} tensor was a leaf when the graph was recorded; {describe(node.variable._node)} "
            "has written to it since, so a gradient of what it was has nowhere to go. Clone it before it is written to"
        )


def arrives(tensor: Tensor, create_graph: bool, gradient: Gradient = None) -> None:
    """Note that a gradient was added to the tensor's ``grad``. With ``create_graph``, which: it becomes history."""
    if create_graph:
        tensor._grad_history = accumulated(tensor, gradient)
    elif tensor._grad_state == NO_GRAD:
        tensor._grad_history = None
    if create_graph or tensor._grad_state == NO_GRAD:
        tensor._grad_proxy = None
    tensor._grad_state = PRESENT
    if tensor._grad_proxy is not None:
        tensor._grad_proxy._bump()


def retained(tensor: Tensor, create_graph: bool, gradient: Gradient = None) -> None:
    """Note that a gradient arrived at a tensor that retains it: its ``grad`` is a new tensor each time."""
    tensor._grad_history = accumulated(tensor, gradient) if create_graph else None
    tensor._grad_proxy, tensor._grad_state = None, PRESENT
    if MODES.inference_gradients:
        tensor._grad_inference = bool(MODES.flags & INFERENCE_MODE)


def prepare_inference(leaves: Iterable[Tensor], create_graph: bool) -> None:
    """Note which of the leaves that are about to receive a gradient have one made in inference mode after that.

    Raises:
        GraphError: when outside of it a gradient would be added in place to one that was made in it.
    """
    inferring = bool(MODES.flags & INFERENCE_MODE)
    if inferring:
        MODES.expect_inference_gradients()
        if MODES.capture is not None:
            MODES.capture.refuse("backward runs in inference mode")
    anew = []
    for leaf in leaves:
        if create_graph or leaf._grad_state == NO_GRAD:
            anew.append(leaf)
        elif leaf._grad_inference and not inferring:
            raise GraphError(
                f"backward adds in place to the .grad of a {leaf._form!r} leaf, which was made in inference mode: set "
                "it to None, or to a clone"
            )
    for leaf in anew:
        leaf._grad_inference = inferring


class ClientBackward:
    """One backward with callbacks.

    Args:
        roots, gradients: where it starts; ``None`` for a gradient of ones.
        nodes: all nodes that can be reached from there.
        inputs: what gradients are wanted for; ``None`` for all leaves.
        accumulate: whether they go to ``grad`` or are returned.
    """

    def __init__(
        self,
        roots: list[Tensor],
        gradients: Gradients,
        nodes: list[Node],
        inputs: list[Any] | None,
        *,
        accumulate: bool,
        retain_graph: bool,
        create_graph: bool,
    ) -> None:
        if MODES.capture is not None:
            MODES.capture.refuse("the program takes part in backward (hooks, or derivatives of its own)")
        self._session = roots[0]._session
        of_roots = {level for t in roots for level in t._levels}
        self._levels = tuple(sorted({n for t in gradients if t is not None for n in t._levels} - of_roots))
        self._roots = roots
        self._gradients = gradients
        self._inputs = inputs
        self._accumulate = accumulate
        self._keep = retain_graph
        self._create = create_graph
        self._inferring = bool(MODES.flags & INFERENCE_MODE)
        self._records = create_graph and not self._inferring
        starts = [edge for edge in map(edge_of, roots) if edge is not None]
        self._order = _in_order([node for node, _ in starts], nodes)
        self._places = set(nodes)
        self._captures: set[Node] = set()
        self._wanted: set[Node] | None = None
        if inputs is not None:
            self._captures = {e[0] for e in map(edge_of, inputs) if e is not None}
            self._wanted = _leading_to(self._order, self._captures)
            if len(roots) == 1:  # its hooks see the gradient, wherever it leads
                self._wanted.add(starts[0][0])
        self._arrived: dict[Node, list[Gradient]] = {}
        self._captured: dict[Node, list[Gradient]] = {}
        self._handle: Any = None
        self._step = 0
        self._supplied: Gradients = []
        self._removed: tuple[int, ...] = ()
        self._beside: Gradients = []  # what a custom derivative returned where no gradient is wanted
        self._repetitions: dict[CheckpointRegion, CheckpointRegion] = {}
        self._packed: list[Packed] = []
        self._endings: list[Callable[[], Any]] = []
        self._final: list[Callable[[], Any]] = []

    def passes(self, node: Node) -> bool:
        """Whether gradients may pass this node."""
        return node in self._places and (self._wanted is None or node in self._wanted)

    @property
    def to_all_leaves(self) -> bool:
        """Whether gradients go to every leaf, rather than to named inputs."""
        return self._inputs is None

    def when_finished(self, action: Callable[[], Any]) -> None:
        """Call ``action`` once every gradient has arrived."""
        self._final.append(action)

    def at_end(self, action: Callable[[], Any]) -> None:
        """Call ``action`` when this backward is over, however it ends."""
        self._endings.append(action)

    def __call__(self, allow_unused: bool = False, levels: Sequence[Levels] = ()) -> list[Any]:
        """Run to the end. Gradients of the inputs where they do not accumulate, which are mapped at these levels."""
        plan: list[tuple[Any, int]] = []
        for node in self._order:
            for region in self._regions(node):
                self._repetitions[region] = region
                plan.append((region.handle, HOLD))
            plan.extend((place_of(node), stage) for stage in self._stages(node))
        self._repetitions.clear()
        values = [
            self._roots, self._gradients, self._inputs, [place for place, _ in plan],
            tuple(stage for _, stage in plan), self._keep, self._create, self._accumulate,
        ]  # fmt: skip
        self._handle = self._record("begin_backward", values, [meta((0,), self._roots[0].dtype, "cpu")])[0]
        for root, gradient in zip(self._roots, self._gradients, strict=True):
            edge = edge_of(root)
            assert edge is not None
            self._deliver(edge, begin(root, gradient) if self._records else CONSTANT)
        _RUNS.stack.append(self)
        packing = MODES.packing  # hooks that an unpack hook puts in force hold until the end of this, as in PyTorch
        try:
            for node in self._order:
                self._pass(node)
            results = self._finish(allow_unused, levels)
            for action in self._final:  # which may add others
                action()
            return results
        except BaseException:
            self._record("abandon_backward", [self._handle], [])
            raise
        finally:
            MODES.packing = packing
            _RUNS.stack.pop()
            for region in self._repetitions:
                region.forget()
            for packed in self._packed:
                packed.let_go()
            for action in self._endings:
                action()

    def _stages(self, node: Node) -> list[int]:
        part = node.part
        if part is None or not part.acts or (self._wanted is not None and node not in self._wanted):
            return []
        stages = []
        if any(part.arriving.values()):
            stages.append(BEFORE)
        if not self._runs(node):
            return stages
        if part.before:
            stages.append(BEFORE_RUN)
        if part.packed is not None:
            stages.append(HOLD)
        if part.custom:
            stages.append(INSTEAD)
        if part.accumulated:
            stages.append(ACCUMULATED)
        if part.after:
            stages.append(AFTER)
        return stages

    def _runs(self, node: Node) -> bool:
        """Whether the node's derivative is computed, and not only what arrives there."""
        if self._accumulate and node in self._captures:
            return True
        return self._wanted is None or any(self._leads(e) for e in node.edges)

    def _leads(self, edge: Edge | None) -> bool:
        return edge is not None and (self._wanted is None or edge[0] in self._wanted)

    # One node

    def _regions(self, node: Node) -> list[CheckpointRegion]:
        """The regions that have to be computed again before the node can run, the outermost first."""
        part = node.part
        if part is None or part.region is None or not self._leads((node, 0)) or not self._runs(node):
            return []
        return [region for region in part.region.chain if region not in self._repetitions]

    def _pass(self, node: Node) -> None:
        for region in self._regions(node):
            self._advance([])
            region.compute_again(self._repetitions)
        arrived = self._arrived.pop(node, None)
        if self._wanted is not None and node not in self._wanted:
            return
        if arrived is not None and self._wanted is None:
            refuse_former_leaf(node)
        stages = self._stages(node)
        if arrived is None:
            if not stages:
                return
            arrived = [None] * len(node.outs)
        part = node.part
        runs = self._runs(node)
        if runs and node in self._captures:
            self._captured[node] = list(arrived)
        if BEFORE in stages:
            self._before(node, arrived, _tensor_hooks)
        for slot, reference in (node.retained or {}).items():
            tensor = reference()
            if tensor is not None and arrived[slot] is not None:
                retained(tensor, self._records, arrived[slot])
        if not runs:
            if node in self._captures:
                self._captured[node] = arrived
            return
        if BEFORE_RUN in stages:
            self._before(node, arrived, _pre_hooks)
        if HOLD in stages:
            assert part is not None
            assert part.packed is not None
            self._advance([])
            part.packed.bring_back()
            if self._keep:
                self._packed.append(part.packed)
            else:
                part.packed = None  # what the program kept may be the node's own result
        if isinstance(node, AccumulateGrad) and arrived[0] is not None and node.variable._requires:
            if self._create and self._inferring:
                retained(node.variable, False)  # a new tensor, without history
            else:
                arrives(node.variable, self._create, arrived[0])
        if INSTEAD in stages:
            given = self._instead(node, arrived)
        elif all(a is None for a in arrived):
            given = [None] * len(node.edges)
        elif self._records:
            given = step(node, arrived, [self._leads(e) for e in node.edges])
        else:
            given = [CONSTANT if self._leads(e) else None for e in node.edges]
        if ACCUMULATED in stages:
            assert part is not None
            self._advance([])
            with self._modes():
                for hook in list(part.accumulated.values()):
                    if hook(node.variable) is not None:
                        raise GraphError("a hook that runs after accumulation returns nothing: change .grad instead")
        if AFTER in stages:
            self._after(node, given, arrived)
        for edge, gradient in zip(node.edges, given, strict=True):
            if edge is not None and gradient is not None:
                self._deliver(edge, gradient)
        if not self._keep:
            node.free()

    def _before(self, node: Node, arrived: list[Gradient], hooked: Callable[[NodeHooks, list[Any]], list[Any]]) -> None:
        part = node.part
        assert part is not None
        found = self._advance(list(node.outs), arrived)
        values = [None if gradient is None else v for v, gradient in zip(found, arrived, strict=True)]
        with self._modes():
            values = hooked(part, values)
        self._supply(arrived, values, found)

    def _instead(self, node: Node, arrived: list[Gradient]) -> list[Gradient]:
        found = self._advance(list(node.outs), arrived)
        with self._modes():
            gradients = node.differentiate(found, [a is not None for a in arrived])
        self._beside = [None if self._leads(e) else g for g, e in zip(gradients, node.edges, strict=True)]
        self._supplied = [g if self._leads(e) else None for g, e in zip(gradients, node.edges, strict=True)]
        return [None if g is None else _history(g) for g in self._supplied]

    def _after(self, node: Node, given: list[Gradient], arrived: list[Gradient]) -> None:
        part = node.part
        assert part is not None
        count = len(node.edges)
        metas = [e[0].outs[e[1]] if e is not None else node.outs[0] for e in node.edges]
        found = self._advance([*metas, *node.outs], [*given, *arrived])
        values = [None if gradient is None else v for v, gradient in zip(found[:count], given, strict=True)]
        outputs = tuple([None if a is None else v for v, a in zip(found[count:], arrived, strict=True)])
        if part.custom:  # its hooks see all that backward has returned, wanted or not
            values = [v if b is None else b for v, b in zip(values, self._beside, strict=True)]
        with self._modes():
            for hook in list(part.after.values()):
                values = _replaced_all(values, hook(tuple(values), outputs), "a node's hook")
        values = [None if gradient is None else v for v, gradient in zip(values, given, strict=True)]
        self._supply(given, values, found[:count])

    def _supply(self, gradients: list[Gradient], values: list[Any], found: list[Any]) -> None:
        """Give the server back what hooks have replaced, or removed."""
        self._removed = tuple([i for i, v in enumerate(values) if v is None and gradients[i] is not None])
        self._supplied = [None if new is old else new for new, old in zip(values, found, strict=True)]
        for i, new in enumerate(self._supplied):
            if new is not None:
                gradients[i] = _history(new)
        for i in self._removed:
            gradients[i] = None

    def _deliver(self, edge: Edge, gradient: Gradient) -> None:
        node, slot = edge
        if node not in self._arrived:
            self._arrived[node] = [None] * max(len(node.outs), slot + 1)
        arrived = self._arrived[node]
        arrived[slot] = added(arrived[slot], gradient, node.outs[min(slot, len(node.outs) - 1)])

    # The server's side

    def _advance(self, metas: list[Meta], gradients: Sequence[Gradient] = ()) -> list[Any]:
        values = [self._handle, self._step, self._supplied, len(metas), self._removed]
        self._step += 1
        self._supplied, self._removed = [], ()
        return self._record("advance", values, metas, gradients)

    def _finish(self, allow_unused: bool, levels: Sequence[Levels]) -> list[Any]:
        wanted = [] if self._accumulate else list(self._inputs or ())
        values = [self._handle, self._step, self._supplied, allow_unused, False, self._removed]
        edges = [edge_of(t) for t in wanted]
        gradients = [None if e is None or e[0] not in self._captured else self._captured[e[0]][e[1]] for e in edges]
        metas = [gradient_meta(t._known_meta(), t._dtype_of_grad()) for t in wanted]
        results = self._record("finish_backward", values, metas, gradients, levels)
        return [None if g is None else r for r, g in zip(results, gradients, strict=True)]

    def _record(
        self, op: str, values: list[Any], metas: list[Meta], gradients: Sequence[Gradient] = (),
        levels: Sequence[Levels] = (),
    ) -> list[Any]:  # fmt: skip
        first = self._session.record(TABLE[op], values, len(metas))
        made = [Tensor._make(self._session, first + i, m) for i, m in enumerate(metas)]
        for i, tensor in enumerate(made):
            tensor._levels = levels[i] if levels else self._levels
            if self._inferring:
                tensor._inference = True
        if self._records:
            made[: len(gradients)] = [attach(t, g) for t, g in zip(made, gradients, strict=False)]
        return made

    @contextmanager
    def _modes(self) -> Iterator[None]:
        """Callbacks record gradients exactly when the backward is itself recorded."""
        before = MODES.flags
        MODES.flags = before & ~GRAD_MODE | (GRAD_MODE if self._create else 0)
        try:
            yield
        finally:
            MODES.flags = before


def _tensor_hooks(part: NodeHooks, values: list[Any]) -> list[Any]:
    for slot, table in part.arriving.items():
        for hook in list(table.values()):
            values[slot] = _replaced(values[slot], hook(values[slot]), "a tensor's hook")
    return values


def _pre_hooks(part: NodeHooks, values: list[Any]) -> list[Any]:
    for hook in list(part.before.values()):
        values = _replaced_all(values, hook(tuple(values)), "a node's pre-hook")
    return values


def _history(tensor: Tensor) -> Gradient:
    return KnownGradients.of(tensor)


def _in_order(starts: list[Node], nodes: list[Node]) -> list[Node]:
    """Each node after those that feed gradients to it; later ones first, but leaves as soon as they can."""
    feeding = Counter(starts)
    for node in nodes:
        feeding.update(edge[0] for edge in node.edges if edge is not None)
    ready: list[tuple[float, int, Node]] = []
    order: list[Node] = []
    number = count()

    def feed(fed: Iterable[Node]) -> None:
        for node in fed:
            feeding[node] -= 1
            if not feeding[node]:
                heappush(ready, (_priority(node), next(number), node))

    feed(starts)
    while ready:
        node = heappop(ready)[2]
        order.append(node)
        feed(edge[0] for edge in node.edges if edge is not None)
    return order


def _priority(node: Node) -> float:
    return -(1 << 62) if isinstance(node, AccumulateGrad) else -node.seq


def _leading_to(order: list[Node], targets: set[Node]) -> set[Node]:
    leading = set(targets)
    for node in reversed(order):
        if any(e is not None and e[0] in leading for e in node.edges):
            leading.add(node)
    return leading


def _replaced(old: Tensor | None, new: Any, who: str) -> Any:
    """What a hook made of a gradient.

    Raises:
        ArgumentTypeError: when it returned neither a tensor nor None.
        GraphError: when it made a gradient of another shape, or one where there was none.
    """
    if new is None:
        return old
    if not isinstance(new, Tensor):
        raise ArgumentTypeError(f"{who} returns a tensor or None, not {type(new).__name__}")
    if old is None:
        raise GraphError(f"{who} returned a gradient where there is none")
    if new._known_meta().shape != old._known_meta().shape:
        raise GraphError(f"{who} changed a gradient of shape {list(old.shape)} to shape {list(new.shape)}")
    if new.dtype is not old.dtype:
        raise GraphError(f"{who} changed a gradient of dtype {old.dtype.name} to {new.dtype.name}")
    return new


def _replaced_all(old: Sequence[Tensor | None], new: Any, who: str) -> list[Any]:
    if new is None:
        return list(old)
    if not isinstance(new, tuple):
        raise ArgumentTypeError(f"{who} returns a tuple of tensors or None, not {type(new).__name__}")
    if len(new) != len(old):
        raise GraphError(f"{who} returned {len(new)} gradients where there are {len(old)}")
    return [None if n is None else _replaced(o, n, who) for o, n in zip(old, new, strict=True)]
