"""``torch.distributed.distributed_c10d``: where PyTorch defines most of what :mod:`gradwire.distributed` has."""

from __future__ import annotations

from typing import Any

from .. import distributed as _distributed
from .process_group import WORLD, ProcessGroup, default_group

__all__ = sorted(_distributed.__all__)
globals().update({name: getattr(_distributed, name) for name in (*__all__, "_rank_not_in_group", "rendezvous")})

_get_default_group = default_group


def _get_group_size(group: Any) -> int:
    """How many ranks a group has."""
    return _distributed.get_world_size(group)


def _get_pg_default_device(group: Any = None) -> Any:
    """Where objects travel: anywhere."""
    from .._core.context.size import device

    return device("cpu")


class _World:
    """What PyTorch knows of groups, as libraries look at it."""

    @property
    def default_pg(self) -> ProcessGroup | None:
        """The group of all ranks."""
        return WORLD.default

    @property
    def pg_map(self) -> dict[ProcessGroup, tuple[str, None]]:
        """The groups, with their backends."""
        return {group: (group.name(), None) for group in WORLD.groups}

    @property
    def pg_names(self) -> dict[ProcessGroup, str]:
        """The groups, with their names."""
        return {group: group.group_name for group in WORLD.groups}

    @property
    def pg_group_ranks(self) -> dict[ProcessGroup, dict[int, int]]:
        """The groups, with the places of their ranks."""
        return {group: {rank: at for at, rank in enumerate(group.ranks)} for group in WORLD.groups}


_world = _World()


def __getattr__(name: str) -> Any:
    if name in ("_pg_map", "_pg_names", "_pg_group_ranks"):
        return getattr(_world, name[1:])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
