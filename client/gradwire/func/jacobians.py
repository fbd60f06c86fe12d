"""Jacobians and Hessians of functions: ``jacrev``, ``jacfwd`` and ``hessian``. They only record."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from .._core.composed.vmap import vmap
from .._core.context.pytree import tree_flatten, tree_map, tree_unflatten
from .._core.dispatch.dispatch import call
from .._core.tensor.tensor import Tensor
from ..autograd.forward_ad import check_numbers
from .forward import jvp
from .reverse import Argnums, Function, Given, chosen, replaced, split_aux, tensors_of, vjp

__all__ = ["hessian", "jacfwd", "jacrev"]


def _all_real(name: str, what: str, tensors: list[Any]) -> None:
    for i, tensor in enumerate(tensors):
        if isinstance(tensor, Tensor) and tensor.is_complex():
            raise ArgumentError(f"{name}: {what} must be real, tensor {i} is {tensor.dtype}: view it as real first")


def _basis(tensors: list[Any]) -> list[Any]:
    """The unit vectors of the tensors' joint space: per tensor, its part of each vector."""
    count = sum(t.numel() for t in tensors)
    parts, start = [], 0
    for tensor in tensors:
        size = tensor.numel()
        eye = call("eye", count, count, dtype=tensor.dtype, device=tensor._form.device)
        parts.append(call("narrow", eye, 1, start, size).reshape((count, *tensor.shape)))
        start += size
    return parts


def _one_by_one(row: Function, vectors: list[Any]) -> list[Any]:
    """Compute each row of the Jacobian separately, stacked as by ``vmap``."""
    count = vectors[0].shape[0]
    rows = [row(*[call("select", v, 0, i) for v in vectors]) for i in range(count)]
    return [call("stack", list(column)) for column in zip(*rows, strict=True)]


def jacrev(
    func: Callable[Given, Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[Given, Any]:  # fmt: skip
    """A function that computes the Jacobian of ``func``, a row at a time: reverse mode, for few outputs.

    Args:
        func: returns a real tensor or a structure of them; with ``has_aux`` a pair of these and of tensors to pass on.
        argnums: the positional arguments to differentiate for.
        chunk_size: compute at most this many rows at a time, for less memory. 1 computes them without ``vmap``, for
            functions whose derivative cannot be mapped.

    Returns:
        A function of the same arguments. In the structure of the output, each leaf is the structure of the argument
        (a tuple for a tuple of ``argnums``) of tensors of shape ``output.shape + argument.shape``; with ``has_aux`` it
        is paired with what was passed on.

    Raises:
        ArgumentValueError: for a ``chunk_size`` that is not positive.
        ArgumentError (when it is called): for complex arguments or outputs, outputs that are no tensors, ``argnums``
            that do not fit.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ArgumentValueError(f"jacrev: chunk_size is None or positive, not {chunk_size}")

    @functools.wraps(func, updated=())
    def jacobian(*args: Given.args, **kwargs: Given.kwargs) -> Any:
        point = chosen(args, argnums)
        leaves, spec = tree_flatten(point)
        _all_real("jacrev", "arguments", leaves)
        output, vjp_fn, *aux = vjp(lambda p: func(*replaced(args, argnums, p), **kwargs), point, has_aux=has_aux)
        outputs, out_spec = tree_flatten(output)
        _all_real("jacrev", "outputs", outputs)
        vectors = _basis(outputs)

        def row(*vector: Any) -> list[Any]:
            return tree_flatten(vjp_fn(tree_unflatten(vector, out_spec))[0])[0]

        columns = _one_by_one(row, vectors) if chunk_size == 1 else vmap(row, chunk_size=chunk_size)(*vectors)
        blocks, start = [], 0
        for out in outputs:
            size = out.numel()
            blocks.append(
                tree_unflatten(
                    [
                        call("narrow", column, 0, start, size).reshape((*out.shape, *leaf.shape))
                        for column, leaf in zip(columns, leaves, strict=True)
                    ],
                    spec,
                )
            )
            start += size
        found = tree_unflatten(blocks, out_spec)
        return (found, *aux) if has_aux else found

    return jacobian


def jacfwd(
    func: Callable[Given, Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[Given, Any]:
    """A function that computes the Jacobian of ``func``, a column at a time: forward mode, for few inputs.

    Args:
        func: returns a real tensor or a structure of them; with ``has_aux`` a pair of these and of tensors to pass on.
        argnums: the positional arguments to differentiate for.
        randomness: what random ops do, see :func:`vmap`.

    Returns:
        A function like that of :func:`jacrev`.

    Raises:
        ArgumentError (when it is called): for complex arguments or outputs, outputs that are no tensors, ``argnums``
            that do not fit.
        ArgumentValueError (when it is called): for arguments of integers.
    """

    @functools.wraps(func, updated=())
    def jacobian(*args: Given.args, **kwargs: Given.kwargs) -> Any:
        point = chosen(args, argnums)
        leaves, spec = tensors_of("jacfwd: the arguments", point)
        for leaf in leaves:
            check_numbers(leaf, leaf)
        _all_real("jacfwd", "arguments", leaves)
        structures = []

        def along(*direction: Any) -> Any:
            def function(p: Any) -> Any:
                output, aux = split_aux("jacfwd", func(*replaced(args, argnums, p), **kwargs), has_aux)
                _all_real("jacfwd", "outputs", tensors_of("jacfwd", output)[0])
                return (output, aux) if has_aux else output

            _, slope, *aux = jvp(function, (point,), (tree_unflatten(direction, spec),), has_aux=has_aux)
            slopes, out_spec = tree_flatten(slope)
            structures.append(out_spec)
            return slopes, aux

        columns, aux = vmap(along, randomness=randomness)(*_basis(leaves))
        blocks = []
        for column in columns:
            shape, start, parts = tuple(column.shape[1:]), 0, []
            for leaf in leaves:
                part = call("narrow", column, 0, start, leaf.numel())
                parts.append(part.movedim(0, -1).reshape((*shape, *leaf.shape)))
                start += leaf.numel()
            blocks.append(tree_unflatten(parts, spec))
        found = tree_unflatten(blocks, structures[0])
        return (found, tree_map(lambda t: t.select(0, 0), aux[0])) if has_aux else found

    return jacobian


def hessian(func: Callable[Given, Any], argnums: Argnums = 0) -> Callable[Given, Any]:
    """A function that computes the Hessian of ``func``: forward over reverse mode.

    Args:
        func: returns a real tensor or a structure of them.
        argnums: the positional arguments to differentiate for, twice.

    Returns:
        A function of the same arguments, see :func:`jacrev` of :func:`jacrev`.
    """
    return jacfwd(jacrev(func, argnums), argnums)
