"""``torch.distributed._tensor``: the former place of ``torch.distributed.tensor``."""

from ..refused import fill
from ..tensor.placement_types import Partial as Partial
from ..tensor.placement_types import Placement as Placement
from ..tensor.placement_types import Replicate as Replicate
from ..tensor.placement_types import Shard as Shard

fill(__name__)
