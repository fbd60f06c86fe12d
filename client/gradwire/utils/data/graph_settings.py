"""``torch.utils.data.graph_settings``: settings of all steps of a stream."""

from __future__ import annotations

from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe, Shuffler

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def _steps(datapipe: Any) -> list[Any]:
    """A pipe and those that it takes entries from."""
    found = [datapipe]
    for value in vars(datapipe).values():
        if isinstance(value, (IterDataPipe, MapDataPipe)):
            found += _steps(value)
    return found


def get_all_graph_pipes(graph: Any) -> list[Any]:
    """The pipes of a graph that :func:`torch.utils.data.graph.traverse_dps` gives."""
    found: dict[int, Any] = {}
    for number, (pipe, below) in graph.items():
        found[number] = pipe
        found.update({id(each): each for each in get_all_graph_pipes(below)})
    return list(found.values())


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn shuffling on or off in all steps; a step is added where there is none and ``shuffle`` is true."""
    if shuffle is None:
        return datapipe
    shufflers = [step for step in _steps(datapipe) if hasattr(step, "set_shuffle")]
    if shuffle and not shufflers:
        return Shuffler(datapipe)
    for step in shufflers:
        step.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give all steps with random numbers seeds of a generator."""
    from ..._core.surface.creation import randint

    draw: Any = randint

    for step in _steps(datapipe):
        if hasattr(step, "set_seed"):
            step.set_seed(int(draw(0, 2**31 - 1, (1,), generator=rng).item()))
    return datapipe


apply_shuffle_seed = apply_random_seed


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> Any:
    """Have steps that can, give a share of their entries."""
    for step in _steps(datapipe):
        if hasattr(step, "apply_sharding"):
            step.apply_sharding(num_of_instances, instance_id)
    return datapipe
