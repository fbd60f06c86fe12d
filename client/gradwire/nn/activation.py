"""Activations as modules: each is a function of :mod:`gradwire.nn.functional` with its options."""

from __future__ import annotations

import warnings
from typing import ClassVar

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentValueError

from .._core.context.argument_types import Device
from .._core.context.modes import no_grad
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.surface.creation import full
from .._core.tensor.tensor import Tensor
from . import functional as F
from .variants import Variant


class _Activation(Variant):
    """A function of one tensor. ``options`` names the attributes that the function takes after it, in order."""

    function: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    inplace: bool = False

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function; the shape stays."""
        chosen = [getattr(self, name) for name in self.options]
        if self.inplace:
            return getattr(F, self.function)(input, *chosen, inplace=True)
        return getattr(F, self.function)(input, *chosen)

    def extra_repr(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in self.options]
        return ", ".join([*parts, "inplace=True"] if self.inplace else parts)


class _InplaceActivation(_Activation):
    """An activation whose only choice is whether to overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(_InplaceActivation, function="relu"):
    """``max(x, 0)``."""


class ReLU6(_InplaceActivation, function="relu6"):
    """``x`` cut to the range from 0 to 6."""


class SiLU(_InplaceActivation, function="silu"):
    """``x * sigmoid(x)``."""


class Mish(_InplaceActivation, function="mish"):
    """``x * tanh(softplus(x))``."""


class SELU(_InplaceActivation, function="selu"):
    """:class:`ELU` with the constants that keep mean 0 and variance 1 from layer to layer."""


class Hardswish(_InplaceActivation, function="hardswish"):
    """``x * relu6(x + 3) / 6``."""

    def extra_repr(self) -> str:
        return ""


class Hardsigmoid(_InplaceActivation, function="hardsigmoid"):
    """``relu6(x + 3) / 6``."""

    def extra_repr(self) -> str:
        return ""


class Sigmoid(_Activation, function="sigmoid"):
    """``1 / (1 + exp(-x))``."""


class Tanh(_Activation, function="tanh"):
    """Hyperbolic tangent."""


class LogSigmoid(_Activation, function="logsigmoid"):
    """``log(sigmoid(x))`` without underflow on the way."""


class Softsign(_Activation, function="softsign"):
    """``x / (1 + |x|)``."""


class Tanhshrink(_Activation, function="tanhshrink"):
    """``x - tanh(x)``."""


class GELU(_Activation, function="gelu"):
    """``x`` times the normal distribution's probability of a smaller value; ``approximate="tanh"`` is cheaper."""

    options = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate: str = approximate


class LeakyReLU(_Activation, function="leaky_relu"):
    """``x`` where positive, else ``negative_slope * x``."""

    options = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope: float = negative_slope
        self.inplace = inplace


class ELU(_Activation, function="elu"):
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""

    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha: float = alpha
        self.inplace = inplace


class CELU(_Activation, function="celu"):
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``."""

    options = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha: float = alpha
        self.inplace = inplace


class Hardtanh(_Activation, function="hardtanh"):
    """``x`` cut to the range from ``min_val`` to ``max_val``."""

    options = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None or max_value is not None:
            warnings.warn("min_value and max_value are old names of min_val and max_val", FutureWarning, stacklevel=2)
            min_val = min_val if min_value is None else min_value
            max_val = max_val if max_value is None else max_value
        if not min_val < max_val:
            raise ArgumentValueError(f"min_val is {min_val}, it must be below max_val, {max_val}")
        self.min_val: float = min_val
        self.max_val: float = max_val
        self.inplace = inplace


class Threshold(_Activation, function="threshold"):
    """``x`` where above ``threshold``, else ``value``."""

    options = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold: float = threshold
        self.value: float = value
        self.inplace = inplace


class Softplus(_Activation, function="softplus"):
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself where ``beta * x`` is above ``threshold``."""

    options = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta: float = beta
        self.threshold: float = threshold


class _Shrink(_Activation):
    options = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd: float = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink, function="hardshrink"):
    """0 from ``-lambd`` to ``lambd``, elsewhere ``x``."""


class Softshrink(_Shrink, function="softshrink"):
    """``x`` moved towards 0 by ``lambd``, and no further than 0."""


class _Along(_Activation):
    """A function along one dimension."""

    options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim: int | None = dim


class Softmax(_Along, function="softmax"):
    """Exponentials along ``dim``, scaled to sum to 1."""


class LogSoftmax(_Along, function="log_softmax"):
    """The logarithm of :class:`Softmax`."""


class Softmin(_Along, function="softmin"):
    """:class:`Softmax` of ``-x``."""


class GLU(_Activation, function="glu"):
    """The first half of a dimension times the sigmoid of the second."""

    options = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim: int = dim


class Softmax2d(Module):
    """:class:`Softmax` over the channels of ``(N, C, H, W)`` or ``(C, H, W)``, at each place of the image."""

    def forward(self, input: Tensor) -> Tensor:
        """The softmax over channels; the shape stays."""
        if input.ndim not in (3, 4):
            raise ArgumentValueError(f"Softmax2d takes 3 or 4 dimensions, the input's shape is {list(input.shape)}")
        return F.softmax(input, -3)


class RReLU(Module):
    """``x`` where positive, else a slope times ``x``: in training drawn from [lower, upper), else their mean."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower: float = lower
        self.upper: float = upper
        self.inplace: bool = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function; the shape stays."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """``x`` where positive, else a trained slope times ``x``: one slope, or one per channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Device = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        if num_parameters < 1:
            raise ArgumentError(f"PReLU has at least one slope, not {num_parameters}")
        self.num_parameters: int = num_parameters
        self.init: float = init
        self.weight: Parameter = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Give every slope its first value again."""
        with no_grad():
            self.weight.fill_(float(self.init))

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function; the shape stays."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
