"""``torch.distributed.algorithms._checkpoint``: modules whose intermediate results are computed again in backward."""

from . import checkpoint_wrapper

__all__ = ["checkpoint_wrapper"]
