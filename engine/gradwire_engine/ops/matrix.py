"""Products of matrices and vectors."""

from __future__ import annotations

from math import prod

from ..autograd.functional import F, conj
from ..autograd.registry import derivative, kernel
from ..autograd.tape import Saved
from ..autograd.tensor import Tensor
from ..numerics import matmul as products
from ..runtime.arrays import Array, Namespace


def transposed(x: Tensor) -> Tensor:
    """Each matrix of a batch transposed."""
    return F.transpose(x, -2, -1)


def adjoint(x: Tensor) -> Tensor:
    """Each matrix of a batch transposed and conjugated."""
    return conj(transposed(x))


def outer_product(x: Tensor, y: Tensor) -> Tensor:
    """The matrix of all products of two vectors' elements."""
    return F.unsqueeze(x, 1) * F.unsqueeze(y, 0)


def rows_of(x: Array) -> Array:
    """An array with all leading dimensions in one."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


@kernel("matmul")
def matmul(xp: Namespace, a: Array, b: Array) -> Array:
    if a.ndim > 2 and b.ndim == 2:
        # One large product instead of a small one per batch entry.
        return products.matmul(xp, rows_of(a), b).reshape((*a.shape[:-1], b.shape[1]))
    return products.matmul(xp, a, b)


@kernel("mm", "bmm", "mv", "dot")
def product(xp: Namespace, a: Array, b: Array) -> Array:
    return products.matmul(xp, a, b)


@kernel("vdot")
def vdot(xp: Namespace, a: Array, b: Array) -> Array:
    return xp.matmul(xp.conj(a), b)


def _matmul_self(s: Saved, g: Tensor) -> Tensor:
    other, ndim = s.other, s.meta("self").ndim
    if ndim == 1 and other.ndim == 1:
        return g * conj(other)
    if other.ndim == 1:
        return F.unsqueeze(g, -1) * conj(other)
    if ndim == 1:
        return F.squeeze(F.unsqueeze(g, -2) @ adjoint(other), -2)
    return g @ adjoint(other)


def _matmul_other(s: Saved, g: Tensor) -> Tensor:
    left, ndim = s.self, s.meta("other").ndim
    if ndim == 1 and left.ndim == 1:
        return g * conj(left)
    if left.ndim == 1:
        return F.unsqueeze(conj(left), -1) * F.unsqueeze(g, -2)
    if ndim == 1:
        return adjoint(as_rows(left)) @ F.reshape(g, (-1,))
    if ndim == 2 and left.ndim > 2:
        # A weight: sum over all batches within one product.
        return adjoint(as_rows(left)) @ as_rows(g)
    return adjoint(left) @ g


derivative("matmul", self=("other", _matmul_self), other=("self", _matmul_other))
derivative(
    "mm", self=("mat2", lambda s, g: F.mm(g, adjoint(s.mat2))), mat2=("self", lambda s, g: F.mm(adjoint(s.self), g))
)
derivative(
    "bmm", self=("mat2", lambda s, g: F.bmm(g, adjoint(s.mat2))), mat2=("self", lambda s, g: F.bmm(adjoint(s.self), g))
)
derivative(
    "mv", self=("vec", lambda s, g: outer_product(g, conj(s.vec))), vec=("self", lambda s, g: F.mv(adjoint(s.self), g))
)
derivative("dot", self=("tensor", lambda s, g: g * conj(s.tensor)), tensor=("self", lambda s, g: g * conj(s.self)))
derivative("vdot", self=("other", lambda s, g: conj(g) * s.other), other=("self", lambda s, g: g * s.self))


@kernel("inner")
def inner(xp: Namespace, a: Array, b: Array) -> Array:
    if a.ndim == 0 or b.ndim == 0:
        return xp.multiply(a, b)
    rows = products.matmul(xp, rows_of(a), rows_of(b).T)
    return rows.reshape((*a.shape[:-1], *b.shape[:-1]))


def _inner_self(other: Tensor, g: Tensor, ndim: int) -> Tensor:
    """The gradient for the operand with ``ndim`` dimensions, whose own dimensions lead in ``g``."""
    if ndim == 0 or other.ndim == 0:
        return g * conj(other)
    return F.tensordot(g, conj(other), other.ndim - 1)


def _inner_other(s: Saved, g: Tensor) -> Tensor:
    lead, trail = s.meta("self").ndim - 1, s.meta("other").ndim - 1
    if lead >= 0 and trail >= 0:
        g = F.permute(g, (*range(lead, lead + trail), *range(lead)))
    return _inner_self(s.self, g, trail + 1)


derivative(
    "inner", self=("other", lambda s, g: _inner_self(s.other, g, s.meta("self").ndim)), other=("self", _inner_other)
)


@kernel("outer")
def outer(xp: Namespace, a: Array, b: Array) -> Array:
    return xp.multiply(a[:, None], b)


derivative(
    "outer",
    self=("vec2", lambda s, g: g @ conj(_cast(s.vec2, g))),
    vec2=("self", lambda s, g: transposed(g) @ conj(_cast(s.self, g))),
)


def _cast(x: Tensor, g: Tensor) -> Tensor:
    """An operand in the dtype that it was promoted to, which is the gradient's: products do not promote."""
    return x if x.dtype is g.dtype else F.to(x, dtype=g.dtype)


def as_rows(x: Tensor) -> Tensor:
    """All leading dimensions in one."""
    last = x.shape[-1]
    return x if x.ndim == 2 else F.reshape(x, (prod(x.shape[:-1]), last))


def _blend(xp: Namespace, self: Array, product: Array, beta: float, alpha: float) -> Array:
    """``beta * self + alpha * product``, into the product's memory, which the caller gives up."""
    if product.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        product *= alpha
    if beta == 1:
        product += self
    elif beta != 0:
        product += xp.multiply(self, beta)
    return product


@kernel("addmm", "baddbmm")
def addmm(xp: Namespace, self: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return _blend(xp, self, products.matmul(xp, a, b), beta, alpha)


@kernel("addmv")
def addmv(xp: Namespace, self: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return _blend(xp, self, xp.matmul(a, b), beta, alpha)


@kernel("addbmm")
def addbmm(xp: Namespace, self: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    batch, n, k = a.shape
    # Summing over the batch is one more contracted dimension.
    rows = a.transpose(1, 0, 2).reshape(n, batch * k)
    return _blend(xp, self, products.matmul(xp, rows, b.reshape(batch * k, b.shape[2])), beta, alpha)


@kernel("addr")
def addr(xp: Namespace, self: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    if a.dtype.kind == "b":
        product = xp.logical_and(xp.multiply(a[:, None], b), bool(alpha))
        return xp.logical_or(product, self) if beta else product
    # In this order: where alpha is infinite, it shows.
    if alpha != 1:
        a = xp.multiply(a, int(alpha) if a.dtype.kind in "iu" else alpha)
    return _blend(xp, self, xp.multiply(a[:, None], b), beta, 1)


def scaled(g: Tensor, factor: float) -> Tensor:
    """``g`` times the conjugate of a Python number."""
    if isinstance(factor, complex):
        factor = factor.conjugate()
    return g if factor == 1 else g * factor


for _name, _a, _b in (("addmm", "mat1", "mat2"), ("baddbmm", "batch1", "batch2")):
    derivative(
        _name,
        self=lambda s, g: scaled(g, s.beta),
        **{
            _a: (_b, lambda s, g, b=_b: scaled(g @ adjoint(getattr(s, b)), s.alpha)),
            _b: (_a, lambda s, g, a=_a: scaled(adjoint(getattr(s, a)) @ g, s.alpha)),
        },
    )
derivative(
    "addmv",
    self=lambda s, g: scaled(g, s.beta),
    mat=("vec", lambda s, g: scaled(outer_product(g, conj(s.vec)), s.alpha)),
    vec=("mat", lambda s, g: scaled(F.mv(adjoint(s.mat), g), s.alpha)),
)
derivative(
    "addbmm",
    self=lambda s, g: scaled(g, s.beta),
    batch1=("batch2", lambda s, g: scaled(g @ adjoint(s.batch2), s.alpha)),
    batch2=("batch1", lambda s, g: scaled(adjoint(s.batch1) @ g, s.alpha)),
)
derivative(
    "addr",
    self=lambda s, g: scaled(g, s.beta),
    vec1=("vec2", lambda s, g: scaled(g @ conj(_cast(s.vec2, g)), s.alpha)),
    vec2=("vec1", lambda s, g: scaled(transposed(g) @ conj(_cast(s.vec1, g)), s.alpha)),
)


@kernel("kron")
def kron(xp: Namespace, a: Array, b: Array) -> Array:
    ndim = max(a.ndim, b.ndim)
    outer_shape = (1,) * (ndim - a.ndim) + a.shape
    inner_shape = (1,) * (ndim - b.ndim) + b.shape
    rows = a.reshape([n for extent in outer_shape for n in (extent, 1)])
    cols = b.reshape([n for extent in inner_shape for n in (1, extent)])
    return xp.multiply(rows, cols).reshape([n * m for n, m in zip(outer_shape, inner_shape, strict=True)])


def _kron(s: Saved, g: Tensor, wanted: str, given: Tensor) -> Tensor:
    shapes = {name: s.meta(name).shape for name in ("self", "other")}
    ndim = max(len(shape) for shape in shapes.values())
    a, b = ((1,) * (ndim - len(shapes[name])) + shapes[name] for name in ("self", "other"))
    blocks = F.reshape(g, tuple(n for pair in zip(a, b, strict=True) for n in pair))
    at = 1 if wanted == "self" else 0
    labels = tuple(range(2 * ndim))
    own, theirs = labels[1 - at :: 2], labels[at::2]
    full = F.reshape(given, b if at else a)
    return F.reshape(F.contract([blocks, conj(_cast(full, blocks))], (labels, theirs), own), shapes[wanted])


derivative(
    "kron",
    self=("other", lambda s, g: _kron(s, g, "self", s.other)),
    other=("self", lambda s, g: _kron(s, g, "other", s.self)),
)


@kernel("trace")
def trace(xp: Namespace, x: Array) -> Array:
    return xp.sum(xp.diagonal(x), dtype=x.dtype)


def _trace(s: Saved, g: Tensor) -> Tensor:
    n, m = s.meta("self").shape
    eye = g.engine.call("eye", n, m, dtype=g.dtype, device=g.device)
    return g * eye


derivative("trace", self=_trace)


@kernel("cross")
def cross(xp: Namespace, a: Array, b: Array, dim: int | None) -> Array:
    dim = _cross_dim(a.shape, dim)
    a1, a2, a3 = (xp.take(a, i, axis=dim) for i in range(3))
    b1, b2, b3 = (xp.take(b, i, axis=dim) for i in range(3))
    return xp.stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1], axis=dim)


def _cross_dim(shape: tuple[int, ...], dim: int | None) -> int:
    return shape.index(3) if dim is None else dim % len(shape)


def _cross(s: Saved, x: Tensor, y: Tensor) -> Tensor:
    return F.cross(x, y, _cross_dim(s.meta("self").shape, s.dim))


derivative(
    "cross",
    self=("other", lambda s, g: _cross(s, conj(F.expand(s.other, g.shape)), g)),
    other=("self", lambda s, g: _cross(s, g, conj(F.expand(s.self, g.shape)))),
)


@kernel("linear")
def linear(xp: Namespace, x: Array, weight: Array, bias: Array | None) -> Array:
    out = products.matmul(xp, x if x.ndim == 2 else rows_of(x), weight.T)
    shape = (*x.shape[:-1], *weight.shape[:-1])
    if out.shape != shape:
        out = out.reshape(shape)
    if bias is not None:
        out += bias
    return out


def _linear_self(s: Saved, g: Tensor) -> Tensor:
    weight = s.weight
    if weight.ndim == 1:
        return F.unsqueeze(g, -1) * conj(weight)
    return g @ conj(weight)


def _linear_weight(s: Saved, g: Tensor) -> Tensor:
    rows = as_rows(s.self)
    if s.meta("weight").ndim == 1:
        return F.reshape(g, (-1,)) @ conj(rows)
    return transposed(as_rows(g)) @ conj(rows)


derivative("linear", self=("weight", _linear_self), weight=("self", _linear_weight), bias=lambda s, g: g)


@kernel("bilinear")
def bilinear(xp: Namespace, x: Array, y: Array, weight: Array, bias: Array | None) -> Array:
    outs, n, m = weight.shape
    rows = rows_of(x)
    # (rows @ weight) holds, for each row, a vector per output that is still to be contracted with y.
    half = products.matmul(xp, rows, weight.transpose(1, 0, 2).reshape(n, outs * m)).reshape(rows.shape[0], outs, m)
    out = xp.matmul(half, rows_of(y)[..., None]).reshape((*x.shape[:-1], outs))
    if bias is not None:
        out += bias
    return out


def _bilinear(s: Saved, g: Tensor, output: tuple[int, ...]) -> Tensor:
    """Contract the gradient with the two other operands. Labels: 0 rows, 1 outputs, 2 and 3 the features."""
    operands: list[Tensor] = [as_rows(g)]
    labels: list[tuple[int, ...]] = [(0, 1)]
    for name, own in (("input1", (0, 2)), ("input2", (0, 3)), ("weight", (1, 2, 3))):
        if own != output:
            tensor = conj(getattr(s, name))
            operands.append(tensor if name == "weight" else as_rows(tensor))
            labels.append(own)
    return F.contract(operands, tuple(labels), output)


derivative(
    "bilinear",
    input1=("input2 weight", lambda s, g: F.reshape(_bilinear(s, g, (0, 2)), s.meta("input1").shape)),
    input2=("input1 weight", lambda s, g: F.reshape(_bilinear(s, g, (0, 3)), s.meta("input2").shape)),
    weight=("input1 input2", lambda s, g: _bilinear(s, g, (1, 2, 3))),
    bias=lambda s, g: g,
)
