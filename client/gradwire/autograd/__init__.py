"""``gradwire.autograd``: backward and grad over proxies. Neither waits for the server."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, GraphError
from gradwire_protocol.ops.control import check_gradient, gradient_meta
from gradwire_protocol.table import TABLE

from ..duals import OPEN, inherit
from ..mapping import unbatch
from ..mirror import Node, edge_of, receivers
from ..modes import (
    MODES,
    detect_anomaly,
    enable_grad,
    inference_mode,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
    set_multithreading_enabled,
)
from ..saved import check, executed, free
from ..telling import tell
from ..tensor import LATER, Tensor
from . import batched
from .driver import Run, arrives, on_the_way, reachable, swept, takes_part
from .history import attach, play

__all__ = [
    "Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad",
    "function", "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode",
    "no_grad", "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip

Tensors = Tensor | Sequence[Tensor]


class _Plain:
    """The record of a backward with nothing but roots, ready but for the references to them."""

    __slots__ = ("template",)

    references: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    lists = (0,)

    def __init__(self, roots: int) -> None:
        self.template: list[Any] = [None, [None] * roots]


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, Tensor) else list(value)


def _roots(tensors: list[Any], gradients: list[Any]) -> list[Node]:
    """The nodes backward starts from, after every check that can be made here."""
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
                f"a {tensor._meta!r} tensor does not require grad and has no history: nothing to differentiate"
            )
        check_gradient(tensor._known_meta(), None if gradient is None else gradient._known_meta())
        starts.append(edge[0])
    return starts


def _backward(roots: list[Any], nodes: list[Node], leaves: list[Any]) -> None:
    """Record a backward that goes through these nodes to these leaves, and nothing else."""
    session = roots[0]._session
    if not tell(roots[0], "backward", [[None]], listed=True):
        session.record(TABLE["backward"], [roots, [None], None, False, False], 0, _Plain(1))
    for leaf in leaves:
        arrives(leaf, False)
    for node in nodes:
        if node.saved and node.edges:
            node.saved = None
    session.frame_ends()
    _anomalies(session)


def _anomalies(session: Any) -> None:
    """Under anomaly mode, wait for what backward finds: who turned it on wants to know where."""
    if MODES.anomaly[0]:
        if MODES.capture is not None:
            MODES.capture.refuse("anomaly mode waits for each backward")
        session.synchronize()


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
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
    if grad_variables is not None:
        warnings.warn("grad_variables is the former name of grad_tensors", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise GraphError("grad_tensors and grad_variables are two names of one argument: give the first alone")
        grad_tensors = grad_variables
    roots = _as_list(tensors)
    gradients = [None] * len(roots) if grad_tensors is None else _as_list(grad_tensors)
    starts = _roots(roots, gradients)
    if grad_tensors is None and inputs is None and not retain_graph and not create_graph and len(starts) == 1:
        ordinary = swept(starts[0])
        if ordinary is not None:
            _backward(roots, *ordinary)
            return
    if inputs is not None:
        inputs = _as_list(inputs)
        if not inputs:
            raise ArgumentError("inputs is empty: leave it out to reach all leaves")
        for i, tensor in enumerate(inputs):
            if not tensor.requires_grad:
                raise GraphError(f"input {i} does not require grad")
            if not tensor.is_leaf:
                tensor.retain_grad()
    if create_graph:
        warnings.warn(
            "backward(create_graph=True) lets a leaf's .grad refer to a graph that refers to the leaf: use "
            "autograd.grad, or set .grad to None afterwards",
            UserWarning,
            stacklevel=2,
        )
    keep = create_graph if retain_graph is None else retain_graph
    nodes = reachable(starts)
    wanted = None if inputs is None else [e[0] for e in map(edge_of, inputs) if e is not None]
    passed = executed(nodes, wanted)
    check(passed, roots[0]._session, wanted)
    if takes_part(nodes):
        Run(roots, gradients, nodes, inputs, accumulate=True, retain_graph=keep, create_graph=create_graph)()
        roots[0]._session.frame_ends()
        _anomalies(roots[0]._session)
        return
    session = roots[0]._session
    arrivals = {}
    if create_graph:
        targets = None if inputs is None else [e for e in map(edge_of, inputs) if e is not None]
        arrivals = play(roots, gradients, nodes, targets)[1]
    plain = inputs is None and not keep and not create_graph and grad_tensors is None
    values = [roots, gradients, inputs, keep, create_graph]
    session.record(TABLE["backward"], values, 0, _Plain(len(roots)) if plain else None)
    if inputs is None:
        reached = receivers(nodes)
    else:
        reached = receivers(on_the_way(nodes, inputs))
    for tensor in reached:
        node, slot = edge_of(tensor) or (None, 0)
        arrives(tensor, create_graph, arrivals[node][slot] if node in arrivals else None)
    if not keep:
        free(passed)
    session.frame_ends()
    _anomalies(session)


LATER["backward"] = backward


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
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
    roots, sources = _as_list(outputs), _as_list(inputs)
    gradients = [None] * len(roots) if grad_outputs is None else _as_list(grad_outputs)
    if not sources:
        raise ArgumentError("grad needs at least one input")
    if materialize_grads and allow_unused is False:
        raise ArgumentValueError("materialize_grads=True fills in unused inputs, allow_unused=False forbids them")
    entered = None
    if is_grads_batched:
        gradients, entered = batched.enter(roots, gradients)
    unused_allowed = materialize_grads if allow_unused is None else allow_unused
    starts = _roots(roots, gradients)
    targets = []
    for i, tensor in enumerate(sources):
        edge = edge_of(tensor)
        if edge is None:
            raise GraphError(f"input {i}, a {tensor._meta!r} tensor, does not require grad")
        targets.append(edge[0])
    nodes = reachable(starts)
    found = set(nodes)
    hits = [target in found for target in targets]
    for i, hit in enumerate(hits):
        if not hit and not unused_allowed:
            raise GraphError(
                f"input {i}, a {sources[i]._meta!r} tensor, was not used for the outputs: pass allow_unused=True "
                "to get None for it, or materialize_grads=True to get zeros"
            )
    session = roots[0]._session
    passed = executed(nodes, targets)
    check(passed, session, targets)
    keep = create_graph if retain_graph is None else retain_graph
    levels = batched.result_levels(roots, sources, gradients)
    if takes_part(nodes):
        run = Run(roots, gradients, nodes, sources, accumulate=False, retain_graph=keep, create_graph=create_graph)
        made = run(unused_allowed, materialize_grads or is_grads_batched)
        for i, hit in enumerate(hits):
            if made[i] is None:
                continue
            made[i]._levels = levels[i]
            if entered is not None and hit:
                made[i] = unbatch(made[i], entered.level, 0, entered.size)
            if not hit and not materialize_grads:
                made[i] = None
        if OPEN:
            inherit(list(made), [*roots, *(g for g in gradients if g is not None)])
        if not keep:
            session.frame_ends_beyond()
        _anomalies(session)
        return tuple(made)
    filled = materialize_grads or is_grads_batched  # what is not there cannot be unbatched
    edges = [(node, tensor._slot) for node, tensor in zip(targets, sources, strict=True)]
    histories = play(roots, gradients, nodes, edges)[0] if create_graph else []
    values = [roots, sources, gradients, keep, create_graph, unused_allowed, filled]
    first = session.record(TABLE["grad"], values, len(sources))
    results = []
    for i, (tensor, hit) in enumerate(zip(sources, hits, strict=True)):
        made = Tensor._make(session, first + i, gradient_meta(tensor._known_meta(), tensor._dtype_of_grad()))
        if hit and histories:
            attach(made, histories[i])
        made._levels = levels[i]
        if entered is not None and hit:
            made = unbatch(made, entered.level, 0, entered.size)
        results.append(made if hit or materialize_grads else None)
    if OPEN:
        inherit(results, [*roots, *(g for g in gradients if g is not None)])
    if not keep:
        free(passed)
        session.frame_ends_beyond()
    _anomalies(session)
    return tuple(results)


from . import anomaly_mode, forward_ad, function, functional, grad_mode, graph  # noqa: E402  (functional uses grad)
from .function import Function  # noqa: E402
from .gradcheck import gradcheck, gradgradcheck  # noqa: E402  (the function, which hides its module as in PyTorch)
from .variable import Variable  # noqa: E402
