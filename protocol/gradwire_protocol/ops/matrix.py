"""Products of matrices and vectors. Nothing here promotes dtypes, except where a docstring says so."""

from __future__ import annotations

from math import prod

from ..autocast import CPU_FLOAT32, GPU_LOWER, GPU_WIDEST, GPU_WIDEST_CPU_LOWER, LOWER
from ..costs import Cost, numel, product
from ..dtypes import BOOLEAN, INTEGRAL, DType, int64
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import UNKNOWN, Inference, Meta, Shape, meta, new
from ..promotion import ScalarKind
from ..shapes import broadcast, canonical_dim, common_device, elementwise, view_stride
from ..table import Factor, Out, Tensor, gradients, op


def fits(a: int, b: int) -> bool:
    """Whether two extents agree, as far as they are known."""
    return a == b or UNKNOWN in (a, b)


def need_same_dtype(name: str, *operands: Meta | None) -> DType:
    """The one dtype of all operands.

    Raises:
        DTypeError: listing the dtypes when they differ.
    """
    given = [o.dtype for o in operands if o is not None]
    if any(dtype is not given[0] for dtype in given):
        listed = ", ".join(dtype.name for dtype in given)
        raise DTypeError(f"{name} does not promote: its operands are {listed}; cast them to one dtype")
    return given[0]


def need_numbers(name: str, dtype: DType) -> None:
    """Refuse bools, which have no product that sums."""
    if dtype.category == BOOLEAN:
        raise Unsupported(f"{name} is not defined on bools")


def need_ndim(name: str, ndim: int, **operands: Meta) -> None:
    """Check that operands have exactly ``ndim`` dimensions.

    Raises:
        ShapeError: naming the operand and its shape.
    """
    for label, operand in operands.items():
        if operand.ndim != ndim:
            raise ShapeError(f"{name}: {label} must have {ndim} dimensions; its shape is {list(operand.shape)}")


def need_product(name: str, a: Meta, b: Meta) -> None:
    """Check that the last extent of ``a`` is the one that ``b`` contracts with it.

    Raises:
        ShapeError: naming both shapes.
    """
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if not fits(a.shape[-1], inner):
        raise ShapeError(
            f"{name}: shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied: {a.shape[-1]} and "
            f"{inner} must be equal"
        )


def need_expandable(name: str, self: Meta, shape: Shape) -> None:
    """Check that the addend broadcasts to the product's shape without enlarging it.

    Raises:
        ShapeError: naming both shapes.
    """
    lead = len(shape) - self.ndim
    if lead < 0 or any(n != 1 and not fits(n, shape[lead + i]) for i, n in enumerate(self.shape)):
        raise ShapeError(f"{name}: shape {list(self.shape)} does not expand to {list(shape)}, the product's")


@op(grad_fn="MmBackward0", multilinear=True, cost=product("self"), out=Out.EXACT, autocast=LOWER)
@gradients(
    self=(
        "grad * conj(other) if self.ndim == 1 and other.ndim == 1 else unsqueeze(grad) * conj(other)"
        " if other.ndim == 1 else squeeze.SqueezeBackward1(unsqueeze(grad) @ adjoint(other))"
        " if self.ndim == 1 else grad @ adjoint(other)"
    ),
    other=(
        "grad * conj(self) if self.ndim == 1 and other.ndim == 1 else unsqueeze(conj(self)) * unsqueeze(grad)"
        " if self.ndim == 1 else matmul.MvBackward0(adjoint((r := reshape(self) if self.ndim > 2"
        " else self)), reshape(grad)) if other.ndim == 1 else matmul(adjoint(r), reshape(grad)"
        " if self.ndim > 2 else grad) if other.ndim == 2 else matmul.CloneBackward0(transpose(self), grad)"
        " if self.ndim == 2 and not is_complex(self) else adjoint(self) @ grad"
    ),
    broadcasts=True,
)
def matmul(self: Tensor, other: Tensor) -> Inference:
    """The matrix product, for vectors, matrices and batches of matrices.

    Two vectors give their dot product. A vector on the left counts as a row, one on the right as a column, and the
    result lacks that dimension. Leading dimensions are batches and broadcast. Both operands must have one dtype
    other than bool; shapes that do not fit raise RuntimeError.
    """
    a, b = self.shape, other.shape
    if not a or not b:
        raise ShapeError(f"matmul needs operands of at least 1 dimension, got shapes {list(a)} and {list(b)}")
    need_product("matmul", self, other)
    dtype = need_same_dtype("matmul", self, other)
    need_numbers("matmul", dtype)
    shape = (*broadcast(a[:-2], b[:-2]), *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ()))
    result = new(shape, dtype, common_device(self, other), compute=dtype)
    return result.named(_matmul_node(self, other))


def _matmul_node(self: Meta, other: Meta) -> str:
    n, m = self.ndim, other.ndim
    if n <= 2 and m <= 2:
        return {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (1, 2): "SqueezeBackward4"}.get((n, m), "MmBackward0")
    # PyTorch multiplies one matrix by a batch as (B^T A^T)^T, and clones the result into row-major order.
    if m >= 3 and (n == 2 or (n == 3 and m == 3 and self.shape[0] == 1 != other.shape[0])):
        return "CloneBackward0"
    return "UnsafeViewBackward0"


@op(grad_fn="MmBackward0", multilinear=True, cost=product("self"), out=Out.EXACT, autocast=LOWER)
@gradients(self="mm(grad, adjoint(mat2))", mat2="mm(adjoint(self), grad)")
def mm(self: Tensor, mat2: Tensor) -> Inference:
    """The product of two matrices, without broadcasting."""
    need_ndim("mm", 2, self=self, mat2=mat2)
    need_product("mm", self, mat2)
    dtype = need_same_dtype("mm", self, mat2)
    need_numbers("mm", dtype)
    return new((self.shape[0], mat2.shape[1]), dtype, common_device(self, mat2), compute=dtype)


@op(grad_fn="BmmBackward0", multilinear=True, cost=product("self"), out=Out.EXACT, autocast=LOWER)
@gradients(self="bmm(grad, adjoint(mat2))", mat2="bmm(adjoint(self), grad)")
def bmm(self: Tensor, mat2: Tensor) -> Inference:
    """The products of two batches of matrices, one by one: ``(b, n, k)`` times ``(b, k, m)`` is ``(b, n, m)``."""
    shape = _batched("bmm", self, mat2)
    dtype = need_same_dtype("bmm", self, mat2)
    need_numbers("bmm", dtype)
    return new(shape, dtype, common_device(self, mat2), compute=dtype)


def _batched(name: str, a: Meta, b: Meta) -> Shape:
    need_ndim(name, 3, left=a, right=b)
    if not fits(a.shape[0], b.shape[0]):
        raise ShapeError(f"{name}: batches of {a.shape[0]} and {b.shape[0]} matrices cannot be paired")
    need_product(name, a, b)
    return (a.shape[0], a.shape[1], b.shape[2])


@op(grad_fn="MvBackward0", multilinear=True, cost=product("self"), out=Out.EXACT, autocast=GPU_LOWER)
@gradients(self="unsqueeze(grad) * unsqueeze(conj(vec))", vec="mv(adjoint(self), grad)")
def mv(self: Tensor, vec: Tensor) -> Inference:
    """The product of a matrix and a vector."""
    need_ndim("mv", 2, self=self)
    need_ndim("mv", 1, vec=vec)
    need_product("mv", self, vec)
    dtype = need_same_dtype("mv", self, vec)
    need_numbers("mv", dtype)
    return new((self.shape[0],), dtype, common_device(self, vec), compute=dtype)


@op(grad_fn="DotBackward0", multilinear=True, cost=product("self"), out=Out.EXACT, autocast=GPU_WIDEST)
@gradients(self="grad * conj(tensor)", tensor="grad * conj(self)")
def dot(self: Tensor, tensor: Tensor) -> Inference:
    """The sum of products of two vectors of equal length, as a 0-dim tensor. Nothing is conjugated."""
    return _dot("dot", self, tensor)


@op(grad_fn="VdotBackward0", multilinear=True, cost=product("self"), out=Out.EXACT, autocast=GPU_WIDEST)
@gradients(self="conj(grad) * other", other="grad * self")
def vdot(self: Tensor, other: Tensor) -> Inference:
    """The dot product of two vectors with ``self`` conjugated."""
    return _dot("vdot", self, other)


def _dot(name: str, a: Meta, b: Meta) -> Inference:
    need_ndim(name, 1, left=a, right=b)
    dtype = need_same_dtype(name, a, b)
    need_numbers(name, dtype)
    need_product(name, a, b)
    return new((), dtype, common_device(a, b), compute=dtype)


@op(grad_fn="ViewBackward0", multilinear=True, cost=product("self"), out=Out.EXACT, autocast=GPU_WIDEST_CPU_LOWER)
@gradients(
    self="grad * conj(other) if other.ndim == 0 or self.ndim == 0 else tensordot(grad, conj(other))",
    other="grad * conj(self) if other.ndim == 0 or self.ndim == 0 else tensordot(permute(grad), conj(self))",
    broadcasts=True,
)
def inner(self: Tensor, other: Tensor) -> Inference:
    """Contract the last dimensions of both operands. With a 0-dim operand it is an ordinary, promoting product."""
    if not self.shape or not other.shape:
        return elementwise(self, other).named("MulBackward0")
    if not fits(self.shape[-1], other.shape[-1]):
        raise ShapeError(
            f"inner: the last extents of {list(self.shape)} and {list(other.shape)} differ, "
            f"{self.shape[-1]} and {other.shape[-1]}"
        )
    dtype = need_same_dtype("inner", self, other)
    need_numbers("inner", dtype)
    return new((*self.shape[:-1], *other.shape[:-1]), dtype, common_device(self, other), compute=dtype)


@op(grad_fn="MulBackward0", multilinear=True, out=Out.APART)
@gradients(
    self="matmul.MvBackward0(grad, conj(to(vec2) if is_cast(vec2) else vec2))",
    vec2="matmul.MvBackward0(transpose(grad), conj(to(self) if is_cast(self) else self))",
)
def outer(self: Tensor, vec2: Tensor) -> Inference:
    """All products of an element of one vector with one of the other, as a matrix. Promotes dtypes."""
    need_ndim("outer", 1, self=self, vec2=vec2)
    column = meta((self.shape[0], 1), self.dtype, self.device)
    return elementwise(column, vec2)


# Products added to something: beta * self + alpha * product. With beta 0, self does not matter, not even its NaN.


@op(
    grad_fn="AddmmBackward0", inplace=True, copied=("mat1", "mat2"), keyword_only=("beta", "alpha"),
    cost=product("mat1"), total=True, out=Out.EXACT, autocast=LOWER,
)  # fmt: skip
@gradients(
    self="times_beta(grad)",
    mat1="times_alpha(matmul(grad, adjoint(mat2)))",
    mat2="times_alpha(matmul(adjoint(mat1), grad))",
    broadcasts=("self",),
)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Factor = 1, alpha: Factor = 1) -> Inference:
    """``beta * self + alpha * (mat1 @ mat2)`` for matrices; ``self`` is expanded to the product's shape."""
    need_ndim("addmm", 2, mat1=mat1, mat2=mat2)
    need_product("addmm", mat1, mat2)
    return _added("addmm", self, mat1, mat2, (mat1.shape[0], mat2.shape[1]))


@op(
    grad_fn="AddmvBackward0", inplace=True, copied=("mat", "vec"), keyword_only=("beta", "alpha"), cost=product("mat"),
    inplace_function=True, out=Out.EXACT, autocast=GPU_LOWER,
)  # fmt: skip
@gradients(
    self="times_beta(grad)",
    mat="times_alpha(unsqueeze(grad) * unsqueeze(conj(vec)))",
    vec="times_alpha(mv(adjoint(mat), grad))",
    broadcasts=("self",),
)
def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Factor = 1, alpha: Factor = 1) -> Inference:
    """``beta * self + alpha * (mat @ vec)`` for a matrix and a vector."""
    need_ndim("addmv", 2, mat=mat)
    need_ndim("addmv", 1, vec=vec)
    need_product("addmv", mat, vec)
    return _added("addmv", self, mat, vec, (mat.shape[0],))


@op(
    grad_fn="AddbmmBackward0", inplace=True, copied=("batch1", "batch2"), keyword_only=("beta", "alpha"),
    cost=Cost(lambda c: c.made * numel(c.batch1) // max(c.batch1.shape[-2], 1), product=True),
    out=Out.EXACT | Out.SILENT, autocast=LOWER,
)  # fmt: skip
@gradients(
    self="times_beta(grad)",
    batch1="times_alpha(matmul.CloneBackward0(grad, adjoint(batch2)))",
    batch2="times_alpha(matmul.UnsafeViewBackward0(adjoint(batch1), grad))",
    broadcasts=("self",),
)
def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Factor = 1, alpha: Factor = 1) -> Inference:
    """``beta * self + alpha * (batch1 @ batch2).sum(0)``: the products of a batch are summed into one matrix."""
    shape = _batched("addbmm", batch1, batch2)
    return _added("addbmm", self, batch1, batch2, shape[1:])


@op(
    grad_fn="BaddbmmBackward0", inplace=True, copied=("batch1", "batch2"), keyword_only=("beta", "alpha"),
    cost=product("batch1"), out=Out.EXACT, autocast=LOWER,
)  # fmt: skip
@gradients(
    self="times_beta(grad)",
    batch1="times_alpha(matmul.UnsafeViewBackward0(grad, adjoint(batch2)))",
    batch2="times_alpha(matmul.UnsafeViewBackward0(adjoint(batch1), grad))",
    broadcasts=("self",),
)
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Factor = 1, alpha: Factor = 1) -> Inference:
    """``beta * self + alpha * (batch1 @ batch2)``, matrix by matrix of a batch."""
    shape = _batched("baddbmm", batch1, batch2)
    return _added("baddbmm", self, batch1, batch2, shape)


def _added(name: str, self: Meta, a: Meta, b: Meta, shape: Shape) -> Inference:
    dtype = need_same_dtype(name, self, a, b)
    need_numbers(name, dtype)
    need_expandable(name, self, shape)
    return new(shape, dtype, common_device(self, a, b), compute=dtype)


@op(grad_fn="AddrBackward0", inplace=True, keyword_only=("beta", "alpha"), autocast=GPU_LOWER)
@gradients(
    self="times_beta(grad)",
    vec1="times_alpha(matmul.MvBackward0(grad, conj(vec2)))",
    vec2="times_alpha(matmul.MvBackward0(transpose(grad), conj(vec1)))",
    broadcasts=("self",),
)
def addr(self: Tensor, vec1: Tensor, vec2: Tensor, beta: Factor = 1, alpha: Factor = 1) -> Inference:
    """``beta * self + alpha * outer(vec1, vec2)``. Promotes dtypes; on bools it is ``self or (vec1 and vec2)``."""
    need_ndim("addr", 1, vec1=vec1, vec2=vec2)
    need_expandable("addr", self, (vec1.shape[0], vec2.shape[0]))
    inferred = elementwise(self, meta((vec1.shape[0], 1), vec1.dtype, vec1.device), vec2)
    dtype = inferred.outs[0].dtype
    if dtype.category <= INTEGRAL and ScalarKind.FLOAT in (beta, alpha):
        raise ArgumentError(f"addr: beta and alpha are integers for a result of {dtype.name}")
    if dtype.category > BOOLEAN and ScalarKind.BOOL in (beta, alpha):
        raise ArgumentError(f"addr: beta and alpha are bools only for a result of bools, not of {dtype.name}")
    return inferred


@op(grad_fn="UnsafeViewBackward0", multilinear=True, out=Out.APART)
@gradients(
    self="reshape(contract(reshape(grad), conj((o := to(reshape(other)) if is_cast(other) else reshape(other)))))",
    other="reshape(contract(reshape(grad), conj((s := to(reshape(self)) if is_cast(self) else reshape(self)))))",
)
def kron(self: Tensor, other: Tensor) -> Inference:
    """The Kronecker product: every element of ``self`` times all of ``other``, block by block. Promotes dtypes."""
    ndim = max(self.ndim, other.ndim)
    a, b = _interleaved(self, ndim, 0), _interleaved(other, ndim, 1)
    product = elementwise(a, b)
    out = product.outs[0]
    shape = tuple(out.shape[2 * i] * out.shape[2 * i + 1] for i in range(ndim))
    stride = view_stride(out, shape)
    return new(shape, out.dtype, out.device, compute=product.compute, stride=stride)


def _interleaved(self: Meta, ndim: int, at: int) -> Meta:
    """The operand with an extent of 1 after (``at`` 0) or before (``at`` 1) each of its dimensions."""
    lead = ndim - self.ndim
    shape, stride = [1] * (2 * ndim), [1] * (2 * ndim)
    for i in range(self.ndim):
        shape[2 * (lead + i) + at] = self.shape[i]
        stride[2 * (lead + i) + at] = self.stride[i]
    return meta(tuple(shape), self.dtype, self.device, tuple(stride) if self.ndim else None)


@op(grad_fn="TraceBackward0", linear=True, autocast=CPU_FLOAT32)
@gradients("grad * c")
def trace(self: Tensor) -> Inference:
    """The sum of a matrix's diagonal. Integers sum to int64."""
    need_ndim("trace", 2, self=self)
    need_numbers("trace", self.dtype)
    dtype = int64 if self.dtype.category == INTEGRAL else self.dtype
    return new((), dtype, self.device, compute=dtype)


@op(grad_fn="LinalgCrossBackward0", out=Out.EXACT | Out.APART, autocast=GPU_WIDEST)
@gradients(self="cross(conj(expand(other)), grad)", other="cross(grad, conj(expand(self)))", broadcasts=("other",))
def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Inference:
    """The cross product of 3-vectors along ``dim`` (by default the first dimension of extent 3), with broadcasting."""
    if self.ndim != other.ndim:
        raise ShapeError(f"cross: shapes {list(self.shape)} and {list(other.shape)} differ in length")
    if dim is None:
        dim = next((i for i, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise ArgumentError(f"cross: no dimension of {list(self.shape)} has extent 3")
    dim = canonical_dim(dim, self.ndim)
    if self.ndim == 0 or self.shape[dim] != 3 or other.shape[dim] != 3:
        raise ShapeError(
            f"cross: dimension {dim} must have extent 3 in both operands; their shapes are {list(self.shape)} "
            f"and {list(other.shape)}"
        )
    dtype = need_same_dtype("cross", self, other)
    need_numbers("cross", dtype)
    return new(broadcast(self.shape, other.shape), dtype, common_device(self, other), compute=dtype)


@op(
    grad_fn="AddmmBackward0", exposed=("nn.functional",), cost=product("self"), total=True, out=Out.EXACT,
    autocast=LOWER,
)  # fmt: skip
@gradients(
    self=(
        "unsqueeze(grad) * conj(weight) if weight.ndim == 1 else matmul.SqueezeBackward4(grad, conj(weight))"
        " if self.ndim == 1 else grad @ conj(weight)"
    ),
    weight=(
        "matmul.SqueezeBackward4(reshape(grad), conj((r := self if self.ndim == 2 else reshape(self))))"
        " if weight.ndim == 1 else matmul(transpose(grad if self.ndim == 2 else reshape(grad)), conj(r))"
    ),
    bias="grad",
    broadcasts=("bias",),
)
def linear(self: Tensor, weight: Tensor, bias: Tensor | None = None) -> Inference:
    """``self @ weight.T + bias``: ``(..., in)`` and a weight of ``(out, in)`` give ``(..., out)``.

    A weight of one dimension, ``(in,)``, gives ``(...)``. All operands have one dtype; the bias is expanded.
    """
    if not self.shape or not weight.shape:
        raise ShapeError(
            f"linear needs operands of at least 1 dimension, got shapes {list(self.shape)} and {list(weight.shape)}"
        )
    if weight.ndim > 2:
        raise ShapeError(f"linear: the weight must have 1 or 2 dimensions; its shape is {list(weight.shape)}")
    if not fits(self.shape[-1], weight.shape[-1]):
        raise ShapeError(
            f"linear: input of shape {list(self.shape)} has {self.shape[-1]} features, "
            f"the weight of shape {list(weight.shape)} takes {weight.shape[-1]}"
        )
    if bias is not None and weight.ndim == 1 and bias.ndim:
        raise ShapeError(f"linear: a weight of 1 dimension takes a 0-dim bias; its shape is {list(bias.shape)}")
    dtype = need_same_dtype("linear", self, weight, bias)
    need_numbers("linear", dtype)
    shape = (*self.shape[:-1], *weight.shape[:-1])
    if bias is not None:
        need_expandable("linear", bias, shape)
    node = _linear_node(self, weight, bias is not None)
    return new(shape, dtype, common_device(self, weight, bias), compute=dtype, grad_fn=node)


def _linear_node(self: Meta, weight: Meta, bias: bool) -> str:
    if weight.ndim == 1:
        if bias:
            return "AddBackward0"
        return {1: "DotBackward0", 2: "MvBackward0"}.get(self.ndim, "UnsafeViewBackward0")
    if self.ndim == 2:
        return "AddmmBackward0" if bias else "MmBackward0"
    if bias:
        return "ViewBackward0" if self.contiguous else "AddBackward0"
    return "SqueezeBackward4" if self.ndim == 1 else "UnsafeViewBackward0"


@op(
    grad_fn="ViewBackward0", exposed=("nn.functional",),
    cost=Cost(lambda c: c.made * prod(c.weight.shape[1:]), product=True), autocast=GPU_WIDEST,
)  # fmt: skip
@gradients(
    input1=(
        "reshape(contract((g := grad if input1.ndim == 2 else reshape(grad)), (y := input2"
        " if input1.ndim == 2 else reshape(input2)), weight))"
    ),
    input2="reshape(contract(g, (x := input1 if input1.ndim == 2 else reshape(input1)), weight))",
    weight="contract(g, x, y)",
    bias="grad",
    broadcasts=("bias",),
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Inference:
    """``sum_ij input1[..., i] * weight[o, i, j] * input2[..., j] + bias[o]`` for inputs of equal leading shape."""
    need_ndim("bilinear", 3, weight=weight)
    a, b, w = input1.shape, input2.shape, weight.shape
    if len(a) != len(b) or not a or not all(fits(n, m) for n, m in zip(a[:-1], b[:-1], strict=True)):
        raise ShapeError(f"bilinear: leading dimensions of {list(a)} and {list(b)} differ")
    if not fits(a[-1], w[1]) or not fits(b[-1], w[2]):
        raise ShapeError(
            f"bilinear: inputs of {a[-1]} and {b[-1]} features do not match a weight of shape {list(w)}, which takes "
            f"{w[1]} and {w[2]}"
        )
    if bias is not None and bias.shape != w[:1]:
        raise ShapeError(f"bilinear: the bias must have shape {[w[0]]}, it has {list(bias.shape)}")
    dtype = need_same_dtype("bilinear", input1, input2, weight, bias)
    need_numbers("bilinear", dtype)
    node = "AddBackward0" if bias is not None else "ViewBackward0"
    return new((*a[:-1], w[0]), dtype, common_device(input1, input2, weight, bias), compute=dtype, grad_fn=node)
