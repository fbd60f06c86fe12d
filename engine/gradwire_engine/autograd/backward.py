"""The driver of backward: iterative, in an order that never needs recursion, and a generator.

It yields a :class:`.client_callbacks.CallbackRequest` where its client asked it to pause, and goes on with what is sent
in.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import ref

from gradwire_protocol.errors import GradwireError, GraphError
from gradwire_protocol.meta import Meta, contiguous_stride, meta
from gradwire_protocol.ops.callbacks import ACCUMULATED, AFTER, BEFORE, BEFORE_RUN, HOLD, INSTEAD
from gradwire_protocol.ops.control import gradient_meta
from gradwire_protocol.shapes import is_dense

from ..runtime import deadline
from ..runtime.arrays import Array
from ..runtime.backends import Backend
from .client_callbacks import CallbackRequest, ClientCallbacks, with_replaced
from .functional import F
from .inplace import CopySlices
from .plain_derivatives import by_short_way
from .regions import Hold
from .registry import row
from .tape import AccumulateGrad, Edge, GraphNode, Node, Saved, edge_of
from .tensor import Storage, Tensor

if TYPE_CHECKING:
    from .engine_context import EngineContext


Gradients = list[Tensor | None]


def backward(
    engine: EngineContext,
    roots: list[tuple[Edge, Tensor]],
    captures: list[Edge] | None,
    *,
    retain_graph: bool,
    create_graph: bool,
    pauses: ClientCallbacks | None = None,
    accumulate: bool = False,
) -> Generator[CallbackRequest, Gradients, Gradients]:
    """Propagate gradients from the roots.

    ``captures`` names the places whose gradients are wanted: only what leads there is computed, and they are returned
    in order; with ``accumulate`` leaves among them accumulate instead, and other nodes among them run like those that
    lead to one. Without ``captures`` every leaf that is reached accumulates. Whoever drives the generator sets
    ``engine.grad_enabled`` to ``create_graph`` while it runs.
    """
    order: list[Any] = _reachable([edge[0] for edge, _ in roots])
    wanted: set[int] | None = None
    capturing: dict[int, list[tuple[int, int]]] = {}
    results: Gradients = []
    if captures is not None:
        results = [None] * len(captures)
        for i, (node, slot) in enumerate(captures):
            capturing.setdefault(id(node), []).append((slot, i))
        wanted = _leading_to(order, set(capturing))
        if len(roots) == 1:  # its hooks see the gradient, wherever it leads
            wanted.add(id(roots[0][0][0]))
    if pauses is not None:
        order = pauses.order(order)
    elif engine.anomaly:
        order = _leaves_early(order)
    pending: dict[int, Gradients] = {}
    received: list[tuple[Tensor, Tensor | None]] = []  # leaves that have accumulated, and what they had before
    for (node, slot), gradient in roots:
        _deliver(pending, node, slot, gradient)
    del roots
    written: list[CopySlices] = []
    stops: Sequence[int] = ()
    plain = not engine.anomaly and engine.timeline is None and engine.observer is None
    if pauses is None and captures is None and not create_graph and plain:
        written = _sweep(engine, order, pending, received, retain_graph)
        order = []
    for node in order:
        if type(node) is Hold:
            yield CallbackRequest(HOLD, node, [])
            continue
        if node.edges:
            deadline.check("backward")  # not between leaves: either none of them has its gradient, or all
        arrived = pending.pop(id(node), None)
        if wanted is not None and id(node) not in wanted:
            continue
        if pauses is not None:
            stops = pauses.at(node)
        if arrived is None:
            if not stops:
                continue
            arrived = [None] * len(node.outs)
        edges = node.edges
        needed = [e is not None and (wanted is None or id(e[0]) in wanted) for e in edges]
        runs = wanted is None or any(needed) or (accumulate and id(node) in capturing)
        captured = capturing.get(id(node)) if capturing else None
        if captured and runs and not (accumulate and not edges):
            for slot, i in captured:
                results[i] = arrived[slot]
        if BEFORE in stops:
            replaced = yield CallbackRequest(BEFORE, node, _materialized(engine, node, arrived))
            arrived = with_replaced(arrived, replaced)
            del replaced
        if node.watchers:
            _retain(node.watchers, arrived)
        if not runs:
            for slot, i in captured or ():
                results[i] = arrived[slot]
            continue
        if BEFORE_RUN in stops:
            replaced = yield CallbackRequest(BEFORE_RUN, node, _materialized(engine, node, arrived))
            arrived = with_replaced(arrived, replaced)
            del replaced
        if HOLD in stops:
            yield CallbackRequest(HOLD, node, [])
        if INSTEAD in stops:
            shown = _materialized(engine, node, arrived)
            supplied = yield CallbackRequest(INSTEAD, node, shown if node.maps is None else node.maps.shown(shown))
            if node.maps is not None:
                supplied = node.maps.taken(supplied)
            del shown
            gradients = [
                None if g is None or e is None else _fit(g, e[0].outs[e[1]])
                for g, e in zip(supplied, edges, strict=True)
            ]
            del supplied
        elif stops and not any(a is not None for a in arrived):
            gradients = [None] * len(edges)
        else:
            timeline = engine.timeline
            began = 0 if timeline is None else time.perf_counter_ns()
            if not edges:
                received.append((node.leaf, node.leaf.grad))
            try:
                if not edges and create_graph and engine.inference:
                    gradients = _added_anew(node.leaf, arrived[0], engine)
                else:
                    gradients = node.apply(engine, arrived if AFTER not in stops else list(arrived), needed)
            except GradwireError as error:
                _blame(error, node)
                _take_back(error, received)
                raise
            if timeline is not None:
                timeline.append((engine.position, node.name, node.position, began, time.perf_counter_ns()))
        if ACCUMULATED in stops and (AFTER not in stops or stops.index(ACCUMULATED) < stops.index(AFTER)):
            yield CallbackRequest(ACCUMULATED, node, [])
            stops = [stage for stage in stops if stage != ACCUMULATED]
        if AFTER in stops:
            shown = [
                F.contiguous(g) if g is not None else None if e is None else _zeros(engine, e[0], e[1])
                for g, e in zip(gradients, edges, strict=False)
            ]
            replaced = yield CallbackRequest(AFTER, node, shown + _materialized(engine, node, arrived))
            gradients = with_replaced(gradients, replaced)
            del shown, replaced
        del arrived
        if engine.anomaly:
            _check_nan(node, gradients)
        if engine.observer is not None:
            engine.observer.gradients(node, gradients)
        if ACCUMULATED in stops:
            yield CallbackRequest(ACCUMULATED, node, [])
        for edge, given in zip(edges, gradients, strict=True):
            if edge is not None and given is not None:
                _deliver(pending, edge[0], edge[1], given)
        # Hold nothing beyond its use: accumulation looks at reference counts.
        given = None
        del gradients
        if not retain_graph:
            # A write into a view has a node of its own inside that of its base. Where it kept its result, whose history
            # that node is, a derivative of a derivative goes through it once more.
            if type(node) is CopySlices:
                written.append(node)
            else:
                node.free()
    for copied in written:
        copied.free()
    for i, (node, slot) in enumerate(captures or ()):
        if (captured_gradient := results[i]) is not None:
            results[i] = _handed_out(captured_gradient, node, slot)
    return results


def _sweep(
    engine: EngineContext,
    order: list[GraphNode],
    pending: dict[int, Gradients],
    received: list[tuple[Tensor, Tensor | None]],
    retain_graph: bool,
) -> list[CopySlices]:
    """What :func:`backward` does where nothing is asked of it on the way. Returns the nodes that are not freed yet."""
    written: list[CopySlices] = []
    watcher, complete = engine.watcher, {}
    if watcher is not None:
        complete = _last_arrivals(order)
        watcher.begin([node.leaf for nodes in complete.values() for node in nodes])
    for at, node in enumerate(order):
        edges = node.edges
        if watcher is not None:
            for leaf_node in complete.get(at - 1, ()):
                arrived = pending.get(id(leaf_node))
                watcher.arrived(leaf_node.leaf, None if arrived is None else arrived[0])
                arrived = None
            if not edges:
                watcher.finish()
                watcher = None
        if edges:
            deadline.check("backward")
        arrived = pending.pop(id(node), None)
        if arrived is None:
            continue
        if node.watchers:
            _retain(node.watchers, arrived)
        if not edges:
            leaf = node.leaf  # type: ignore[attr-defined]
            received.append((leaf, leaf.grad))
        try:
            gradients = node.apply(engine, arrived, [edge is not None for edge in edges])
        except GradwireError as error:
            _blame(error, node)
            _take_back(error, received)
            raise
        del arrived
        for edge, given in zip(edges, gradients, strict=True):
            if edge is not None and given is not None:
                _deliver(pending, edge[0], edge[1], given)
        given = None
        del gradients
        if not retain_graph:
            if type(node) is CopySlices:
                written.append(node)
            else:
                node.free()
    return written


def _handed_out(gradient: Tensor, node: GraphNode, slot: int) -> Tensor:
    """A gradient as its receiver expects it: for a leaf in its ``grad_dtype``, and laid out as ``grad_of`` says."""
    leaf = getattr(node, "leaf", None)
    if leaf is not None and leaf.grad_dtype is not None and gradient.dtype is not leaf.grad_dtype:
        gradient = F.to(gradient, dtype=leaf.grad_dtype)
    return _laid_out(gradient, node.outs[slot])


def _laid_out(gradient: Tensor, tensor: Meta) -> Tensor:
    """The gradient with the strides that a gradient of ``tensor`` has; a copy, with history, where it has others."""
    wanted = gradient_meta(tensor)
    strides = zip(wanted.shape, gradient.meta.stride, wanted.stride, strict=False)
    if type(gradient) is not Tensor or wanted.numel == 0 or all(n == 1 or a == b for n, a, b in strides):
        return gradient
    order = sorted(range(wanted.ndim), key=lambda dim: -wanted.stride[dim])
    back = [0] * len(order)
    for place, dim in enumerate(order):
        back[dim] = place
    laid = cast(Tensor, F.permute(F.contiguous(F.permute(gradient, tuple(order))), tuple(back)))
    laid.base = laid.path = None  # nobody has another view of it
    return laid


def _materialized(engine: EngineContext, node: GraphNode, arrived: Gradients) -> Gradients:
    """Gradients as a client expects them: none undefined, each in row-major order."""
    return [_zeros(engine, node, i) if a is None else F.contiguous(a) for i, a in enumerate(arrived)]


def _reachable(starts: list[GraphNode]) -> list[GraphNode]:
    """All nodes reachable from the starts, each after every node that feeds gradients to it."""
    seen = {id(node): node for node in starts}
    stack = list(seen.values())
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and id(edge[0]) not in seen:
                seen[id(edge[0])] = edge[0]
                stack.append(edge[0])
    # Nodes are numbered as they are made, so descending numbers are a topological order; leaves come last.
    inner = [n for n in seen.values() if n.edges]
    inner.sort(key=attrgetter("seq"), reverse=True)
    return inner + [n for n in seen.values() if not n.edges]


def _last_arrivals(order: list[GraphNode]) -> dict[int, list[AccumulateGrad]]:
    """The leaves to which nothing comes after a node, by the node's place; -1 for those of roots."""
    last = {id(e[0]): i for i, node in enumerate(order) for e in node.edges if e is not None}
    found: dict[int, list[AccumulateGrad]] = {}
    for node in reversed(order):
        if node.edges:
            break
        if type(node) is AccumulateGrad:
            found.setdefault(last.get(id(node), -1), []).append(node)
    return found


def _leaves_early(order: list[GraphNode]) -> list[GraphNode]:
    """The same nodes, each leaf as soon as nothing more feeds it, as in PyTorch: what has arrived when an anomaly is
    found stays there."""
    following: dict[int, list[GraphNode]] = {}
    last = {id(e[0]): i for i, node in enumerate(order) for e in node.edges if e is not None}
    for node in order:
        if not node.edges:
            following.setdefault(last.get(id(node), -1), []).append(node)
    found = following.get(-1, [])
    for i, node in enumerate(order):
        if node.edges:
            found.append(node)
            found.extend(following.get(i, ()))
    return found


def _leading_to(order: list[GraphNode], targets: set[int]) -> set[int]:
    """The nodes from which a target can be reached, targets included."""
    leading = set(targets)
    for node in reversed(order):
        if id(node) not in leading and any(e is not None and id(e[0]) in leading for e in node.edges):
            leading.add(id(node))
    return leading


def _deliver(pending: dict[int, Gradients], node: GraphNode, slot: int, gradient: Tensor) -> None:
    buffer = pending.get(id(node))
    if buffer is None:
        buffer = pending[id(node)] = [None] * len(node.outs)
    before = buffer[slot]
    buffer[slot] = gradient if before is None else _sum(before, gradient)


def _sum(first: Tensor, second: Tensor) -> Tensor:
    if type(first) is not Tensor:  # of a map
        return first + second
    added: Tensor = first.engine.run(row("add"), [first, second, 1])
    return added


def _retain(watchers: dict[int, ref[Tensor]], arrived: Gradients) -> None:
    for slot, reference in watchers.items():
        tensor, gradient = reference(), arrived[slot]
        if tensor is not None and gradient is not None:
            if tensor.engine.undo is not None:
                tensor.engine.undo.note(tensor)
            if tensor.grad is None:
                tensor.grad = _laid_out(F.clone(gradient), tensor.meta)
            else:
                tensor.grad = _laid_out(tensor.grad + gradient, tensor.meta)


def _blame(error: GradwireError, node: GraphNode) -> None:
    """Note at which node of the graph a derivative failed, and which record made it."""
    error.details.setdefault("node", node.name)
    error.details.setdefault("position", node.position)


def _take_back(error: GradwireError, received: list[tuple[Tensor, Tensor | None]]) -> None:
    """Let leaves that had no gradient have none; gradients that were added to are told of, in ``half_done``."""
    error.half_done = []
    for leaf, before in received:
        if before is None or leaf.grad is not before:
            leaf.grad = before
        else:
            error.half_done.append(before)


def _check_nan(node: GraphNode, gradients: Gradients) -> None:
    for i, gradient in enumerate(gradients):
        if gradient is not None and gradient.engine.to_numpy(F.any(F.isnan(gradient))).item():
            error = GraphError(
                f"{node.name} returned NaN as gradient {i}, for an operand of shape {list(gradient.shape)}"
            )
            _blame(error, node)
            raise error


def differentiate(node: Node, engine: EngineContext, grads: Gradients, needed: list[bool]) -> Gradients:
    """Run one node's derivative and fit each gradient to its operand: shape, reality, dtype."""
    if node.saved is None:
        raise GraphError(
            f"the graph behind {node.name} was freed by an earlier backward; pass retain_graph=True there to run "
            "backward again"
        )
    if True not in needed:
        return [None] * len(needed)
    return by_short_way(engine, node, grads, needed, _by_rules)


def _by_rules(node: Node, engine: EngineContext, grads: Gradients, needed: list[bool]) -> Gradients:
    return [
        _fit(gradient, meta) if need and gradient is not None else None
        for gradient, need, meta in zip(unfitted(node, engine, grads, needed), needed, operand_metas(node), strict=True)
    ]


def unfitted(node: Node, engine: EngineContext, grads: Gradients, needed: list[bool]) -> list[Tensor | None]:
    """What a node's derivative makes of the gradients, one per edge: perhaps still broadcast, or of another dtype."""
    entry = node.row
    saved = Saved(node, needed) if engine.tracer is None else engine.tracer.saved(node, needed)
    if len(grads) > 1 and not entry.undefined:
        grads = [_zeros(engine, node, i) if g is None and _carries(node, i) else g for i, g in enumerate(grads)]
    if entry.joint is not None:
        raw = _flatten(entry.joint(saved, *grads), node)
    elif entry.has_lists:
        raw = _by_rule_with_lists(node, saved, grads)
    else:
        raw = [
            rule(saved, *grads) if need and rule is not None else None
            for need, rule in zip(needed, entry.rule_list, strict=True)
        ]
    if len(raw) != len(needed):
        raise GraphError(f"the derivative of {entry.op.name} returned {len(raw)} gradients for {len(needed)} operands")
    return raw


def operand_metas(node: Node) -> list[Meta]:
    """The metas of the operands, one per edge."""
    if not node.row.has_lists:
        return [node.values[i] for i in node.row.differentiable]
    metas: list[Meta] = []
    for i in node.row.differentiable:
        value = node.values[i]
        if type(value) in (tuple, list):
            metas.extend(value)
        else:
            metas.append(value)
    return metas


def _carries(node: Node, i: int) -> bool:
    return node.outs[i].dtype.carries_gradient


def _zeros(engine: EngineContext, node: GraphNode, i: int) -> Tensor:
    out = node.outs[i]
    zeros: Tensor = engine.call("zeros", out.shape, dtype=out.dtype, device=out.device)
    return zeros


def _flatten(result: Any, node: Node) -> list[Tensor | None]:
    if not node.row.has_lists:
        return list(result) if isinstance(result, (tuple, list)) else [result]
    flat: list[Any] = []
    parts = result if isinstance(result, tuple) else (result,)
    for i, part in zip(node.row.differentiable, parts, strict=True):
        value = node.values[i]
        if type(value) in (tuple, list):
            flat.extend(part if part is not None else [None] * len(value))
        else:
            flat.append(part)
    return flat


def _by_rule_with_lists(node: Node, saved: Saved, grads: Gradients) -> list[Tensor | None]:
    return _flatten(
        tuple(
            rule[1](saved, *grads) if (rule := node.row.rules.get(name)) is not None and saved.needs(name) else None
            for name in (node.row.op.params[i].name for i in node.row.differentiable)
        ),
        node,
    )


def _fit(gradient: Tensor, operand: Meta) -> Tensor:
    if gradient.meta is operand:
        return gradient
    if gradient.shape != operand.shape:
        gradient = F.sum_to_size(gradient, operand.shape)
    if gradient.dtype is not operand.dtype:
        if gradient.dtype.is_complex and not operand.dtype.is_complex:
            gradient = F.real(gradient)
        if gradient.dtype is not operand.dtype:
            gradient = F.to(gradient, dtype=operand.dtype)
    return gradient


# A gradient nobody else holds is seen by: the parameter of accumulate, the caller's local, getrefcount itself.
_SOLE_TENSOR: Final = 3
_SOLE_STORAGE: Final = 2


def _added_anew(leaf: Tensor, gradient: Tensor | None, engine: EngineContext) -> Gradients:
    """What a leaf's accumulator does under create_graph in inference mode: no history, and no write either."""
    if gradient is not None and leaf.requires_grad_flag:
        if leaf.grad is None:
            accumulate(leaf, gradient, engine)
        else:
            if engine.undo is not None:
                engine.undo.note(leaf)
            leaf.grad = leaf.grad + gradient
    return []


def accumulate(leaf: Tensor, gradient: Tensor, engine: EngineContext) -> None:
    """Add a gradient to a leaf's ``grad``: in place, or into a new tensor under create_graph.

    The first gradient is taken over as it is only when nobody else holds its memory.
    """
    if engine.undo is not None:
        engine.undo.note(leaf)
    if leaf.grad_dtype is not None and gradient.dtype is not leaf.grad_dtype:
        gradient = F.to(gradient, dtype=leaf.grad_dtype)
    if leaf.grad is not None:
        if engine.grad_enabled:
            leaf.grad = leaf.grad + gradient
        else:
            engine.call("add_", leaf.grad, gradient)
        return
    if engine.grad_enabled:
        copied = F.clone(gradient)
        if copied.grad_fn is not None:
            copied.grad_fn.name = "CopyBackwards"  # what PyTorch calls this copy
        leaf.grad = _laid_out(copied, leaf.meta)
        return
    layout = leaf.meta.stride if is_dense(leaf.shape, leaf.meta.stride) else contiguous_stride(leaf.shape)
    sole = (
        sys.getrefcount(gradient) <= _SOLE_TENSOR
        and sys.getrefcount(gradient.storage) <= _SOLE_STORAGE
        and gradient.base is None
    )
    if sole and gradient.meta.stride == layout:
        gradient.grad_fn = gradient.tangents = None
        leaf.grad = gradient
    else:
        leaf.grad = fresh_like(gradient, layout, engine)


def fresh_like(gradient: Tensor, stride: tuple[int, ...], engine: EngineContext) -> Tensor:
    """A copy of a gradient without history, with the given strides."""
    out = meta(gradient.shape, gradient.dtype, gradient.device, stride)
    backend = engine.backends[out.device]
    engine.account.check(out.nbytes, f"the gradient {out!r}")
    try:
        data = engine.on_arrays("copy", _copied, gradient.array, out, backend)
    except MemoryError as error:
        raise engine.out_of_memory("a gradient", error) from None
    copy = Tensor(engine, data, out, Storage(data, engine.account))
    copy.inference = engine.inference
    return copy


def _copied(array: Array, out: Meta, backend: Backend) -> Array:
    """A copy laid out as the meta says."""
    data = backend.view(backend.empty_bytes(out.nbytes), out.shape, out.stride, 0, out.dtype)
    data[...] = array
    return data


def root_edge(tensor: Tensor) -> Edge:
    """The edge of a tensor that backward starts from.

    Raises:
        GraphError: when it does not depend on anything that requires grad.
    """
    edge = edge_of(tensor)
    if edge is None:
        raise GraphError("backward was called on a tensor that does not require grad and has no history")
    return edge


def _apply_accumulation(
    self: AccumulateGrad, engine: EngineContext, grads: list[Tensor | None], needed: list[bool]
) -> list[Tensor | None]:
    gradient = grads.pop()
    if gradient is not None and self.leaf.requires_grad_flag:
        accumulate(self.leaf, gradient, engine)
    return []


Node.apply = differentiate
AccumulateGrad.apply = _apply_accumulation
