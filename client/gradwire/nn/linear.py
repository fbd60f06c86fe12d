"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentValueError

from .._core.context.argument_types import Device
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.surface.creation import empty
from .._core.tensor.tensor import Tensor
from . import functional as F
from . import init


class Identity(Module):
    """Returns what it is given. Arguments of the constructor are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return ``input``."""
        return input


class Linear(Module):
    """``x @ weight.T + bias``, on the last dimension: ``(..., in_features)`` gives ``(..., out_features)``.

    ``weight`` has shape ``(out_features, in_features)``, ``bias`` ``(out_features,)``. Both start uniform between
    plus and minus ``1 / sqrt(in_features)``.
    """

    bias: Parameter  # None without one, which PyTorch does not declare either

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Device = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.in_features: int = in_features
        self.out_features: int = out_features
        self.weight: Parameter = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        # With a = sqrt(5) the bound of Kaiming's uniform distribution is 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """``(..., in_features)`` to ``(..., out_features)``."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A :class:`Linear` by another name, which PyTorch gives the last layer of attention."""


class Bilinear(Module):
    """``x1 @ weight[o] @ x2 + bias[o]`` for each output ``o``, on the last dimensions of two inputs."""

    bias: Parameter

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Device = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ArgumentValueError(f"in1_features must be positive, not {in1_features}")
        self.in1_features: int = in1_features
        self.in2_features: int = in2_features
        self.out_features: int = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight: Parameter = Parameter(empty(shape, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values, uniform between plus and minus ``1 / sqrt(in1_features)``."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """``(..., in1_features)`` and ``(..., in2_features)`` to ``(..., out_features)``."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
