"""Initial values: each function fills a tensor in place, without recording, and returns it."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentValueError

from .._core.context.late_signatures import show_as
from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.surface.creation import tensor as make_tensor
from .._core.surface.generator import Generator, drawing_from
from .._core.tensor.tensor import Tensor

_PLAIN_GAINS = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0, "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights should be larger because of the function that follows them.

    Args:
        nonlinearity: the function's name, e.g. ``"relu"``.
        param: the negative slope for ``"leaky_relu"``, by default 0.01.
    """
    if nonlinearity in _PLAIN_GAINS:
        return _PLAIN_GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ArgumentValueError(
            f"no gain is known for {nonlinearity!r}; known are leaky_relu, {', '.join(_PLAIN_GAINS)}"
        )
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ArgumentValueError(f"a negative slope is a number, not {param!r}")
    return math.sqrt(2.0 / (1 + slope**2))


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output depends on, and how many outputs an input reaches, for a weight ``(out, in, ...)``."""
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ArgumentValueError(f"fan in and fan out need at least 2 dimensions, the shape is {list(shape)}")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    chosen = mode.lower()
    if chosen not in ("fan_in", "fan_out"):
        raise ArgumentValueError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    return _calculate_fan_in_and_fan_out(tensor)[chosen == "fan_out"]


_SKIPPING = ContextVar("skipping", default=False)


@contextmanager
def skipped() -> Iterator[None]:
    """Within this context nothing here fills anything."""
    token = _SKIPPING.set(True)
    try:
        yield
    finally:
        _SKIPPING.reset(token)


def _fill(tensor: Tensor, generator: Generator | None, op: str, *numbers: Any) -> Tensor:
    if _SKIPPING.get():
        return tensor
    with no_grad(), nullcontext() if generator is None else drawing_from(generator):
        call(op, tensor, *numbers)
    return tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Numbers uniform between ``a`` and ``b``."""
    return _fill(tensor, generator, "uniform_", float(a), float(b))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers of this mean and standard deviation."""
    return _fill(tensor, generator, "normal_", float(mean), float(std))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers, none of them outside ``a`` to ``b``."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"the mean {mean} is more than two standard deviations outside of {a} to {b}: the distribution may be off",
            UserWarning,
            stacklevel=2,
        )

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    # Uniform probabilities between those of the bounds, through the inverse of the distribution function.
    _fill(tensor, generator, "uniform_", 2 * below(a) - 1, 2 * below(b) - 1)
    with no_grad():
        call("erfinv_", tensor)
        call("mul_", tensor, std * math.sqrt(2.0))
        call("add_", tensor, mean)
        call("clamp_", tensor, a, b)
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One value everywhere."""
    return _fill(tensor, None, "fill_", val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return _fill(tensor, None, "zero_")


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Generator | None = None) -> Tensor:
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Generator | None = None) -> Tensor:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None = None
) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    return constant_(tensor, val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    return zeros_(tensor)


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if tensor.ndim != 2:
        raise ArgumentValueError(f"eye_ fills a matrix, the shape is {list(tensor.shape)}")
    return _write(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight that passes its input through: each channel's kernel is a 1 at the centre."""
    shape = tuple(tensor.shape)
    if len(shape) not in (3, 4, 5):
        raise ArgumentValueError(
            f"dirac_ fills a convolution's weight of 3 to 5 dimensions, the shape is {list(shape)}"
        )
    if shape[0] % groups:
        raise ArgumentValueError(f"{shape[0]} channels cannot be split into {groups} groups")
    values = np.zeros(shape)
    per_group = shape[0] // groups
    centre = tuple(n // 2 for n in shape[2:])
    for group in range(groups):
        for channel in range(min(per_group, shape[1])):
            values[(group * per_group + channel, channel, *centre)] = 1
    return _write(tensor, values)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers of variance ``gain ** 2 * 2 / (fan_in + fan_out)``."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return _fill(tensor, generator, "uniform_", -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal numbers of variance ``gain ** 2 * 2 / (fan_in + fan_out)``."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return _fill(tensor, generator, "normal_", 0.0, std)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform numbers of variance ``gain ** 2 / fan``, where the gain is that of the function that follows.

    Args:
        a: the negative slope of a leaky ReLU that follows.
        mode: which fan: ``"fan_in"`` keeps the variance forward, ``"fan_out"`` backward.
    """
    if _warn_if_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return _fill(tensor, generator, "uniform_", -bound, bound)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal numbers of variance ``gain ** 2 / fan``; the arguments are those of :func:`kaiming_uniform_`."""
    if _warn_if_empty(tensor):
        return tensor
    return _fill(tensor, generator, "normal_", 0.0, _kaiming_std(tensor, a, mode, nonlinearity))


def _warn_if_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("a tensor without elements has no initial values", UserWarning, stacklevel=3)
        return True
    return False


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """A random matrix with orthonormal rows or columns, whichever are fewer, times ``gain``.

    Dimensions after the first count as one.
    """
    shape = tuple(tensor.shape)
    if len(shape) < 2:
        raise ArgumentValueError(f"orthogonal_ needs at least 2 dimensions, the shape is {list(shape)}")
    if 0 in shape or _SKIPPING.get():
        return tensor
    rows, columns = shape[0], math.prod(shape[1:])
    with no_grad():
        # half precision has no factorization
        dtype = tensor.dtype if tensor.dtype.itemsize > 2 else dtypes.float32
        drawn = _fill(tensor.new_empty((rows, columns), dtype=dtype), generator, "normal_")
        q, r = call("linalg_qr", drawn if rows >= columns else drawn.t())
        q *= r.diagonal().sgn()  # so that all orthogonal matrices are equally likely
        return tensor.copy_((q if rows >= columns else q.t()).reshape(shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal numbers in a matrix of which each column has a share ``sparsity`` of zeros, at random places."""
    if tensor.ndim != 2:
        raise ArgumentValueError(f"sparse_ fills a matrix, the shape is {list(tensor.shape)}")
    zeros = math.ceil(sparsity * tensor.shape[0])
    _fill(tensor, generator, "normal_", 0.0, float(std))
    with no_grad():
        order = call("argsort", call("rand_like", tensor), 0)
        call("masked_fill_", tensor, call("lt", call("argsort", order, 0), zeros), 0)
    return tensor


def _write(tensor: Tensor, values: np.ndarray[Any, Any]) -> Tensor:
    with no_grad():
        call("copy_", tensor, make_tensor(values, dtype=tensor.dtype, device=tensor.device))
    return tensor


Initializer = TypeVar("Initializer", bound=Callable[..., Tensor])


def _older(function: Initializer) -> Initializer:
    """A function under the name that it had without the underscore."""
    name = function.__name__[:-1]

    def renamed(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"nn.init.{name} is deprecated, it is nn.init.{name}_ now", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    renamed.__name__, renamed.__doc__ = name, f"The older name of :func:`{name}_`."
    show_as(renamed, lambda: inspect.signature(function))
    return renamed  # type: ignore[return-value]


uniform = _older(uniform_)
normal = _older(normal_)
constant = _older(constant_)
eye = _older(eye_)
dirac = _older(dirac_)
xavier_uniform = _older(xavier_uniform_)
xavier_normal = _older(xavier_normal_)
kaiming_uniform = _older(kaiming_uniform_)
kaiming_normal = _older(kaiming_normal_)
orthogonal = _older(orthogonal_)
sparse = _older(sparse_)
