"""``torch.nn.modules.linear``: linear maps."""

from ..lazy_layers import LazyLinear
from ..linear import Bilinear, Identity, Linear, NonDynamicallyQuantizableLinear

__all__ = [
    "Bilinear", "Identity", "LazyLinear", "Linear", "NonDynamicallyQuantizableLinear",
]  # fmt: skip
