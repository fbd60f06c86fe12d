"""``torch.utils.data.datapipes``: streams of entries that are put together from steps; ``datapipe.py`` has those."""

from . import iter, map

__all__ = ["iter", "map"]
