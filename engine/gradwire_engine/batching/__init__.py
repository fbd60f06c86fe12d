"""``vmap`` in the engine: tensors that hide a mapped dimension, and for every op how it is computed on all samples."""

from . import (  # noqa: F401  (they register rules)
    checking,
    images,
    indexing,
    layers,
    losses,
    pointwise,
    products,
    reductions,
    views,
)
from .batched import Batched
from .dispatch import holds_batched, run_batched

__all__ = ["Batched", "holds_batched", "run_batched"]
