"""``torch.nn.modules.pixelshuffle``: pixels and channels exchanged."""

from ..fold import PixelShuffle, PixelUnshuffle

__all__ = [
    "PixelShuffle", "PixelUnshuffle",
]  # fmt: skip
