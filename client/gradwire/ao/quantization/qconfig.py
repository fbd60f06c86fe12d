"""``torch.ao.quantization.qconfig``: what would observe a model."""

from typing import Any, NamedTuple


class QConfig(NamedTuple):
    """What would observe activations and weights; kept, without effect."""

    activation: Any
    weight: Any
