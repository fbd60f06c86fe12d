"""Tensors inside ``vmap``: entering and leaving a map, and what an op recorded inside one must not do. What is known
of maps is in :mod:`..graph.vmap_levels`."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.dtypes import bool_, float64, uint8
from gradwire_protocol.errors import ArgumentError

from ..context.modes import MODES
from ..graph.forward_levels import duals_of
from ..graph.recorded_call import OpBinding
from ..graph.vmap_levels import Levels, OutsideMaps, VmapLevel, levels_of
from ..tensor.tensor import Tensor
from . import dispatch
from .dual_tensors import make_dual, primal_of, tangent_of


def batch(tensor: Tensor, dim: int, entered: VmapLevel) -> Any:
    """The tensor with one dimension mapped over."""
    with OutsideMaps():
        made = dispatch.call("batch", tensor, dim, entered.level, entered.randomness)
    made._levels = tuple(sorted((*tensor._levels, entered.level)))
    return made


def unbatch(tensor: Tensor, level: int, dim: int, size: int) -> Any:
    """The tensor with the dimension mapped at a level in its place again; one not mapped there is repeated."""
    with OutsideMaps():
        made = dispatch.call("unbatch", tensor, level, dim, size)
    made._levels = tuple(n for n in tensor._levels if n != level)
    return made


def materialize(tensor: Tensor) -> Any:
    """The tensor, mapped at every level that is active now; it is repeated where it was not.

    Derivatives inside ``vmap`` are per sample only for what is mapped: a gradient for a tensor that all samples share
    would be the sum over them. ``gradwire.func.grad`` and its kin therefore call this on their inputs. Without an
    active ``vmap`` it is the tensor itself.
    """
    if tensor._duals and not all(m.level in tensor._levels for m in MODES.maps):
        return _materialized_dual(tensor)
    return _materialized(tensor)


def _materialized(tensor: Any) -> Any:
    for entered in MODES.maps:
        if entered.level not in tensor._levels:
            with OutsideMaps():
                full = dispatch.call("expand", dispatch.call("unsqueeze", tensor, 0), (entered.size, *tensor.shape))
            full._levels = tensor._levels
            tensor = batch(full, 0, entered)
    return tensor


def with_samples_of(tensor: Any, other: Any) -> Any:
    """The values for each sample of the maps that the other tensor is mapped in, in memory of their own."""

    for entered in MODES.maps:
        if entered.level in other._levels and entered.level not in tensor._levels:
            with OutsideMaps():
                full = dispatch.call(
                    "clone",
                    dispatch.call("expand", dispatch.call("unsqueeze", tensor, 0), (entered.size, *tensor.shape)),
                )
            full._levels = tensor._levels
            tensor = batch(full, 0, entered)
    return tensor


def _materialized_dual(tensor: Any) -> Any:
    """A dual tensor mapped together with its tangents, which may be mapped already where it is not."""
    levels = sorted(duals_of(tensor), key=lambda level: level.number(tensor._session))
    if not levels:
        return _materialized(tensor)
    inner = levels[-1]
    return make_dual(materialize(primal_of(tensor, inner)), materialize(tangent_of(tensor, inner)), inner)


def prepare(entry: OpBinding, values: list[Any]) -> Levels:
    """Check an op that is recorded inside a map. Returns the levels of its results.

    Raises:
        ArgumentError: for random ops where the map forbids them, for writes that several samples would make to one
            place, and for ops whose result's shape depends on data that differs between samples.
    """
    op = entry.op
    if op.random and _draws(entry, values):
        _prepare_random(entry, values)
    levels = levels_of(entry, values)
    if op.control:
        return levels if op.name not in ("shape_of", "offset_of") else ()
    if op.mutates is not None:
        shared = set(levels) - set(values[0]._levels)
        if shared:
            raise ArgumentError(
                f"{op.name}: the {values[0]._form!r} tensor written to is the same for all samples of the vmap, and "
                "what is written differs between them: use the out-of-place form"
            )
    if op.dynamic and levels:
        _check_dynamic(entry, values)
    if "running_mean" in op.positions and levels:
        _check_running(entry, values)
    return levels


def _draws(entry: OpBinding, values: list[Any]) -> bool:
    positions = entry.op.positions
    if "training" in positions:
        return bool(values[positions["training"]]) and values[positions["p"]] != 0
    return True


def _prepare_random(entry: OpBinding, values: list[Any]) -> None:
    _refuse_randomness(entry)
    target = values[0] if entry.op.mutates is not None else None
    different = [m for m in MODES.maps if m.randomness == "different"]
    if target is not None:
        if any(m.level not in target._levels for m in different):
            raise ArgumentError(
                f"{entry.op.name}: randomness='different' would write different numbers for each sample into a "
                f"{target._form!r} tensor that all of them share"
            )
    elif different:
        for i in entry.tensors:
            if hasattr(values[i], "_levels"):
                values[i] = materialize(values[i])


def _refuse_randomness(entry: OpBinding) -> None:
    if any(m.randomness == "error" for m in MODES.maps):
        raise ArgumentError(
            f"{entry.op.name} draws random numbers inside vmap(randomness='error'): say randomness='different' for "
            "numbers that differ between samples, or 'same'"
        )


def _check_dynamic(entry: OpBinding, values: list[Any]) -> None:
    op = entry.op
    masks: list[Any] = []
    if op.name == "index":
        masks = [i for i in values[1] if i is not None and i.dtype in (bool_, uint8)]
    elif op.name == "masked_select":
        masks = [values[1]]
    elif op.name == "one_hot" and values[1] >= 0:
        return
    else:
        masks = [v for v in values if hasattr(v, "_levels")]
    if any(m._levels for m in masks):
        raise ArgumentError(
            f"{op.name}: the shape of its result depends on data that differs between the samples of a vmap, which "
            "must all have one shape: use where(), or give the size"
        )


def _check_running(entry: OpBinding, values: list[Any]) -> None:
    """Running averages are written to, like the target of an in-place op."""
    positions = entry.op.positions
    running = values[positions["running_mean"]]
    trains = values[positions["training" if "training" in positions else "use_input_stats"]]
    if trains and running is not None and set(values[0]._levels) - set(running._levels):
        raise ArgumentError(
            f"{entry.op.name}: running averages that all samples of a vmap share would be moved by each of them: use "
            "eval(), track_running_stats=False, or map over the averages, too"
        )


def draw(entry: OpBinding, values: list[Any]) -> Any:
    """Random numbers made inside a map without an operand: of each sample's own where they are to differ."""

    _refuse_randomness(entry)
    op = entry.op
    different = [m for m in MODES.maps if m.randomness == "different"]
    sizes = tuple(m.size for m in different)
    with OutsideMaps():
        if op.name == "randperm" and different:
            n, dtype, device = values
            made = dispatch.call("argsort", dispatch.call("rand", (*sizes, n), float64, device), -1)
            made = dispatch.call("to", made, dtype)
        else:
            at = op.positions.get("size")
            if at is not None and values[at] is not None:
                values[at] = (*sizes, *values[at])
            made = dispatch.run(entry, values)
    for entered in different:
        made = batch(made, 0, entered)
    return made


def describe(tensor: Tensor) -> str:
    """A mapped tensor as text, with the values of all samples. Costs a round trip."""
    level = tensor._levels[-1]
    size = next((m.size for m in MODES.maps if m.level == level), None)
    if size is None:
        return f"BatchedTensor(lvl={level}, outside of the vmap it belongs to, {tensor._form!r})"
    inner = repr(unbatch(tensor, level, 0, size)).replace("\n", "\n    ")
    return f"BatchedTensor(lvl={level}, bdim=0, value=\n    {inner}\n)"
