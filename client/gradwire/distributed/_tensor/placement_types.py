"""``torch.distributed._tensor.placement_types``: the former place of ``torch.distributed.tensor.placement_types``."""

from ..tensor.placement_types import Partial as Partial
from ..tensor.placement_types import Placement as Placement
from ..tensor.placement_types import Replicate as Replicate
from ..tensor.placement_types import Shard as Shard
from ..tensor.placement_types import _Partial as _Partial
from ..tensor.placement_types import _StridedShard as _StridedShard
