"""``torch.distributed.algorithms.ddp_comm_hooks.default_hooks``: names that are refused where they are called."""

from ...refused import fill

fill(__name__)
