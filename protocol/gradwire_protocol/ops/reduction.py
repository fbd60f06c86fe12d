"""Reductions: operations that combine the elements of dimensions into one."""

from __future__ import annotations

from typing import Final

from ..autocast import FLOAT32, GPU_FLOAT32
from ..dtypes import FLOATING, INTEGRAL, DType, bool_, int64, uint8
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, new, several
from ..promotion import Promote, promote
from ..shapes import canonical_dim, common_device, like, reduction
from ..table import Ints, Out, Real, Tensor, gradients, op

Dims = Ints | int | None


# What several rules check or choose


def summed_dtype(self: Meta, dtype: DType | None) -> tuple[DType, DType | None]:
    """(the result's dtype, the dtype computed in) where integers accumulate in int64."""
    if dtype is not None:
        return dtype, dtype
    return (int64, None) if self.dtype.category <= INTEGRAL else (self.dtype, self.dtype)


def need_float(name: str, dtype: DType) -> None:
    if dtype.category < FLOATING:
        raise DTypeError(f"{name} needs a floating point or complex tensor, got {dtype.name}; pass dtype= or convert")


def refuse_complex(name: str, self: Meta, kind: type[Exception] = Unsupported) -> None:
    if self.dtype.is_complex:
        raise kind(f"{name} is not defined for {self.dtype.name}, which has no order")


# Sums and moments


def _of_variance(grad: str) -> str:
    """The gradient of a variance, from the one that came in for it."""
    scaled, distance = f"restored({grad})", "(d := self - mean_dim(self))"
    return f"{scaled} * ({distance} * c) if is_empty(self) or self.ndim == 0 and correction == 1 else {scaled} * c * d"


_OF_DEVIATION: Final = _of_variance("masked_fill(grad / (result * c), c)")


@op(grad_fn="SumBackward0", keyword_only=("dtype",), linear=True, along=True, out=Out.COMPUTED, autocast=GPU_FLOAT32)
@gradients("spread(grad)")
def sum(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Sum over ``dim`` (an int, several, or all). Bools and integers are summed in int64; ``dtype`` converts first."""
    result, compute = summed_dtype(self, dtype)
    name = None if dim is None and not keepdim else "SumBackward1"
    return reduction(self, dim, keepdim, dtype=result, compute=compute, grad_fn=name)


@op(grad_fn="NansumBackward0", keyword_only=("dtype",), along=True)
@gradients("spread(grad) * c", saves="self")
def nansum(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Like :func:`sum`, with NaN counted as zero. Not defined for complex numbers."""
    refuse_complex("nansum", self, DTypeError)
    result, compute = summed_dtype(self, dtype)
    return reduction(self, dim, keepdim, dtype=result, compute=compute)


@op(grad_fn="MeanBackward0", keyword_only=("dtype",), linear=True, along=True)
@gradients("spread(grad / c)")
def mean(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Arithmetic mean over ``dim``. Needs floating point or complex values, or a ``dtype`` that is; NaN if empty."""
    result = dtype or self.dtype
    need_float("mean", result)
    name = None if dim is None and not keepdim else "MeanBackward1"
    return reduction(self, dim, keepdim, dtype=result, compute=result, grad_fn=name)


@op(grad_fn="DivBackward0", keyword_only=("dtype",), along=True)
@gradients("restored(grad) / c * c", saves="self")
def nanmean(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Mean of the elements that are not NaN; NaN where there is none."""
    result = dtype or self.dtype
    need_float("nanmean", result)
    refuse_complex("nanmean", self, DTypeError)
    return reduction(self, dim, keepdim, dtype=result, compute=result)


def _spread(name: str, self: Meta, dim: Dims, keepdim: bool) -> Inference:
    need_float(name, self.dtype)
    return reduction(self, dim, keepdim, dtype=self.dtype.to_real(), compute=self.dtype)


@op(grad_fn="VarBackward0", along=True)
@gradients(_of_variance("grad"))
def var(self: Tensor, dim: Dims = None, correction: Real = 1, keepdim: bool = False) -> Inference:
    """Variance over ``dim``: squared distances from the mean, divided by (their number - ``correction``).

    Real for complex values. NaN where nothing is left to divide by.
    """
    return _spread("var", self, dim, keepdim)


@op(grad_fn="StdBackward0", along=True)
@gradients(_OF_DEVIATION)
def std(self: Tensor, dim: Dims = None, correction: Real = 1, keepdim: bool = False) -> Inference:
    """Standard deviation over ``dim``, the square root of :func:`var`."""
    return _spread("std", self, dim, keepdim)


@op(grad_fn="VarMeanBackward0", results=2, along=True)
@gradients(f"({_of_variance('grad')}) + spread(grad1 / c)")
def var_mean(self: Tensor, dim: Dims = None, correction: Real = 1, keepdim: bool = False) -> Inference:
    """(variance, mean) over ``dim``; see :func:`var`."""
    spread = _spread("var_mean", self, dim, keepdim)
    return several(spread, reduction(self, dim, keepdim))


@op(grad_fn="StdMeanBackward0", results=2, along=True)
@gradients(f"({_OF_DEVIATION}) + spread(grad1 / c)")
def std_mean(self: Tensor, dim: Dims = None, correction: Real = 1, keepdim: bool = False) -> Inference:
    """(standard deviation, mean) over ``dim``; see :func:`std`."""
    spread = _spread("std_mean", self, dim, keepdim)
    return several(spread, reduction(self, dim, keepdim))


@op(grad_fn="ProdBackward0", keyword_only=("dtype",), along=True, out=Out.COMPUTED, autocast=FLOAT32)
@gradients(
    "grad if self.ndim == 0 else restored(grad) * conj(shift(cumprod(self))"
    " * flip(shift(cumprod(flip(self))))) if dim is not None else grad * conj(self) if is_empty(self)"
    " else grad * conj(reshape(shift(cumprod((s := reshape(self)))) * flip(shift(cumprod(flip(s))))))"
)
def prod(self: Tensor, dim: int | None = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Product of all elements, or along one dimension. Bools and integers are multiplied in int64."""
    result, compute = summed_dtype(self, dtype)
    name = None if dim is None else "ProdBackward1"
    return reduction(self, dim, keepdim, dtype=result, compute=compute, grad_fn=name)


@op(grad_fn="LinalgVectorNormBackward0", along=True, out=Out.EXACT, autocast=GPU_FLOAT32)
@gradients(
    "c if p == 0 else sgn(self) * (g := restored(grad)) if p == 1"
    " else self * masked_fill(g / (r := masked_fill((n := restored(result)), c)), c) if p == 2"
    " else (s := sgn(self)) * masked_fill(g / c, c) if p == inf or p == -inf"
    " else s * masked_fill((q := abs(self) ** c), c) * g * n ** c if p < 1 else (s if p < 2"
    " else self) * q * masked_fill(g / r ** c, c)"
)
def norm(self: Tensor, p: Real = 2, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Vector norm of order ``p`` over ``dim`` (all elements by default): ``sum(abs(x) ** p) ** (1 / p)``.

    ``p`` may be infinite (largest or smallest magnitude) or 0 (how many elements are not 0). The result is real.
    """
    if self.dtype.category < FLOATING:
        raise DTypeError(f"norm needs a floating point or complex tensor, got {self.dtype.name}")
    if dtype is not None and (dtype.category < FLOATING or dtype.is_complex != self.dtype.is_complex):
        raise DTypeError(f"norm: dtype {dtype.name} does not fit a {self.dtype.name} tensor: both real or both complex")
    compute = dtype or self.dtype
    found = reduction(self, dim, keepdim, dtype=compute.to_real(), compute=compute)
    return found.checking(_check_empty_norm) if self.numel == 0 and found.outs[0].numel else found


def _check_empty_norm(self: object, p: float, *rest: object) -> None:
    if p < 0 or p == float("inf"):
        raise ArgumentError(f"norm: the {p} norm of no elements is not defined")


@op(along=True, out=Out.EXACT)
def count_nonzero(self: Tensor, dim: Dims = None) -> Inference:
    """How many elements differ from zero (NaN does), in all or over ``dim``; int64."""
    return reduction(self, dim, False, dtype=int64)


# Truths


def _truth(self: Meta, dim: Dims, keepdim: bool) -> Inference:
    dtype = uint8 if self.dtype is uint8 else bool_
    if dim == ():  # unlike all other reductions, no dimension rather than all of them
        return like(self, dtype=dtype)
    return reduction(self, dim, keepdim, dtype=dtype)


@op(along=True, out=Out.TRUTHS)
def all(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Whether all elements differ from zero; bool (uint8 for uint8). True where there is none."""
    return _truth(self, dim, keepdim)


@op(along=True, out=Out.TRUTHS)
def any(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Whether some element differs from zero; bool (uint8 for uint8). False where there is none."""
    return _truth(self, dim, keepdim)


# Sums of exponentials


@op(grad_fn="LogsumexpBackward0", along=True, autocast=GPU_FLOAT32)
@gradients("restored(grad) * conj(exp(self - restored(result)))")
def logsumexp(self: Tensor, dim: Dims, keepdim: bool = False) -> Inference:
    """Logarithm of the sum of exponentials over ``dim``, without overflow. Integers become the default float."""
    _, result = promote(Promote.INT_TO_FLOAT, [(self.dtype, self.ndim)])
    return reduction(self, dim, keepdim, dtype=result, compute=result)


def _softmax(name: str, self: Meta, dim: int, dtype: DType | None) -> Inference:
    result = dtype or self.dtype
    if result.category != FLOATING:
        raise Unsupported(f"{name} is not defined for {result.name}; pass dtype= or convert to floating point")
    canonical_dim(dim, self.ndim)
    return new(self.shape, result, self.device, compute=result)


@op(
    grad_fn="SoftmaxBackward0", exposed=("function", "method", "nn.functional"), along=True, out=Out.EXACT,
    autocast=GPU_FLOAT32,
)  # fmt: skip
@gradients("softmax_backward(grad, result)")
def softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Exponentials along ``dim``, divided by their sum. NaN where all are -inf. ``dtype`` converts first."""
    return _softmax("softmax", self, dim, dtype)


@op(
    grad_fn="LogSoftmaxBackward0", exposed=("function", "method", "nn.functional"), along=True, out=Out.EXACT,
    autocast=GPU_FLOAT32,
)  # fmt: skip
@gradients("log_softmax_backward(grad, result)")
def log_softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Logarithm of :func:`softmax`, computed without its rounding."""
    return _softmax("log_softmax", self, dim, dtype)


# Primitives that derivatives of this family are written in. Clients offer none of them by name.


def _through_softmax(name: str, grad: Meta, output: Meta, dim: int) -> Inference:
    for operand in (grad, output):
        if operand.dtype.category != FLOATING:
            raise Unsupported(f"{name} is not defined for {operand.dtype.name} tensors")
    canonical_dim(dim, output.ndim)
    if grad.shape != output.shape and grad.known and output.known:
        raise ShapeError(
            f"{name}: a gradient of shape {list(grad.shape)} does not fit a result of {list(output.shape)}"
        )
    device = common_device(grad, output)
    return new(output.shape, output.dtype, device, compute=output.dtype)


@op(grad_fn="SoftmaxBackwardDataBackward0", exposed=(), along=True)
@gradients(
    grad="softmax_backward(grad0, output)",
    output="grad0 * (grad - sum_dim(grad * output)) - grad * sum_dim(grad0 * output)",
)
def softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Inference:
    """Gradient of softmax: ``output * (grad - sum(grad * output))``."""
    return _through_softmax("softmax_backward", grad, output, dim)


@op(grad_fn="LogSoftmaxBackwardDataBackward0", exposed=(), along=True)
@gradients(grad="grad0 - sum_dim((s := grad0 * exp(output)))", output="-(s * sum_dim(grad))")
def log_softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Inference:
    """Gradient of log_softmax: ``grad - exp(output) * sum(grad)``."""
    return _through_softmax("log_softmax_backward", grad, output, dim)
