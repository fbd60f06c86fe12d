"""``torch.utils.data.datapipes.iter``: streams. Those that are rarely used are refused where they are made."""

from ....._core.surface.stand_ins import stand_ins as _stand_ins
from ..datapipe import Batcher, Collator, Filter, IterableWrapper, Mapper, Shuffler

_REFUSED = _stand_ins(
    __name__, "Concater Demultiplexer FileLister FileOpener Forker Grouper Multiplexer RoutedDecoder Sampler "
    "ShardingFilter StreamReader UnBatcher Zipper", "an IterableDataset gives the entries that a program wants",
)  # fmt: skip
globals().update(_REFUSED)

__all__ = ["Batcher", "Collator", "Filter", "IterableWrapper", "Mapper", "Shuffler"]
__all__ += sorted(_REFUSED)
