"""Contractions: any number of operands, two at a time, each pair as one matrix product."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.meta import Shape
from gradwire_protocol.ops.contraction import Labels, Step, effective, label_sizes, parse, plan, tensordot_labels

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics import matmul as products
from ..runtime.arrays import Array, Namespace


def _contract(xp: Namespace, operands: list[Array], labels: tuple[Labels, ...], output: Labels) -> Array:
    sizes = label_sizes(labels, [x.shape for x in operands])
    reduced = [_reduce(xp, x, own, sizes) for x, own in zip(operands, labels, strict=True)]
    arrays = [array for array, _ in reduced]
    left = [own for _, own in reduced]
    for step in plan(left, output, sizes):
        i, j = step.pair
        arrays[i] = _product(xp, arrays[i], left[i], arrays[j], left[j], step, sizes)
        left[i] = step.result
        del arrays[j], left[j]
    return _arrange(xp, arrays[0], left[0], output, sizes)


def _reduce(xp: Namespace, x: Array, labels: Labels, sizes: dict[int, int]) -> tuple[Array | tuple[int, ...], Labels]:
    """An operand with diagonals taken and broadcast dimensions dropped."""
    for label in set(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = xp.diagonal(x, axis1=i, axis2=j)
            labels = (*(own for k, own in enumerate(labels) if k not in (i, j)), label)
    kept = effective(labels, x.shape, sizes)
    return x.reshape([n for own, n in zip(labels, x.shape, strict=True) if own in kept]), kept


def _product(
    xp: Namespace, a: Any, a_labels: Labels, b: Any, b_labels: Labels, step: Step, sizes: dict[int, int]
) -> Array:
    a, a_labels = _sum_out(xp, a, a_labels, (*step.batch, *step.left, *step.summed))
    b, b_labels = _sum_out(xp, b, b_labels, (*step.batch, *step.summed, *step.right))

    def extents(labels: Labels) -> list[int]:
        return [sizes[label] for label in labels]

    def count(labels: Labels) -> int:
        total = 1
        for label in labels:
            total *= sizes[label]
        return total

    left = a.transpose([a_labels.index(label) for label in (*step.batch, *step.left, *step.summed)])
    right = b.transpose([b_labels.index(label) for label in (*step.batch, *step.summed, *step.right)])
    batch = extents(step.batch)
    if not step.summed:
        rows = left.reshape([*batch, *extents(step.left), *([1] * len(step.right))])
        return xp.multiply(rows, right.reshape([*batch, *([1] * len(step.left)), *extents(step.right)]))
    inner = count(step.summed)
    rows = left.reshape(count(step.batch), count(step.left), inner)
    cols = right.reshape(count(step.batch), inner, count(step.right))
    return products.matmul(xp, rows, cols).reshape([sizes[label] for label in step.result])


def _sum_out(xp: Namespace, x: Array, labels: Labels, needed: Labels) -> tuple[Array | tuple[int, ...], Labels]:
    """Sum over the labels that nobody else has."""
    alone = tuple(i for i, label in enumerate(labels) if label not in needed)
    if not alone:
        return x, labels
    return xp.sum(x, axis=alone, dtype=x.dtype), tuple(label for label in labels if label in needed)


def _arrange(xp: Namespace, x: Any, labels: Labels, output: Labels, sizes: dict[int, int]) -> Array:
    """The final product in the order of the output, its repeated labels on a diagonal."""
    x, labels = _sum_out(xp, x, labels, output)
    distinct = tuple(dict.fromkeys(output))
    x = x.transpose([labels.index(label) for label in distinct if label in labels])
    x = x.reshape([sizes[label] for label in distinct])
    if len(distinct) == len(output):
        return x
    full = xp.zeros([sizes[label] for label in output], x.dtype)
    places = []
    for at, label in enumerate(output):
        axis = distinct.index(label)
        shape = [1] * len(distinct)
        shape[axis] = sizes[label]
        places.append(xp.arange(sizes[output[at]]).reshape(shape))
    full[tuple(places)] = x
    return full


@kernel("contract")
def contract(xp: Namespace, operands: list[Array], labels: tuple[Labels, ...], output: Labels) -> Array:
    return _contract(xp, operands, labels, output)


@kernel("einsum")
def einsum(xp: Namespace, equation: str, operands: list[Array]) -> Array:
    labels, output = parse(equation, [x.ndim for x in operands])
    return _contract(xp, operands, labels, output)


@kernel("tensordot")
def tensordot(xp: Namespace, a: Any, b: Any, dims: int | tuple[tuple[int, ...], ...]) -> Array:
    labels, output = tensordot_labels(a, b, dims)
    return _contract(xp, [a, b], labels, output)


def gradient(
    g: Tensor, i: int, operands: list[Tensor], shapes: list[Shape], labels: tuple[Labels, ...], output: Labels
) -> Tensor:
    """The gradient for operand ``i``: again a contraction, of ``g`` with all other operands."""
    sizes = label_sizes(labels, shapes)
    others = [k for k in range(len(operands)) if k != i]
    if len(set(output)) != len(output):
        # The output put values on a diagonal: take them back.
        g = F.contract([g], (output,), tuple(dict.fromkeys(output)))
        output = tuple(dict.fromkeys(output))
    own = labels[i]
    varying = effective(own, shapes[i], sizes)
    found = {label for k in others for label in effective(labels[k], shapes[k], sizes)} | set(output)
    present = tuple(label for label in varying if label in found)
    parts = [_like(g, conj(operands[k])) for k in others]
    result = F.contract([g, *parts], (output, *(labels[k] for k in others)), present)
    distinct = tuple(dict.fromkeys(own))
    full = [sizes[label] if label in varying else 1 for label in distinct]
    result = F.reshape(result, tuple(n if label in present else 1 for label, n in zip(distinct, full, strict=True)))
    result = F.expand(result, tuple(full))
    if len(distinct) != len(own):
        result = F.contract([result], (distinct,), own)
    return result


def _like(g: Tensor, operand: Tensor) -> Tensor:
    """An operand that was promoted, in the dtype of the gradient: contractions that sum do not promote."""
    return operand if operand.dtype is g.dtype else F.to(operand, dtype=g.dtype)


def _gradients(s: Saved, g: Tensor, labels: tuple[Labels, ...], output: Labels) -> list[Tensor | None]:
    operands = s.operands
    shapes = [x.shape for x in operands]
    return [
        gradient(g, i, operands, shapes, labels, output) if needed else None
        for i, needed in enumerate(s.needs_each("operands"))
    ]


derivative("contract", operands=("operands", lambda s, g: _gradients(s, g, s.labels, s.output)))
derivative(
    "einsum", operands=("operands", lambda s, g: _gradients(s, g, *parse(s.equation, [x.ndim for x in s.operands])))
)


def _tensordot(s: Saved, g: Tensor, i: int) -> Tensor:
    metas = [s.meta("self"), s.meta("other")]
    labels, output = tensordot_labels(metas[0], metas[1], s.dims)
    operands: list[Any] = [None, s.other] if i == 0 else [s.self, None]
    return gradient(g, i, operands, [m.shape for m in metas], labels, output)


derivative(
    "tensordot", self=("other", lambda s, g: _tensordot(s, g, 0)), other=("self", lambda s, g: _tensordot(s, g, 1))
)
