"""``torch.nn.modules.fold``: blocks of images."""

from ..fold import Fold, Unfold

__all__ = [
    "Fold", "Unfold",
]  # fmt: skip
