"""``torch.utils.data.datapipes.map``: entries by index. Those that are rarely used are refused where they are made."""

from ....._core.surface.stand_ins import stand_ins as _stand_ins
from ..datapipe import MapMapper as Mapper
from ..datapipe import SequenceWrapper

_REFUSED = _stand_ins(__name__, "Batcher Concater Shuffler Zipper", "a Dataset gives the entries that a program wants")
globals().update(_REFUSED)

__all__ = ["Mapper", "SequenceWrapper"]
__all__ += sorted(_REFUSED)
