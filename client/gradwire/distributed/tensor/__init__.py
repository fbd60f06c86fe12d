"""``torch.distributed.tensor``: placements, and names that are refused where they are called."""

from ..refused import fill
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard

fill(__name__)
