"""``torch.ao.quantization.stubs``: marks of where a model would be quantized, identities before it is."""

from __future__ import annotations

from typing import Any

from ..._core.tensor.tensor import Tensor
from ...nn import Module


class _Stub(Module):
    """Hands values on.

    Args:
        qconfig: kept as an attribute, where it is given.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class QuantStub(_Stub):
    """Where values would become quantized ones: hands them on."""


class DeQuantStub(_Stub):
    """Where quantized values would become floating point ones: hands them on."""


class QuantWrapper(Module):
    """A module between the two stubs."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Any:
        return self.dequant(self.module(self.quant(X)))
