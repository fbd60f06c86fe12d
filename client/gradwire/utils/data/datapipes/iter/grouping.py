"""``torch.utils.data.datapipes.iter.grouping``: the longer names of steps."""

from ..datapipe import Batcher as BatcherIterDataPipe

__all__ = ["BatcherIterDataPipe"]
