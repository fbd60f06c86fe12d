"""``torch.utils.data.datapipes.iter.selecting``: the longer names of steps."""

from ..datapipe import Filter as FilterIterDataPipe

__all__ = ["FilterIterDataPipe"]
