"""``torch.nn.modules.sparse``: tables."""

from ..sparse import Embedding, EmbeddingBag

__all__ = [
    "Embedding", "EmbeddingBag",
]  # fmt: skip
