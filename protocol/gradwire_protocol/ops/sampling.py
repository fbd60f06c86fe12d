"""Random numbers, drawn from the session's generator: the same seed gives the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..accepts import require
from ..costs import SORTING
from ..dtypes import BOOLEAN, COMPLEX, FLOATING, INTEGRAL, DType, bfloat16, bool_, float16, float32, float64, int64
from ..errors import ArgumentError, DTypeError, ShapeError, Unsupported
from ..meta import Inference, Meta, new, nothing
from ..promotion import ScalarKind
from ..shapes import broadcast, check_size, common_device, elementwise
from ..table import Float, Out, Position, Tensor, gradients, op
from .creation import LIKE, fresh, resembling

FUNCTION = ("function",)
METHOD = ("method",)
MOST_CATEGORIES: Final = 1 << 24
FIRST_INT64: Final = -(1 << 63)
LARGEST_FLOAT16: Final = 65504


def _spread(name: str) -> Callable[..., None]:
    """A check that the standard deviation of a normal distribution is not negative."""

    def check(first: object, mean: object, std: Any, *rest: object) -> None:
        if isinstance(std, (int, float)) and not std >= 0:
            raise ArgumentError(f"{name}: std is {std}; it must not be negative")

    return check


def _probability(name: str) -> Callable[..., None]:
    """A check that a number is a probability."""

    def check(self: object, p: Any) -> None:
        if isinstance(p, (int, float)) and not 0 <= p <= 1:
            raise ArgumentError(f"{name}: p must be a probability, from 0 to 1, not {p}")

    return check


LARGEST: Final = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}  # fmt: skip
"""The largest finite number of each float dtype."""


def _interval(dtype: DType) -> Callable[..., None]:
    """A check that numbers of a dtype lie between two bounds, and hold their distance."""
    most = LARGEST[dtype.to_real().name]

    def check(self: object, low: float, high: float) -> None:
        if not low <= high:
            raise ArgumentError(f"uniform_: there is no number from {low} up to but without {high}")
        if not (-most <= low and high <= most and high - low <= most):
            raise ArgumentError(f"uniform_: from {low} to {high} exceeds the range of {dtype.name}, {most}")

    return check


def _rate(self: object, lambd: float) -> None:
    if not lambd > 0:
        raise ArgumentError(f"exponential_: the rate is {lambd}; it must be positive")


def _chance(self: object, p: float) -> None:
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: p is {p}; it must be between 0 and 1, exclusive")


def _logarithmic(self: object, mean: float, std: float) -> None:
    if not std > 0:
        raise ArgumentError(f"log_normal_: std is {std}; it must be positive")


def _width(self: object, median: float, sigma: float) -> None:
    if not sigma > 0:
        raise ArgumentError(f"cauchy_: sigma is {sigma}; it must be positive")


def _continuous(name: str, inferred: Inference) -> Inference:
    require(name, inferred.outs[0].dtype, (FLOATING, COMPLEX))
    return inferred


def _discrete(name: str, low: int, high: int, inferred: Inference) -> Inference:
    """Check that a dtype holds the integers from ``low`` up to but without ``high``."""
    dtype = inferred.outs[0].dtype
    if low >= high:
        raise ArgumentError(f"{name}: there is no integer from {low} up to but without {high}")
    if dtype.category == COMPLEX:
        raise DTypeError(f"{name} does not support {dtype.name}")
    if dtype.category <= INTEGRAL:
        bits = 8 * dtype.itemsize
        last = 1 if dtype is bool_ else (1 << bits - dtype.is_signed) - 1
        first = -last - 1 if dtype.is_signed else 0
        if low < first or high - 1 > last:
            raise ArgumentError(f"{name}: {dtype.name} cannot represent the numbers from {low} to {high - 1}")
    elif dtype is float16 and (low < -LARGEST_FLOAT16 or high - 1 > LARGEST_FLOAT16):
        raise ArgumentError(
            f"{name}: float16 ranges from -{LARGEST_FLOAT16} to {LARGEST_FLOAT16}, not from {low} to {high}"
        )
    return inferred


@op(random=True, exposed=FUNCTION, variadic="size", out=Out.MADE | Out.SILENT)
def rand(size: tuple[int, ...], dtype: DType | None = None, device: str = "cpu") -> Inference:
    """Numbers uniform in [0, 1)."""
    return _continuous("rand", fresh(size, dtype, device))


@op(random=True, exposed=FUNCTION, keyword_only=LIKE, elementwise=True)
def rand_like(
    self: Tensor, dtype: DType | None = None, device: str | None = None, row_major: bool = False,
    channels_last: bool = False,
) -> Inference:  # fmt: skip
    """Numbers uniform in [0, 1), in the shape and dtype of ``self``."""
    return _continuous("rand_like", resembling(self, dtype, device, row_major, channels_last))


@op(random=True, exposed=FUNCTION, variadic="size", out=Out.MADE | Out.SILENT)
def randn(size: tuple[int, ...], dtype: DType | None = None, device: str = "cpu") -> Inference:
    """Numbers of the normal distribution with mean 0 and variance 1."""
    return _continuous("randn", fresh(size, dtype, device))


@op(random=True, exposed=FUNCTION, keyword_only=LIKE, elementwise=True)
def randn_like(
    self: Tensor, dtype: DType | None = None, device: str | None = None, row_major: bool = False,
    channels_last: bool = False,
) -> Inference:  # fmt: skip
    """Numbers of the normal distribution with mean 0 and variance 1, in the shape and dtype of ``self``."""
    return _continuous("randn_like", resembling(self, dtype, device, row_major, channels_last))


@op(random=True, exposed=(), out=Out.MADE | Out.SILENT)
def randint(
    low: Position, high: Position, size: tuple[int, ...], dtype: DType | None = None, device: str = "cpu"
) -> Inference:
    """Integers from ``low`` up to but without ``high``, all equally likely; int64 unless another dtype is named."""
    return _discrete("randint", low, high, new(check_size(size), dtype or int64, device))


@op(random=True, exposed=(), elementwise=True)
def randint_like(
    self: Tensor, low: Position, high: Position, dtype: DType | None = None, device: str | None = None,
    row_major: bool = False, channels_last: bool = False,
) -> Inference:  # fmt: skip
    """Integers from ``low`` up to but without ``high``, in the shape and dtype of ``self``."""
    return _discrete("randint_like", low, high, resembling(self, dtype, device, row_major, channels_last))


@op(random=True, exposed=FUNCTION, keyword_only=("dtype", "device"), cost=SORTING, out=Out.MADE | Out.SILENT)
def randperm(n: int, dtype: DType = int64, device: str = "cpu") -> Inference:
    """The integers from 0 up to but without ``n``, in random order."""
    if n < 0:
        raise ShapeError(f"randperm: {n} numbers cannot be put in order")
    if dtype.is_complex:
        raise DTypeError(f"randperm does not support {dtype.name}")
    if dtype is not bfloat16 and n > whole_numbers(dtype):
        raise ArgumentError(f"randperm: {dtype.name} cannot represent all the numbers from 0 to {n - 1}")
    return new((n,), dtype, device)


@op(random=True, grad_fn="NormalBackward3", differentiable=("mean", "std"), exposed=(), elementwise=True)
@gradients("c")
def normal(
    mean: Tensor | Float, std: Tensor | Float, size: tuple[int, ...] | None = None, dtype: DType | None = None,
    device: str = "cpu",
) -> Inference:  # fmt: skip
    """Normal numbers of the given mean and standard deviation, which broadcast.

    ``size``, ``dtype`` and ``device`` are for two numbers. The gradient for mean and std is zero: to learn them,
    compute ``mean + std * randn(...)``.
    """
    tensors = [value for value in (mean, std) if isinstance(value, Meta)]
    if not tensors:
        if size is None:
            raise ArgumentError("normal: with two numbers, size must be given")
        return _continuous("normal", fresh(size, dtype, device)).checking(_check_normal)
    if size is not None:
        raise ArgumentError("normal: size is given only with two numbers")
    operands = [value if isinstance(value, Meta) else ScalarKind.FLOAT for value in (mean, std)]
    names = {(True, False): "NormalBackward1", (False, True): "NormalBackward2", (True, True): "NormalBackward3"}
    drawn = elementwise(*operands).outs[0]
    node = names[isinstance(mean, Meta), isinstance(std, Meta)]
    inferred = new(drawn.shape, drawn.dtype, drawn.device, grad_fn=node)
    return _continuous("normal", inferred if isinstance(std, Meta) else inferred.checking(_check_normal))


def _check_normal(mean: object, std: float, *rest: object) -> None:
    _spread("normal")(None, mean, std)


@op(random=True, grad_fn="BernoulliBackward0", differentiable=("self",), elementwise=True, out=Out.ANY | Out.SILENT)
@gradients("c")
def bernoulli(self: Tensor, p: Float | None = None) -> Inference:
    """1 with the probability that ``self`` holds, else 0; with ``p`` only the shape and dtype of ``self`` count.

    The gradient is zero.
    """
    if p is None:
        require("bernoulli", self.dtype, (FLOATING,))
    inferred = new(self.shape, self.dtype, self.device)
    return inferred if p is None else inferred.checking(_probability("bernoulli"))


@op(random=True, cost=SORTING, out=Out.EXACT | Out.SILENT)
def multinomial(self: Tensor, num_samples: int, replacement: bool = False) -> Inference:
    """Draw ``num_samples`` indices along the last dimension, as likely as the weights in ``self`` say.

    ``self`` has one or two dimensions; the weights need not sum to 1, are not negative and not all 0. There are 2**24
    of them at most, as in PyTorch.
    """
    if self.dtype.category != FLOATING:
        raise DTypeError(f"multinomial takes floating point weights, not {self.dtype.name}")
    if self.ndim not in (1, 2):
        raise ShapeError(f"multinomial takes one or two dimensions; the shape is {list(self.shape)}")
    if num_samples <= 0:
        raise ArgumentError(f"multinomial draws at least one sample, not {num_samples}")
    if not replacement and num_samples > self.shape[-1] >= 0:
        raise ArgumentError(
            f"multinomial cannot draw {num_samples} samples from {self.shape[-1]} weights without replacement"
        )
    if self.shape[-1] > MOST_CATEGORIES:
        raise ArgumentError(f"multinomial takes {MOST_CATEGORIES:,} weights at most, not {self.shape[-1]:,}")
    return new((*self.shape[:-1], num_samples), int64, self.device)


# Samplers that overwrite a tensor. Nothing that was in it matters afterwards, so its gradient is zero.


@op(random=True, grad_fn="UniformBackward0", mutates=0, results=0, exposed=METHOD, elementwise=True)
@gradients("c")
def uniform_(self: Tensor, low: Float = 0.0, high: Float = 1.0) -> Inference:
    """Fill with numbers uniform in [low, high)."""
    require("uniform_", self.dtype, (FLOATING, COMPLEX))
    return nothing().checking(_interval(self.dtype))


@op(random=True, grad_fn="NormalBackward0", mutates=0, results=0, exposed=METHOD, elementwise=True)
@gradients("c")
def normal_(self: Tensor, mean: Float = 0.0, std: Float = 1.0) -> Inference:
    """Fill with normal numbers of this mean and standard deviation."""
    require("normal_", self.dtype, (FLOATING, COMPLEX))
    return nothing().checking(_spread("normal_"))


@op(random=True, grad_fn="ExponentialBackward0", mutates=0, results=0, exposed=METHOD, elementwise=True)
@gradients("c")
def exponential_(self: Tensor, lambd: Float = 1.0) -> Inference:
    """Fill with numbers of the exponential distribution with rate ``lambd``."""
    if self.dtype.category != FLOATING:
        raise DTypeError(f"exponential_ is a continuous distribution: it takes no {self.dtype.name} tensor")
    return nothing().checking(_rate)


@op(random=True, grad_fn="GeometricBackward0", mutates=0, results=0, exposed=METHOD, elementwise=True)
@gradients("c")
def geometric_(self: Tensor, p: Float) -> Inference:
    """Fill with the number of trials up to the first success, each succeeding with probability ``p``: 1, 2, ..."""
    require("geometric_", self.dtype, (INTEGRAL, FLOATING))
    return nothing().checking(_chance)


@op(random=True, grad_fn="LogNormalBackward0", mutates=0, results=0, exposed=METHOD, elementwise=True)
@gradients("c")
def log_normal_(self: Tensor, mean: Float = 1.0, std: Float = 2.0) -> Inference:
    """Fill with numbers whose logarithms are normal with this mean and standard deviation."""
    require("log_normal_", self.dtype, (FLOATING,))
    return nothing().checking(_logarithmic)


@op(random=True, grad_fn="CauchyBackward0", mutates=0, results=0, exposed=METHOD, elementwise=True)
@gradients("c")
def cauchy_(self: Tensor, median: Float = 0.0, sigma: Float = 1.0) -> Inference:
    """Fill with numbers of the Cauchy distribution."""
    if self.dtype.category != FLOATING:
        raise DTypeError(f"cauchy_ is a continuous distribution: it takes no {self.dtype.name} tensor")
    return nothing().checking(_width)


@op(
    random=True,
    grad_fn="BernoulliBackward2",
    differentiable=("self",),
    mutates=0,
    results=0,
    exposed=METHOD,
    elementwise=True,
)
@gradients("c")
def bernoulli_(self: Tensor, p: Tensor | Float = 0.5) -> Inference:
    """Fill with 1 with probability ``p`` (a number, or a tensor that broadcasts), else 0."""
    require("bernoulli_", self.dtype, (BOOLEAN, INTEGRAL, FLOATING))
    if not isinstance(p, Meta):
        return nothing().checking(_probability("bernoulli_"))
    require("bernoulli_ with a tensor of probabilities", p.dtype, (FLOATING,))
    if broadcast(self.shape, p.shape) != self.shape:
        raise ShapeError(f"bernoulli_: probabilities of shape {list(p.shape)} do not fit {list(self.shape)}")
    common_device(self, p)
    return nothing().named("BernoulliBackward1")


@op(random=True, grad_fn="RandomBackward2", mutates=0, results=0, exposed=METHOD, elementwise=True)
@gradients("c")
def random_(self: Tensor, low: Position = 0, high: Position | None = None) -> Inference:
    """Fill with integers from ``low`` up to but without ``high``, by default up to the largest that the dtype holds
    exactly. From -2**63 on without ``high``, all integers of 64 bits."""
    if self.dtype.is_complex and high is None and not low:
        raise Unsupported(f"random_ does not support {self.dtype.name}")
    top = end_of_integers(self.dtype, low) if high is None else high
    _discrete("random_", low, top, new(self.shape, self.dtype, self.device))
    return nothing()


def end_of_integers(dtype: DType, low: int) -> int:
    """Where the integers that :func:`random_` draws end unless it is told.

    Raises:
        DTypeError: for all integers of 64 bits in a dtype that cannot have them.
    """
    if low > FIRST_INT64:
        return whole_numbers(dtype)
    if dtype not in (int64, float64, float32, bfloat16):
        raise DTypeError(f"random_: {dtype.name} cannot represent all the numbers from -2**63 on")
    return -FIRST_INT64


def whole_numbers(dtype: DType) -> int:
    """One more than the largest integer up to which a dtype holds all."""
    if dtype is bool_:
        return 2
    if dtype.category == INTEGRAL:
        return int(1 << 8 * dtype.itemsize - dtype.is_signed)
    exact = {float16: 2**11, bfloat16: 2**8, float32: 2**24}
    return exact.get(dtype.to_real(), 2**53) + 1
