"""A custom Function inside ``vmap``: by its own ``vmap`` method, or by mapping what it does anyway."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError

from ..context.modes import MODES
from ..context.pytree import broadcast_prefix, tree_flatten, tree_unflatten
from ..dispatch.mapped_tensors import batch, unbatch
from ..graph.vmap_levels import VmapLevel
from ..tensor.tensor import Tensor


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
    """Call a Function's ``vmap`` method with the samples of the innermost map that some argument is mapped in.

    Arguments and results may be structures of tensors; ``in_dims`` has the structure of the arguments.

    Raises:
        ArgumentError: when the method returns something else than a pair of results and ``out_dims`` that fit them.
    """
    leaves, spec = tree_flatten(args)
    maps = MODES.maps
    entered = next((m for m in reversed(maps) if any(_is_mapped(a, m) for a in leaves)), None)
    MODES.maps = maps[: maps.index(entered)] if entered is not None else ()
    try:
        if entered is None:
            return cls.apply(*args)
        in_dims = tree_unflatten([0 if _is_mapped(a, entered) else None for a in leaves], spec)
        whole = [unbatch(a, entered.level, 0, entered.size) if _is_mapped(a, entered) else a for a in leaves]
        returned = rule(VmapInfo(entered.size, entered.randomness), in_dims, *tree_unflatten(whole, spec))
    finally:
        MODES.maps = maps
    if not isinstance(returned, tuple) or len(returned) != 2:
        what = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else type(returned).__name__
        raise ArgumentError(f"{cls.__name__}.vmap must return the pair (output, out_dims), not {what}")
    output, out_dims = returned
    results, out_spec = tree_flatten(output)
    dims = broadcast_prefix(out_dims, out_spec)
    if dims is None:
        raise ArgumentError(
            f"{cls.__name__}.vmap returned out_dims {out_dims!r}, which do not fit the structure of its output: "
            f"{out_spec!r}"
        )
    return tree_unflatten([_entered(o, d, entered) for o, d in zip(results, dims, strict=True)], out_spec)


def _is_mapped(value: Any, entered: VmapLevel) -> bool:
    return isinstance(value, Tensor) and entered.level in value._levels


def _entered(output: Any, dim: int | None, entered: VmapLevel) -> Any:
    return output if dim is None or not isinstance(output, Tensor) else batch(output, dim, entered)
