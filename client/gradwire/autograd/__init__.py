"""``gradwire.autograd``: backward and grad over proxies. Neither waits for the server."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, GraphError
from gradwire_protocol.ops.control import check_gradient
from gradwire_protocol.table import TABLE

from ..mirror import Node, edge_of, reaches, receivers
from ..modes import detect_anomaly, enable_grad, inference_mode, no_grad, set_detect_anomaly, set_grad_enabled
from ..tensor import NO_GRAD, PRESENT, Tensor

__all__ = [
    "backward", "detect_anomaly", "enable_grad", "functional", "grad", "gradcheck", "gradgradcheck", "inference_mode",
    "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip

Tensors = Tensor | Sequence[Tensor]


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
    roots = _as_list(tensors)
    gradients = [None] * len(roots) if grad_tensors is None else _as_list(grad_tensors)
    starts = _roots(roots, gradients)
    if inputs is not None:
        inputs = _as_list(inputs)
        if not inputs:
            raise ArgumentError("inputs is empty: leave it out to reach all leaves")
        for i, tensor in enumerate(inputs):
            if not tensor.requires_grad:
                raise GraphError(f"input {i} does not require grad")
    if create_graph:
        warnings.warn(
            "backward(create_graph=True) lets a leaf's .grad refer to a graph that refers to the leaf: use "
            "autograd.grad, or set .grad to None afterwards",
            UserWarning,
            stacklevel=2,
        )
    session = roots[0]._session
    keep = create_graph if retain_graph is None else retain_graph
    session.record(TABLE["backward"], [roots, gradients, inputs, keep, create_graph], 0)
    if inputs is None:
        reached = receivers(starts)
    else:
        edges = [edge_of(t) for t in inputs]
        hits = reaches(starts, [e[0] for e in edges if e is not None])
        reached = [t for t, hit in zip(inputs, hits, strict=True) if hit]
    for tensor in reached:
        if create_graph or tensor._grad_state == NO_GRAD:
            tensor._grad = None
        tensor._grad_state = PRESENT
        if tensor._grad is not None:
            tensor._grad._bump()
    session.flush()


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

    Returns one tensor per input; None for an input that was not used, where ``allow_unused``.

    Raises:
        GraphError: when an input is unused or does not require grad, or there is nothing to differentiate.
        ArgumentValueError: for ``materialize_grads=True`` with ``allow_unused=False``.
    """
    roots, sources = _as_list(outputs), _as_list(inputs)
    gradients = [None] * len(roots) if grad_outputs is None else _as_list(grad_outputs)
    if not sources:
        raise ArgumentError("grad needs at least one input")
    if materialize_grads and allow_unused is False:
        raise ArgumentValueError("materialize_grads=True fills in unused inputs, allow_unused=False forbids them")
    if is_grads_batched:
        raise NotImplementedError("is_grads_batched=True is not supported by gradwire yet: loop over the rows")
    unused_allowed = materialize_grads if allow_unused is None else allow_unused
    starts = _roots(roots, gradients)
    targets = []
    for i, tensor in enumerate(sources):
        edge = edge_of(tensor)
        if edge is None:
            raise GraphError(f"input {i}, a {tensor._meta!r} tensor, does not require grad")
        targets.append(edge[0])
    hits = reaches(starts, targets)
    for i, hit in enumerate(hits):
        if not hit and not unused_allowed:
            raise GraphError(
                f"input {i}, a {sources[i]._meta!r} tensor, was not used for the outputs: pass allow_unused=True "
                "to get None for it, or materialize_grads=True to get zeros"
            )
    session = roots[0]._session
    keep = create_graph if retain_graph is None else retain_graph
    values = [roots, sources, gradients, keep, create_graph, unused_allowed, materialize_grads]
    first = session.record(TABLE["grad"], values, len(sources))
    results = []
    for i, (tensor, hit) in enumerate(zip(sources, hits, strict=True)):
        node = _history(tensor, roots, gradients, starts) if create_graph and hit else None
        made = Tensor._make(session, first + i, tensor._known_meta(), node)
        results.append(made if hit or materialize_grads else None)
    session.flush()
    return tuple(results)


# The node that the derivative of a scalar function ends with, where it is not a product.
_LAST_STEP = {"PowBackward0": "MulBackward0", "SumBackward0": "ExpandBackward0"}


def _history(tensor: Tensor, roots: list[Any], gradients: list[Any], starts: list[Node]) -> Node:
    """The mirror's node of a gradient that was itself recorded.

    Its own derivative reaches whatever the graph that it was computed from reaches.
    """
    edges = [edge_of(r) for r in roots] + [edge_of(g) for g in gradients if isinstance(g, Tensor)]
    name = "MulBackward0"
    for node in starts:
        if node.label in _LAST_STEP:
            name = _LAST_STEP[node.label]
    return Node(name, tuple(edges))


from . import functional  # noqa: E402  (it uses grad)
from .gradcheck import gradcheck, gradgradcheck  # noqa: E402  (the function, which hides its module as in PyTorch)
