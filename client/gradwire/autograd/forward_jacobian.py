"""The Jacobian by forward mode: one run of the function, mapped over the directions of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentError

from .._core.composed.vmap import vmap
from .._core.dispatch import dual_tensors
from .._core.dispatch.dispatch import call
from .._core.graph import forward_levels
from .._core.surface.creation_like import zeros_like

Tensors = tuple[Any, ...]


def forward_jacobian(
    func: Callable[..., Any], inputs: Tensors, several: bool, create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """What :func:`gradwire.autograd.functional.jacobian` returns for ``strategy="forward-mode"``.

    Raises:
        ArgumentError: for ``strict``.
        NotImplementedError: for ``create_graph``, and without ``vectorize``.
    """
    if create_graph:
        raise NotImplementedError("strategy='forward-mode' excludes create_graph=True: use gradwire.func.jacfwd")
    if strict:
        raise ArgumentError("strategy='forward-mode' does not go with strict=True: use 'reverse-mode'")
    if not vectorize:
        raise NotImplementedError("strategy='forward-mode' is for vectorize=True only")
    nested: list[bool] = []

    def along(*directions: Any) -> Tensors:
        with forward_levels.ForwardLevel() as level:
            found = func(
                *[dual_tensors.make_dual(t.detach(), d, level) for t, d in zip(inputs, directions, strict=True)]
            )
            nested.append(isinstance(found, tuple))
            outputs = found if isinstance(found, tuple) else (found,)
            slopes = [dual_tensors.tangent_of(o, level) for o in outputs]
        return tuple((zeros_like(o) if s is None else s).detach() for o, s in zip(outputs, slopes, strict=True))

    count = sum(t.numel() for t in inputs)
    basis, start = [], 0
    for tensor in inputs:
        eye = call("eye", count, count, dtype=tensor.dtype, device=tensor._form.device)
        basis.append(call("narrow", eye, 1, start, tensor.numel()).reshape((count, *tensor.shape)))
        start += tensor.numel()
    rows = []
    for slopes in vmap(along)(*basis):
        shape, start, row = tuple(slopes.shape[1:]), 0, []
        for tensor in inputs:
            part = call("narrow", slopes, 0, start, tensor.numel())
            row.append(part.movedim(0, -1).reshape((*shape, *tensor.shape)))
            start += tensor.numel()
        rows.append(tuple(row) if several else row[0])
    return tuple(rows) if nested[0] else rows[0]
