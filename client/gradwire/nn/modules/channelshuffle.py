"""``torch.nn.modules.channelshuffle``: channel shuffling."""

from ..fold import ChannelShuffle

__all__ = [
    "ChannelShuffle",
]  # fmt: skip
