"""Reductions and scans: operations that combine the elements along dimensions."""

from __future__ import annotations

from ..dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL, DType, bool_, int64, uint8
from ..errors import ArgumentError, ArgumentValueError, DTypeError, IndexOutOfRange, Unsupported
from ..meta import Inference, Meta, new, several
from ..promotion import Promote, promote
from ..shapes import canonical_dim, canonical_dims, like, reduction
from ..table import Ints, Scalar, Tensor, op

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
        raise kind(f"{name} needs an order of the values, which {self.dtype.name} has not")


def need_elements(name: str, self: Meta, dims: Dims) -> None:
    """A reduction without a neutral element needs at least one element to choose from."""
    if not self.shape or 0 not in self.shape:
        return
    if dims is None or dims == ():
        raise ArgumentError(f"{name} of the empty tensor {self!r}: there is no element to choose")
    for dim in canonical_dims(dims, self.ndim):
        if self.shape[dim] == 0:
            raise IndexOutOfRange(f"{name}: dimension {dim} of {self!r} is empty, there is no element to choose")


def extremal(self: Meta, dim: Dims, keepdim: bool) -> Inference:
    """Rule of reductions that choose or compare; the half types are compared as float32."""
    return reduction(self, dim, keepdim, compute=self.dtype)


def chosen(self: Meta, dim: int, keepdim: bool) -> Inference:
    """Rule of (values, indices) along one dimension."""
    return several(extremal(self, dim, keepdim), reduction(self, dim, keepdim, dtype=int64))


def scanned(self: Meta, dim: int, dtype: DType | None = None, compute: DType | None = None) -> Inference:
    """Rule of running reductions: the operand's shape, row-major."""
    canonical_dim(dim, self.ndim)
    return new(self.shape, dtype or self.dtype, self.device, compute=compute)


# Sums and moments


@op(grad_fn="SumBackward0")
def sum(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Sum over ``dim`` (an int, several, or all). Bools and integers are summed in int64; ``dtype`` converts first."""
    result, compute = summed_dtype(self, dtype)
    name = None if dim is None and not keepdim else "SumBackward1"
    return reduction(self, dim, keepdim, dtype=result, compute=compute, grad_fn=name)


@op(grad_fn="NansumBackward0")
def nansum(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Like :func:`sum`, with NaN counted as zero. Not defined for complex numbers."""
    refuse_complex("nansum", self, DTypeError)
    result, compute = summed_dtype(self, dtype)
    return reduction(self, dim, keepdim, dtype=result, compute=compute)


@op(grad_fn="MeanBackward0")
def mean(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Arithmetic mean over ``dim``. Needs floating point or complex values, or a ``dtype`` that is; NaN if empty."""
    result = dtype or self.dtype
    need_float("mean", result)
    name = None if dim is None and not keepdim else "MeanBackward1"
    return reduction(self, dim, keepdim, dtype=result, compute=result, grad_fn=name)


@op(grad_fn="DivBackward0")
def nanmean(self: Tensor, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Mean of the elements that are not NaN; NaN where there is none."""
    result = dtype or self.dtype
    need_float("nanmean", result)
    refuse_complex("nanmean", self, DTypeError)
    return reduction(self, dim, keepdim, dtype=result, compute=result)


def _spread(name: str, self: Meta, dim: Dims, keepdim: bool) -> Inference:
    need_float(name, self.dtype)
    return reduction(self, dim, keepdim, dtype=self.dtype.to_real(), compute=self.dtype)


@op(grad_fn="VarBackward0")
def var(self: Tensor, dim: Dims = None, correction: Scalar = 1, keepdim: bool = False) -> Inference:
    """Variance over ``dim``: squared distances from the mean, divided by (their number - ``correction``).

    Real for complex values. NaN where nothing is left to divide by.
    """
    return _spread("var", self, dim, keepdim)


@op(grad_fn="StdBackward0")
def std(self: Tensor, dim: Dims = None, correction: Scalar = 1, keepdim: bool = False) -> Inference:
    """Standard deviation over ``dim``, the square root of :func:`var`."""
    return _spread("std", self, dim, keepdim)


@op(grad_fn="VarMeanBackward0", results=2)
def var_mean(self: Tensor, dim: Dims = None, correction: Scalar = 1, keepdim: bool = False) -> Inference:
    """(variance, mean) over ``dim``; see :func:`var`."""
    spread = _spread("var_mean", self, dim, keepdim)
    return several(spread, reduction(self, dim, keepdim))


@op(grad_fn="StdMeanBackward0", results=2)
def std_mean(self: Tensor, dim: Dims = None, correction: Scalar = 1, keepdim: bool = False) -> Inference:
    """(standard deviation, mean) over ``dim``; see :func:`std`."""
    spread = _spread("std_mean", self, dim, keepdim)
    return several(spread, reduction(self, dim, keepdim))


@op(grad_fn="ProdBackward0")
def prod(self: Tensor, dim: int | None = None, keepdim: bool = False, dtype: DType | None = None) -> Inference:
    """Product of all elements, or along one dimension. Bools and integers are multiplied in int64."""
    result, compute = summed_dtype(self, dtype)
    name = None if dim is None else "ProdBackward1"
    return reduction(self, dim, keepdim, dtype=result, compute=compute, grad_fn=name)


@op(grad_fn="LinalgVectorNormBackward0")
def norm(
    self: Tensor, p: Scalar = 2, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None
) -> Inference:
    """Vector norm of order ``p`` over ``dim`` (all elements by default): ``sum(abs(x) ** p) ** (1 / p)``.

    ``p`` may be infinite (largest or smallest magnitude) or 0 (how many elements are not 0). The result is real.
    """
    if self.dtype.category < FLOATING:
        raise DTypeError(f"norm needs a floating point or complex tensor, got {self.dtype.name}")
    if dtype is not None and (dtype.category < FLOATING or dtype.is_complex != self.dtype.is_complex):
        raise DTypeError(f"norm: dtype {dtype.name} does not fit a {self.dtype.name} tensor: both real or both complex")
    compute = dtype or self.dtype
    return reduction(self, dim, keepdim, dtype=compute.to_real(), compute=compute)


@op()
def count_nonzero(self: Tensor, dim: Dims = None) -> Inference:
    """How many elements differ from zero (NaN does), in all or over ``dim``; int64."""
    return reduction(self, dim, False, dtype=int64)


# Choosing an element


@op(grad_fn="MaxBackward1")
def max(self: Tensor) -> Inference:
    """The largest element; NaN if there is one. Its gradient is shared equally among equals."""
    refuse_complex("max", self)
    need_elements("max", self, None)
    return extremal(self, None, False)


@op(grad_fn="MinBackward1")
def min(self: Tensor) -> Inference:
    """The smallest element; NaN if there is one. Its gradient is shared equally among equals."""
    refuse_complex("min", self)
    need_elements("min", self, None)
    return extremal(self, None, False)


@op(grad_fn="MaxBackward0", results=2)
def max_dim(self: Tensor, dim: int, keepdim: bool = False) -> Inference:
    """(largest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
    refuse_complex("max", self, DTypeError)
    need_elements("max", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="MinBackward0", results=2)
def min_dim(self: Tensor, dim: int, keepdim: bool = False) -> Inference:
    """(smallest elements along ``dim``, their first indices). The gradient goes to the element of the index."""
    refuse_complex("min", self, DTypeError)
    need_elements("min", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="AmaxBackward0")
def amax(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Largest elements over one or several dimensions; gradients are shared equally among equals."""
    refuse_complex("amax", self)
    need_elements("amax", self, dim)
    return extremal(self, dim, keepdim)


@op(grad_fn="AminBackward0")
def amin(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Smallest elements over one or several dimensions; gradients are shared equally among equals."""
    refuse_complex("amin", self)
    need_elements("amin", self, dim)
    return extremal(self, dim, keepdim)


@op(grad_fn="AminmaxBackward0", results=2)
def aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Inference:
    """(smallest, largest) of all elements or along one dimension."""
    refuse_complex("aminmax", self)
    need_elements("aminmax", self, dim)
    one = extremal(self, dim, keepdim)
    return several(one, one)


def _position(name: str, self: Meta, dim: int | None, keepdim: bool) -> Inference:
    if self.dtype.is_complex or self.dtype.category == BOOLEAN:
        raise DTypeError(f"{name} is not defined for {self.dtype.name}")
    if dim is None and 0 in self.shape:
        raise IndexOutOfRange(f"{name} of the empty tensor {self!r}: there is no element to choose")
    need_elements(name, self, dim)
    return reduction(self, dim, keepdim, dtype=int64, compute=self.dtype)


@op()
def argmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Inference:
    """Index of the first largest element: of the flattened tensor, or along ``dim``. NaN counts as largest."""
    return _position("argmax", self, dim, keepdim)


@op()
def argmin(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Inference:
    """Index of the first smallest element: of the flattened tensor, or along ``dim``. NaN counts as smallest."""
    return _position("argmin", self, dim, keepdim)


def _truth(self: Meta, dim: Dims, keepdim: bool) -> Inference:
    dtype = uint8 if self.dtype is uint8 else bool_
    if dim == ():  # unlike all other reductions, no dimension rather than all of them
        return like(self, dtype=dtype)
    return reduction(self, dim, keepdim, dtype=dtype)


@op()
def all(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Whether all elements differ from zero; bool (uint8 for uint8). True where there is none."""
    return _truth(self, dim, keepdim)


@op()
def any(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Inference:
    """Whether some element differs from zero; bool (uint8 for uint8). False where there is none."""
    return _truth(self, dim, keepdim)


# Order statistics


def _ordered(name: str, self: Meta) -> None:
    refuse_complex(name, self)
    if self.dtype.category == BOOLEAN:
        raise Unsupported(f"{name} is not defined for bools")


@op(grad_fn="MedianBackward0")
def median(self: Tensor) -> Inference:
    """The lower of the middle elements; NaN if there is one or the tensor is empty. Equals share the gradient."""
    _ordered("median", self)
    return extremal(self, None, False)


@op(grad_fn="NanmedianBackward0")
def nanmedian(self: Tensor) -> Inference:
    """The median of the elements that are not NaN. Equals share the gradient."""
    _ordered("nanmedian", self)
    return extremal(self, None, False)


@op(grad_fn="MedianBackward1", results=2)
def median_dim(self: Tensor, dim: int = -1, keepdim: bool = False) -> Inference:
    """(lower medians along ``dim``, their indices). The gradient goes to the element of the index."""
    _ordered("median", self)
    need_elements("median", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="NanmedianBackward1", results=2)
def nanmedian_dim(self: Tensor, dim: int = -1, keepdim: bool = False) -> Inference:
    """(medians along ``dim`` of what is not NaN, their indices)."""
    _ordered("nanmedian", self)
    need_elements("nanmedian", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="ModeBackward0", results=2)
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Inference:
    """(most frequent values along ``dim``, the index of each one's last occurrence); the smallest of equally
    frequent ones."""
    refuse_complex("mode", self)
    need_elements("mode", self, dim)
    return chosen(self, dim, keepdim)


@op(grad_fn="KthvalueBackward0", results=2)
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Inference:
    """(the ``k``-th smallest elements along ``dim``, counted from 1, their indices). NaN counts as largest."""
    _ordered("kthvalue", self)
    at = canonical_dim(dim, self.ndim)
    extent = self.shape[at] if self.shape else 1
    if extent != -1 and not 1 <= k <= extent:
        raise ArgumentError(f"kthvalue: k is {k}, it must be from 1 to the extent of dimension {at}, {extent}")
    return chosen(self, dim, keepdim)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@op(grad_fn="SqueezeBackward4")
def quantile(
    self: Tensor, q: Tensor | Scalar, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Inference:
    """Quantiles of all elements or along ``dim``, for one ``q`` in [0, 1] or a vector of them, which then comes as
    the first dimension of the result. NaN makes its quantile NaN.

    ``interpolation`` says what lies between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"``
    or ``"nearest"``.
    """
    return _quantile("quantile", self, q, dim, keepdim, interpolation)


@op(grad_fn="SqueezeBackward4")
def nanquantile(
    self: Tensor, q: Tensor | Scalar, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Inference:
    """Like :func:`quantile`, leaving NaN out."""
    return _quantile("nanquantile", self, q, dim, keepdim, interpolation)


def _quantile(
    name: str, self: Meta, q: Tensor | Scalar, dim: int | None, keepdim: bool, interpolation: str
) -> Inference:
    if self.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"{name} needs float32 or float64, got {self.dtype.name}")
    if self.numel == 0:
        raise ArgumentError(f"{name} of the empty tensor {self!r}")
    if interpolation not in INTERPOLATIONS:
        raise ArgumentError(f"{name}: interpolation {interpolation!r} is none of {', '.join(INTERPOLATIONS)}")
    lead: tuple[int, ...] = ()
    if isinstance(q, Meta):
        if q.ndim > 1:
            raise ArgumentError(f"{name}: q is a number or a vector, got shape {list(q.shape)}")
        if q.dtype is not self.dtype:
            raise DTypeError(f"{name}: q is {q.dtype.name}, the tensor {self.dtype.name}: they must agree")
        lead = q.shape
    rest = reduction(self, dim, keepdim).outs[0].shape
    shape = (*lead, *rest)
    stride = None
    if lead and rest:
        # The quantiles are found along a last dimension that is then moved to the front.
        inner = new((*rest, *lead), self.dtype, self.device).outs[0].stride
        stride = (1, *inner[:-1])
    return new(shape, self.dtype, self.device, stride=stride)


# Scans


def _running(name: str, self: Meta, dim: int, dtype: DType | None) -> Inference:
    result, compute = summed_dtype(self, dtype)
    return scanned(self, dim, result, compute)


@op(grad_fn="CumsumBackward0", inplace=True)
def cumsum(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Running sums along ``dim``. Bools and integers are summed in int64; ``dtype`` converts first."""
    return _running("cumsum", self, dim, dtype)


@op(grad_fn="CumprodBackward0", inplace=True)
def cumprod(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Running products along ``dim``. Bools and integers are multiplied in int64; ``dtype`` converts first."""
    return _running("cumprod", self, dim, dtype)


@op(grad_fn="LogcumsumexpBackward0")
def logcumsumexp(self: Tensor, dim: int) -> Inference:
    """Logarithm of the running sums of exponentials along ``dim``, without overflow."""
    if self.dtype.category != FLOATING:
        raise Unsupported(f"logcumsumexp is not defined for {self.dtype.name}")
    return scanned(self, dim, compute=self.dtype)


def _running_extreme(name: str, self: Meta, dim: int) -> Inference:
    refuse_complex(name, self)
    return several(scanned(self, dim, compute=self.dtype), scanned(self, dim, int64))


@op(grad_fn="CummaxBackward0", results=2)
def cummax(self: Tensor, dim: int) -> Inference:
    """(running maxima along ``dim``, the index of the latest element that equals each)."""
    return _running_extreme("cummax", self, dim)


@op(grad_fn="CumminBackward0", results=2)
def cummin(self: Tensor, dim: int) -> Inference:
    """(running minima along ``dim``, the index of the latest element that equals each)."""
    return _running_extreme("cummin", self, dim)


# Sums of exponentials


@op(grad_fn="LogsumexpBackward0")
def logsumexp(self: Tensor, dim: Dims, keepdim: bool = False) -> Inference:
    """Logarithm of the sum of exponentials over ``dim``, without overflow. Integers become the default float."""
    _, result = promote(Promote.INT_TO_FLOAT, [(self.dtype, self.ndim)])
    return reduction(self, dim, keepdim, dtype=result, compute=result)


def _softmax(name: str, self: Meta, dim: int, dtype: DType | None) -> Inference:
    result = dtype or self.dtype
    if result.category != FLOATING or self.dtype.category == COMPLEX:
        raise Unsupported(f"{name} is not defined for {result.name}; pass dtype= or convert to floating point")
    return scanned(self, dim, result, result)


@op(grad_fn="SoftmaxBackward0", exposed=("function", "method", "nn.functional"))
def softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Exponentials along ``dim``, divided by their sum. NaN where all are -inf. ``dtype`` converts first."""
    return _softmax("softmax", self, dim, dtype)


@op(grad_fn="LogSoftmaxBackward0", exposed=("function", "method", "nn.functional"))
def log_softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Inference:
    """Logarithm of :func:`softmax`, computed without its rounding."""
    return _softmax("log_softmax", self, dim, dtype)


# Primitives that derivatives of this family are written in


@op(grad_fn="SoftmaxBackwardDataBackward0", exposed=())
def softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Inference:
    """Gradient of softmax: ``output * (grad - sum(grad * output))``."""
    return new(output.shape, output.dtype, output.device, compute=output.dtype)


@op(grad_fn="LogSoftmaxBackwardDataBackward0", exposed=())
def log_softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Inference:
    """Gradient of log_softmax: ``grad - exp(output) * sum(grad)``."""
    return new(output.shape, output.dtype, output.device, compute=output.dtype)


@op(grad_fn="ShiftBackward0", exposed=())
def shift(self: Tensor, dim: int, by: int, fill: Scalar = 0) -> Inference:
    """Elements moved ``by`` places along ``dim``; what falls off is lost and ``fill`` takes the empty places."""
    canonical_dim(dim, self.ndim)
    return new(self.shape, self.dtype, self.device)


@op(grad_fn="LinearRecurrenceBackward0", exposed=())
def linear_recurrence(factor: Tensor, term: Tensor, dim: int, reverse: bool = False) -> Inference:
    """The solution of ``s[i] = term[i] + factor[i] * s[i - 1]`` along ``dim`` (``s[i + 1]`` in reverse).

    The derivatives of running products are such recurrences: with them nothing is ever divided by an element.
    """
    if factor.shape != term.shape:
        raise ArgumentValueError(f"linear_recurrence: shapes {list(factor.shape)} and {list(term.shape)} differ")
    _, result = promote(Promote.DEFAULT, [(factor.dtype, 1), (term.dtype, 1)])
    return scanned(term, dim, result, result)
