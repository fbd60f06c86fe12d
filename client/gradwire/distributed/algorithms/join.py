"""``torch.distributed.algorithms.join``: names that are refused where they are called."""

from . import Join as Join  # type: ignore[attr-defined]  # names that `fill` gives
from . import Joinable as Joinable  # type: ignore[attr-defined]
from . import JoinHook as JoinHook  # type: ignore[attr-defined]
