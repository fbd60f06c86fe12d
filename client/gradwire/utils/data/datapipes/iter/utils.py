"""``torch.utils.data.datapipes.iter.utils``: the longer names of steps."""

from ..datapipe import IterableWrapper as IterableWrapperIterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]
