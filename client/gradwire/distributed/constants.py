"""``torch.distributed.constants``: the time limit of groups that name none."""

from .process_group import default_pg_timeout

default_pg_nccl_timeout = default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
