"""``torch.nn.modules.flatten``: changes of shape."""

from ..flatten import Flatten, Unflatten

__all__ = [
    "Flatten", "Unflatten",
]  # fmt: skip
