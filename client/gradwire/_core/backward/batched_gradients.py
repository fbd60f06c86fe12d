"""Many gradients at once: ``grad(..., is_grads_batched=True)``.

The initial gradients are mapped over, the graph is not: the server runs each derivative once, for all of them.
"""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError, GraphError

from ..dispatch.mapped_tensors import batch
from ..graph.vmap_levels import Levels, VmapLevel, next_level
from ..tensor.tensor import Tensor


def enter(roots: list[Tensor], gradients: list[Tensor | None]) -> tuple[list[Any], VmapLevel]:
    """The initial gradients without their first dimension, which is mapped over, and the map.

    Raises:
        ArgumentError: when a gradient does not have the shape of its output after its first dimension.
        ArgumentValueError: when a gradient is missing, or their first dimensions differ in size.
    """
    for root, gradient in zip(roots, gradients, strict=False):
        if gradient is None:
            if root.numel() == 1:
                raise ArgumentValueError("is_grads_batched=True needs every gradient, with a dimension to map over")
        elif isinstance(gradient, Tensor) and tuple(gradient.shape[1:]) != tuple(root.shape):
            raise ArgumentError(
                f"is_grads_batched=True: a gradient of shape {list(gradient.shape)} for an output of "
                f"{list(root.shape)}; it must have these dimensions after the one that is mapped over"
            )
        elif isinstance(gradient, Tensor) and not gradient.ndim:
            raise ArgumentValueError("is_grads_batched=True: a 0-dim gradient has no dimension to map over")
    given = [g for g in gradients if isinstance(g, Tensor)]
    sizes = [int(g.shape[0]) for g in given]
    if len(set(sizes)) > 1:
        raise ArgumentValueError(f"is_grads_batched=True: the gradients have different first extents, {sizes}")
    entered = next_level(sizes[0] if sizes else 0)
    return [batch(g, 0, entered) if isinstance(g, Tensor) else g for g in gradients], entered


def result_levels(roots: list[Tensor], sources: list[Any], gradients: list[Tensor | None]) -> list[Levels]:
    """For each input, the levels at which its gradient is mapped.

    Raises:
        GraphError: for an input that is the same for all samples of a ``vmap`` that the outputs are mapped in.
    """
    of_roots = {level for t in roots for level in t._levels}
    seeds = {level for t in gradients if t is not None for level in t._levels} - of_roots
    found = []
    for i, tensor in enumerate(sources):
        if of_roots - set(tensor._levels):
            raise GraphError(
                f"input {i}, a {tensor._form!r} tensor, is the same for all samples of a vmap, and the outputs differ "
                "between them: the gradient would be a sum over samples. Use gradwire.func.grad inside vmap"
            )
        found.append(tuple(sorted({*tensor._levels, *seeds})))
    return found
