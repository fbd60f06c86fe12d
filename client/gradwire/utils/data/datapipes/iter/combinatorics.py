"""``torch.utils.data.datapipes.iter.combinatorics``: the longer names of steps."""

from ..datapipe import Shuffler as ShufflerIterDataPipe

__all__ = ["ShufflerIterDataPipe"]
