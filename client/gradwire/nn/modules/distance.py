"""``torch.nn.modules.distance``: distances."""

from ..distance import CosineSimilarity, PairwiseDistance

__all__ = [
    "CosineSimilarity", "PairwiseDistance",
]  # fmt: skip
