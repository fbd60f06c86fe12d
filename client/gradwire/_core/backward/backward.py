"""Backward and grad over proxies. Neither waits for the server."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, GraphError
from gradwire_protocol.ops.control import INFERENCE_MODE, check_gradient, gradient_meta
from gradwire_protocol.table import TABLE

from ..context.modes import MODES, no_grad
from ..dispatch.dispatch import tell
from ..dispatch.mapped_tensors import unbatch
from ..graph.forward_levels import OPEN, inherit
from ..graph.graph_mirror import AccumulateGrad, Edge, Node, arrivals_of, edge_of, receiving_leaves, retaining
from ..graph.save_policy import check, executed, free
from ..graph.vmap_levels import Levels
from ..session.session import Session
from ..surface.creation_like import zeros_like
from ..tensor.tensor import NO_GRAD, UNKNOWN_GRAD, Tensor
from . import batched_gradients as batched
from .backward_listeners import LISTENERS, tell_listeners
from .client_backward import (
    ClientBackward,
    arrives,
    prepare_inference,
    reachable,
    refuse_former_leaf,
    retained,
    swept,
    takes_part,
)
from .gradient_edges import GradientEdge, edges_among, tensors_at
from .gradients import find_grad  # noqa: F401  (and Tensor.grad with it)
from .predicted_history import Histories, attach, play

Tensors = Tensor | Sequence[Tensor]


def _roots(tensors: list[Tensor], gradients: list[Tensor | None]) -> list[Edge]:
    """The edges backward starts from, after every check that can be made here."""
    if len(gradients) != len(tensors):
        raise ArgumentError(f"{len(tensors)} tensors come with {len(gradients)} gradients")
    starts = []
    for tensor, gradient in zip(tensors, gradients, strict=True):
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(f"backward starts from tensors, not from {type(tensor).__name__}")
        if gradient is not None and not isinstance(gradient, Tensor):
            raise ArgumentTypeError(f"a gradient is a tensor or None, not {type(gradient).__name__}")
        edge = edge_of(tensor)
        if edge is None:
            raise GraphError(
                f"a {tensor._form!r} tensor does not require grad and has no history: nothing to differentiate"
            )
        check_gradient(tensor._known_meta(), None if gradient is None else gradient._known_meta())
        starts.append(edge)
    return starts


def _only(starts: Iterable[Edge | None]) -> list[Node]:
    """The node that backward starts at, where it starts at one: what is done there does not ask where it leads."""
    nodes = [edge[0] for edge in starts if edge is not None]
    return nodes if len(nodes) == 1 else []


def _note_retained(
    nodes: Iterable[Node], arrivals: Callable[[], set[Edge]], create_graph: bool, histories: Histories
) -> None:
    """Note which of the tensors that these nodes have made, and that retain their gradient, receive one."""
    watching = [node for node in nodes if node.retained]
    if not watching:
        return
    for node, slot, tensor in retaining(watching, arrivals()):
        retained(tensor, create_graph, histories[node][slot] if node in histories else None)


def _backward(roots: list[Tensor], nodes: list[Node], leaves: list[Tensor]) -> None:
    """Record a backward that goes through these nodes to these leaves, and nothing else."""
    session = roots[0]._session
    before = _receiving(nodes) if MODES.anomaly[0] else ()
    if MODES.inference_gradients or MODES.flags & INFERENCE_MODE:
        prepare_inference(leaves, False)
    try:
        tell("backward", [roots, [None], None, None, False])
        for leaf in leaves:
            arrives(leaf, False)
        for node in nodes:
            if node.saved and node.edges:
                node.saved = None
    except BaseException:
        _interrupted(nodes, leaves)
        raise
    session.builder.frame_ends()
    if LISTENERS:
        tell_listeners(leaves)
    _anomalies(session, before)


def _interrupted(nodes: list[Node], leaves: list[Tensor]) -> None:
    """After an exception in the middle of a backward, which may be recorded or not: the server knows what there is."""
    for leaf in leaves:
        leaf._grad_proxy, leaf._grad_history, leaf._grad_state = None, None, UNKNOWN_GRAD
    for node in nodes:
        if node.saved and node.edges:
            node.saved = None


def _receiving(nodes: Iterable[Node], leaves: bool = True) -> list[tuple[Any, int]]:
    """The tensors whose ``grad`` a backward through these nodes may change, and what is known of it now: one that is
    retained is a new tensor each time."""
    found: list[tuple[Any, int]] = []
    for node in nodes:
        if leaves and isinstance(node, AccumulateGrad):
            found.append((node.variable, node.variable._grad_state))
        for reference in (node.retained or {}).values():
            tensor = reference()
            if tensor is not None:
                found.append((tensor, NO_GRAD))
    return found


def _anomalies(session: Session, before: Iterable[tuple[Any, int]], create_graph: bool = False) -> None:
    """Under anomaly mode, wait for what backward finds: who turned it on wants to know where.

    Args:
        before: of the tensors that were to receive a gradient, whether they had one. Which of them it came to before
            backward ended, the server knows.
    """
    if not MODES.anomaly[0]:
        return
    if MODES.capture is not None:
        MODES.capture.refuse("anomaly mode waits for each backward")
    try:
        session.synchronize()
    except BaseException:
        for tensor, state in before:
            if create_graph or state == NO_GRAD:
                tensor._grad_proxy, tensor._grad_history, tensor._grad_state = None, None, UNKNOWN_GRAD
        raise


def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate the gradients of ``tensors`` in the leaves they depend on, or in ``inputs`` only.

    Args:
        grad_tensors: one initial gradient per tensor; None for a tensor of one element.
        retain_graph: keep what was saved, so that backward can run again. Defaults to ``create_graph``.
        create_graph: record the computation of the gradients, for higher derivatives.

    Raises:
        GraphError: when there is nothing to differentiate, or a gradient is missing or does not fit.
    """
    if MODES.maps:
        raise GraphError("backward() inside vmap is not possible: use gradwire.func.grad, or call it outside")
    if MODES.region is not None:
        with MODES.region.left_for_backward():
            backward(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        return
    if grad_variables is not None:
        warnings.warn("grad_variables is the former name of grad_tensors", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise GraphError("grad_tensors and grad_variables are two names of one argument: give the first alone")
        grad_tensors = grad_variables
    roots = tensors_at(tensors)
    gradients = [None] * len(roots) if grad_tensors is None else tensors_at(grad_tensors)
    starts = _roots(roots, gradients)
    if not roots:
        return
    if grad_tensors is None and inputs is None and not retain_graph and not create_graph and len(starts) == 1:
        ordinary = swept(starts[0][0])
        if ordinary is not None:
            if roots[0]._session.detached:
                check(ordinary[0], roots[0]._session)
            _backward(roots, *ordinary)
            return
    if inputs is not None:
        inputs = tensors_at(inputs)
        if not inputs:
            raise ArgumentError("inputs is empty: leave it out to reach all leaves")
        for i, tensor in enumerate(inputs):
            if not tensor.requires_grad:
                raise GraphError(f"input {i} does not require grad")
            tensor.retain_grad()
        inputs = [tensor for tensor in inputs if edge_of(tensor) is not None]
    if create_graph:
        warnings.warn(
            "backward(create_graph=True) lets a leaf's .grad refer to a graph that refers to the leaf: use "
            "autograd.grad, or set .grad to None afterwards",
            UserWarning,
            stacklevel=2,
        )
    keep = create_graph if retain_graph is None else retain_graph
    nodes = reachable([node for node, _ in starts])
    targets = None if inputs is None else [e for e in map(edge_of, inputs) if e is not None]
    wanted = None if targets is None else [node for node, _ in targets]
    passed = executed(nodes, wanted, including=True)
    check(passed, roots[0]._session, wanted)
    before = _receiving(nodes) if MODES.anomaly[0] else ()
    inferring = bool(MODES.flags & INFERENCE_MODE)
    if inferring or MODES.inference_gradients:
        ends = nodes if wanted is None else list(set(wanted).intersection(nodes))
        prepare_inference([node.variable for node in receiving_leaves(ends)], create_graph)
    if takes_part(nodes):  # which may give a leaf no gradient
        ClientBackward(roots, gradients, nodes, inputs, accumulate=True, retain_graph=keep, create_graph=create_graph)()
        roots[0]._session.builder.frame_ends()
        if LISTENERS:
            tell_listeners([node.variable for node in receiving_leaves(nodes if wanted is None else wanted)])
        _anomalies(roots[0]._session, before, create_graph)
        return
    if wanted is None:
        for node in nodes:
            refuse_former_leaf(node)
    session = roots[0]._session
    records = create_graph and not inferring
    histories: Histories = play(roots, gradients, nodes, targets)[1] if records else {}
    plain = inputs is None and not keep and not create_graph and grad_tensors is None
    if plain:
        tell("backward", [roots, gradients, None, None, False])
    else:
        session.builder.record(TABLE["backward"], [roots, gradients, inputs, keep, create_graph], 0)
    arrivals = cache(lambda: arrivals_of(starts, passed))
    reached = (
        nodes if targets is None else [node for node, slot in dict.fromkeys(targets) if (node, slot) in arrivals()]
    )
    receiving = receiving_leaves(reached)
    for node in receiving:
        if create_graph and inferring:
            retained(node.variable, False)  # a new tensor, without history
        else:
            arrives(node.variable, create_graph, histories[node][0] if node in histories else None)
    _note_retained(dict.fromkeys([*passed, *_only(starts)]), arrivals, records, histories)
    if not keep:
        free(passed)
    session.builder.frame_ends()
    if LISTENERS:
        tell_listeners([node.variable for node in receiving])
    _anomalies(session, before, create_graph)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``, leaving every ``.grad`` alone.

    With ``is_grads_batched`` the first dimension of each gradient in ``grad_outputs`` is mapped over, and the results
    have it in front: as many gradients as there are rows, in one backward.

    Returns one tensor per input; None for an input that was not used, where ``allow_unused``.

    Raises:
        ArgumentError: for ``is_grads_batched`` with a gradient whose shape after the first dimension is not its
            output's.
        GraphError: when an input is unused or does not require grad, or there is nothing to differentiate.
        ArgumentValueError: for ``materialize_grads=True`` with ``allow_unused=False``.
    """
    if MODES.region is not None:
        with MODES.region.left_for_backward():
            return grad(
                outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused, is_grads_batched,
                materialize_grads,
            )  # fmt: skip
    inputs = [inputs] if isinstance(inputs, (Tensor, GradientEdge)) else list(inputs)
    roots, sources = tensors_at(outputs), tensors_at(inputs)
    gradients = [None] * len(roots) if grad_outputs is None else tensors_at(grad_outputs)
    if not sources:
        raise ArgumentError("grad needs at least one input")
    if materialize_grads and allow_unused is False:
        raise ArgumentValueError("materialize_grads=True fills in unused inputs, allow_unused=False forbids them")
    entered = None
    if is_grads_batched:
        gradients, entered = batched.enter(roots, gradients)
    unused_allowed = materialize_grads if allow_unused is None else allow_unused
    starts = _roots(roots, gradients)
    session = (roots or sources)[0]._session
    for i, tensor in enumerate(sources):
        if roots and tensor._session is not session:
            raise ArgumentError(
                f"input {i} and the outputs belong to different sessions, {tensor._session.id} and "
                f"{session.id}: no gradient of one can reach the other"
            )
        if not tensor.requires_grad:
            raise GraphError(f"input {i}, a {tensor._form!r} tensor, does not require grad")
    nodes = reachable([node for node, _ in starts])
    edges = [edge_of(tensor) for tensor in sources]
    targets = [edge for edge in edges if edge is not None]
    passed = executed(nodes, [node for node, _ in targets])
    arrivals = arrivals_of(starts, passed)
    hits = [edge in arrivals for edge in edges]
    for i, hit in enumerate(hits):
        if not hit and not unused_allowed:
            raise GraphError(
                f"input {i}, a {sources[i]._form!r} tensor, was not used for the outputs; pass allow_unused=True "
                "to get None for it, or materialize_grads=True to get zeros"
            )
    if materialize_grads and any(not hits[i] for i in edges_among(inputs)):
        raise GraphError("materialize_grads=True: a gradient edge that was not used has no tensor to be filled in for")
    check(passed, session, [node for node, _ in targets])
    # Gradients that arrive at another output of an input's node may be retained there.
    nodes_reached = {node for node, _ in arrivals}
    reached = [i for i, edge in enumerate(edges) if edge is not None and edge[0] in nodes_reached]
    asked = [sources[i] for i in reached]
    if not reached and any(node.retained or node.part is not None for node in _only(starts)):
        asked = roots[:1]  # hooks and retained gradients of the root are wanted all the same
    found: dict[int, Any] = {}
    before = _receiving(nodes, leaves=False) if MODES.anomaly[0] else ()
    if asked:
        keep = create_graph if retain_graph is None else retain_graph
        levels = batched.result_levels(roots, asked, gradients)
        called = _Call(
            roots, gradients, asked, levels, keep, create_graph, unused_allowed or not all(hits),
        )  # fmt: skip
        found = dict(zip(reached, _gradients(called, nodes, passed, lambda: arrivals), strict=False))
    results: list[Any] = []  # tensors, and None for inputs that nothing depends on
    for i, (tensor, hit) in enumerate(zip(sources, hits, strict=True)):
        made = found[i] if hit else None
        if made is not None:
            if entered is not None:
                made = unbatch(made, entered.level, 0, entered.size)
        elif materialize_grads:
            with no_grad():
                made = zeros_like(tensor)
            if create_graph:
                made.requires_grad_()
        results.append(made)
    if OPEN:
        inherit(results, [*roots, *(g for g in gradients if g is not None)])
    _anomalies(session, before, create_graph)
    return tuple(results)


class _Call(NamedTuple):
    """A call of :func:`grad`, with the inputs that are reached and the levels at which their gradients are mapped."""

    roots: list[Any]
    gradients: list[Any]
    inputs: list[Any]
    levels: list[Levels]
    keep: bool
    create_graph: bool
    allow_unused: bool


def _gradients(called: _Call, nodes: list[Node], passed: list[Node], arrivals: Callable[[], set[Edge]]) -> list[Any]:
    """Record the call and note what it leaves behind. Returns the gradients."""
    roots, gradients, inputs, levels, keep, create_graph, allow_unused = called
    session = roots[0]._session
    if takes_part(nodes):
        run = ClientBackward(
            roots, gradients, nodes, inputs, accumulate=False, retain_graph=keep, create_graph=create_graph
        )
        results = run(allow_unused, levels)
        if not keep:
            session.builder.frame_ends_beyond()
        return results
    edges = [edge for edge in map(edge_of, inputs) if edge is not None]
    inferring = bool(MODES.flags & INFERENCE_MODE)
    records = create_graph and not inferring
    histories, by_node = play(roots, gradients, nodes, edges) if records else ([], {})
    first = session.builder.record(
        TABLE["grad"], [roots, inputs, gradients, keep, create_graph, allow_unused, False], len(inputs)
    )
    results = []
    for i, tensor in enumerate(inputs):
        made = Tensor._make(session, first + i, gradient_meta(tensor._known_meta(), tensor._dtype_of_grad()))
        made._levels = levels[i]
        if inferring:
            made._inference = True
        results.append(attach(made, histories[i]) if histories else made)
    ends = [*passed, *(node for node, _ in edges), *_only(map(edge_of, roots))]
    _note_retained(dict.fromkeys(ends), arrivals, records, by_node)
    if not keep:
        free(passed)
        session.builder.frame_ends_beyond()
    return results


def _backward_of(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Accumulate gradients into the leaves (or ``inputs``) that this tensor depends on. Does not wait."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_backward_of.__name__, _backward_of.__qualname__ = "backward", "Tensor.backward"
Tensor.backward = _backward_of  # type: ignore[method-assign, assignment]
