"""``torch.nn.modules.linear_cross_entropy_options``: options of a loss."""

from ..linear_cross_entropy import LinearCrossEntropyOptions

__all__ = [
    "LinearCrossEntropyOptions",
]  # fmt: skip
