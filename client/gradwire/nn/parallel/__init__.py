"""``torch.nn.parallel``: a module on several devices, or in several programs that train together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data_parallel import DataParallel, data_parallel

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":  # imported at first mention, with all of torch.distributed
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
