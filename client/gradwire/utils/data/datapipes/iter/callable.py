"""``torch.utils.data.datapipes.iter.callable``: the longer names of steps."""

from ..datapipe import Collator as CollatorIterDataPipe
from ..datapipe import Mapper as MapperIterDataPipe

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]
