"""Distances and angles between vectors."""

from __future__ import annotations

from .._core.modules.module import Module
from .._core.tensor.tensor import Tensor
from . import functional as F


class PairwiseDistance(Module):
    """The p-norm of the differences along the last dimension; ``eps`` is added to each difference."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm: float = p
        self.eps: float = eps
        self.keepdim: bool = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """``(..., D)`` twice to ``(...)``."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along ``dim``; their lengths count as ``eps`` at least."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim: int = dim
        self.eps: float = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors to one without dimension ``dim``."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
