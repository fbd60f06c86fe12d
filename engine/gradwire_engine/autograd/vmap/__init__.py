"""``vmap``: physical tensors that hide a mapped dimension, and rules that compute an op for all samples.

An op has a rule of its own, or the one that follows from its facts in the table (:mod:`.default_rules`), or runs
sample by sample. This layer is above autograd, so derivatives do not know of it, and
``is_grads_batched`` is backward with batched gradients.
"""

from . import controls, indexing, layers, pointwise, products, reductions, views  # noqa: F401  (they register rules)
from .batched import Batched
from .dispatch import holds_batched, run_batched

__all__ = ["Batched", "holds_batched", "run_batched"]
