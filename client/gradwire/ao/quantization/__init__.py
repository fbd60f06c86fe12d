"""``torch.ao.quantization``: stubs for models that could be quantized. They run unquantized."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.surface import stand_ins
from ..._core.tensor.tensor import Tensor
from ...nn import Module as _Module

__all__ = ["DeQuantStub", "QConfig", "QuantStub", "QuantWrapper"]


class QConfig(NamedTuple):
    """What would observe activations and weights."""

    activation: Any
    weight: Any


class _Stub(_Module):
    """Where a model would be quantized, or the other way round: passes on what it is given.

    Args:
        qconfig: what would observe it.
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """``x``."""
        return x


class QuantStub(_Stub):
    """Where a model would be quantized: passes on what it is given."""


class DeQuantStub(_Stub):
    """Where a quantized model would return to floating point: passes on what it is given."""


class QuantWrapper(_Module):
    """A module between a :class:`QuantStub` and a :class:`DeQuantStub`."""

    def __init__(self, module: _Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant = QuantStub(qconfig)
        self.dequant = DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        """What the module makes of ``X``."""
        return self.dequant(self.module(self.quant(X)))


stand_ins.fill(
    __name__,
    ("FakeQuantize", "FakeQuantizeBase", "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver",
     "ObserverBase", "PerChannelMinMaxObserver", "QConfigMapping", "convert", "default_dynamic_qconfig",
     "default_fake_quant", "default_observer", "default_per_channel_weight_observer", "default_qconfig",
     "default_weight_observer", "disable_observer", "enable_observer", "float_qparams_weight_only_qconfig",
     "fuse_modules", "fuse_modules_qat", "get_default_qat_qconfig", "get_default_qconfig",
     "get_default_qconfig_mapping", "prepare", "prepare_qat", "propagate_qconfig_", "quantize", "quantize_dynamic",
     "quantize_qat", "swap_module"),
    "there are no quantized tensors",
)  # fmt: skip
