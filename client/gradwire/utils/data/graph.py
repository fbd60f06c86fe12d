"""``torch.utils.data.graph``: which steps a stream is made of."""

from __future__ import annotations

from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def traverse_dps(datapipe: Any) -> dict[int, tuple[Any, Any]]:
    """By id of a pipe: the pipe, and the same for those that it takes entries from."""
    below: dict[int, tuple[Any, Any]] = {}
    for value in vars(datapipe).values():
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            below.update(traverse_dps(value))
    return {id(datapipe): (datapipe, below)}


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> dict[int, tuple[Any, Any]]:
    """The older name of :func:`traverse_dps`."""
    return traverse_dps(datapipe)
