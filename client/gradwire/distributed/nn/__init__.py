"""``torch.distributed.nn``: collectives that gradients pass through."""

from .functional import all_gather, all_reduce, broadcast, gather, reduce, reduce_scatter, scatter

__all__ = ["all_gather", "all_reduce", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]
