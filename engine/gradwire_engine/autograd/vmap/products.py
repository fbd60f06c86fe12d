"""Products of matrices and contractions on mapped tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.ops.contraction import parse, tensordot_labels

from ..functional import F, conj
from ..tensor import Tensor
from .level import VmapLevel, composed, rule, sample_by_sample
from .views import shifted


@rule("matmul", "mm", "bmm", "mv", "dot")
def matmul(x: VmapLevel, first: Tensor, second: Tensor) -> Tensor:
    if x.has(first) and not x.has(second) and second.ndim <= 2:
        return F.matmul(x.inside(first), second)
    if first.ndim == 1:
        first = F.unsqueeze(first, 0)
    if second.ndim == 1:
        second = F.unsqueeze(second, 1)
    rank = max(first.ndim, second.ndim)
    return F.matmul(x.aligned(first, rank), x.aligned(second, rank))


@composed("vdot")
def vdot(first: Tensor, second: Tensor) -> Tensor:
    return F.dot(conj(first), second)


@composed("outer")
def outer(first: Tensor, second: Tensor) -> Tensor:
    return F.unsqueeze(first, 1) * second


def _plus(tensor: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """``beta * tensor + alpha * product``; a beta of 0 ignores the tensor, NaN included."""
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return (tensor if beta == 1 else tensor * beta) + product


@composed("addmm", "addmv", "baddbmm")
def add_product(tensor: Tensor, first: Tensor, second: Tensor, beta: float, alpha: float) -> Tensor:
    return _plus(tensor, F.matmul(first, second), beta, alpha)


@composed("addbmm")
def addbmm(tensor: Tensor, first: Tensor, second: Tensor, beta: float, alpha: float) -> Tensor:
    return _plus(tensor, F.sum(F.matmul(first, second), 0), beta, alpha)


@composed("addr")
def addr(tensor: Tensor, first: Tensor, second: Tensor, beta: float, alpha: float) -> Tensor:
    return _plus(tensor, F.outer(first, second), beta, alpha)


@composed("trace")
def trace(tensor: Tensor) -> Tensor:
    return F.sum(F.diagonal(tensor))


@rule("linear")
def linear(x: VmapLevel, tensor: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not x.has(weight) and not x.has(bias):
        return x.call(x.inside(tensor), weight, bias)
    product = F.matmul(tensor, weight if weight.ndim < 2 else F.transpose(weight, 0, 1))
    return product if bias is None else product + bias


@composed("bilinear")
def bilinear(first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = F.einsum("...n,anm,...m->...a", [first, weight, second])
    return product if bias is None else product + bias


@rule("cross")
def cross(x: VmapLevel, first: Tensor, second: Tensor, dim: int | None) -> Tensor:
    shape = x.inferred.outs[0].shape
    at = shape.index(3) if dim is None else dim
    return x.call(*[x.front(F.expand(t, shape)) for t in (first, second)], shifted(at, len(shape)))


@rule("contract")
def contract(x: VmapLevel, operands: Sequence[Tensor], labels: Any, output: tuple[int, ...]) -> Tensor:
    samples = 1 + max((label for own in (*labels, output) for label in own), default=-1)
    own = tuple(
        (samples, *names) if x.has(operand) else tuple(names) for operand, names in zip(operands, labels, strict=True)
    )
    return F.contract([x.inside(o) for o in operands], own, (samples, *output))


@composed("einsum")
def einsum(equation: str, operands: Sequence[Tensor]) -> Tensor:
    labels, output = parse(equation, [o.ndim for o in operands])
    return F.contract(list(operands), labels, output)


@composed("tensordot")
def tensordot(first: Tensor, second: Tensor, dims: Any) -> Tensor:
    labels, output = tensordot_labels(first.meta, second.meta, dims)
    return F.contract([first, second], labels, output)


@composed("inner")
def inner(first: Tensor, second: Tensor) -> Tensor:
    if first.ndim == 0 or second.ndim == 0:
        return first * second
    return F.tensordot(first, second, ((first.ndim - 1,), (second.ndim - 1,)))


# Solving


@rule("linalg_solve")
def solve(x: VmapLevel, matrices: Tensor, other: Tensor, *options: bool) -> Any:
    if other.ndim == 1 or other.ndim == matrices.ndim - 1:  # vectors
        return sample_by_sample(x, [matrices, other, *options])
    rank = max(matrices.ndim, other.ndim)
    return x.call(x.aligned(matrices, rank), x.aligned(other, rank), *options)


@rule("linalg_solve_triangular", "triangular_solve", "cholesky_solve")
def solve_with_triangles(x: VmapLevel, first: Tensor, second: Tensor, *options: bool) -> Any:
    rank = max(first.ndim, second.ndim)
    return x.call(x.aligned(first, rank), x.aligned(second, rank), *options)


@rule("linalg_qr")
def qr(x: VmapLevel, tensor: Tensor, mode: str) -> Any:
    if mode == "r":  # its empty Q has no batch
        return sample_by_sample(x, [tensor, mode])
    return x.call(x.inside(tensor), mode)


@rule("attention")
def attention(
    x: VmapLevel, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> Tensor:
    rank = max(query.ndim, key.ndim, value.ndim)
    operands = [x.aligned(t, rank) for t in (query, key, value)]
    if mask is not None:
        mask = x.aligned(mask, rank)
    if not any(x.has(t) for t in (query, key, value)):
        operands = [x.front(t) for t in (query, key, value)]
    return x.call(*operands, mask, is_causal, scale)
