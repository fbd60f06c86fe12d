"""A custom Function inside ``vmap``: by its own ``vmap`` method, or by mapping what it does anyway."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError

from ..mapping import Map, batch, unbatch
from ..modes import MODES
from ..tensor import Tensor


class VmapInfo(NamedTuple):
    """What the ``vmap`` method of a Function is told: how many samples there are, and the map's ``randomness``."""

    batch_size: int
    randomness: str


def rule_of(cls: Any, function: type[Any]) -> Any:
    """The ``vmap`` method of a Function, or None where its forward and backward are to be mapped as they are.

    ``function`` is the class that all derive from.

    Raises:
        ArgumentError: when it has neither, both, or no ``setup_context``.
    """
    own = cls.vmap is not function.vmap
    if cls.setup_context is function.setup_context:
        raise ArgumentError(f"{cls.__name__} cannot be used inside vmap: it needs a static method setup_context")
    if own and cls.generate_vmap_rule:
        raise ArgumentError(f"{cls.__name__} has generate_vmap_rule=True and a vmap method: it must be one of them")
    if not own and not cls.generate_vmap_rule:
        raise ArgumentError(
            f"{cls.__name__} cannot be used inside vmap: give it generate_vmap_rule = True, or a static method vmap"
        )
    return cls.vmap if own else None


def apply_rule(cls: Any, rule: Any, args: tuple[Any, ...]) -> Any:
    """Call a Function's ``vmap`` method with the samples of the innermost map that some argument is mapped in."""
    maps = MODES.maps
    entered = next((m for m in reversed(maps) if any(_is_mapped(a, m) for a in args)), None)
    MODES.maps = maps[: maps.index(entered)] if entered is not None else ()
    try:
        if entered is None:
            return cls.apply(*args)
        in_dims = tuple([0 if _is_mapped(a, entered) else None for a in args])
        whole = [unbatch(a, entered.level, 0, entered.size) if _is_mapped(a, entered) else a for a in args]
        output, out_dims = rule(VmapInfo(entered.size, entered.randomness), in_dims, *whole)
    finally:
        MODES.maps = maps
    if not isinstance(output, tuple):
        return _entered(output, out_dims, entered)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(output)
    if len(dims) != len(output):
        raise ArgumentError(f"{cls.__name__}.vmap returned {len(output)} results and {len(dims)} out_dims")
    return tuple([_entered(o, d, entered) for o, d in zip(output, dims, strict=True)])


def _is_mapped(value: Any, entered: Map) -> bool:
    return isinstance(value, Tensor) and entered.level in value._levels


def _entered(output: Any, dim: int | None, entered: Map) -> Any:
    return output if dim is None or not isinstance(output, Tensor) else batch(output, dim, entered)
