"""``vmap``: a function of one sample, applied to many at once.

The function runs once, on proxies that have the shapes of one sample; the server computes every op for all samples.
Nothing waits: a mapped computation is one round trip when a result is read.

The steps have the names and arguments that they have in PyTorch. A library whose classes hold tensors replaces them in
``torch._functorch.vmap``, and what stands there is used.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from gradwire_protocol.errors import ArgumentError, ArgumentValueError
from gradwire_protocol.ops.batching import RANDOMNESS
from gradwire_protocol.table import TABLE

from ..context.modes import MODES
from ..context.pytree import TreeSpec, broadcast_prefix, tree_flatten, tree_unflatten
from ..dispatch.dispatch import call
from ..dispatch.mapped_tensors import batch, materialize, unbatch
from ..graph.vmap_levels import VmapLevel, mapped
from ..tensor.tensor import Tensor

__all__ = ["materialize", "vmap"]

Dim = int | None
Given = ParamSpec("Given")
Returned = TypeVar("Returned")
_STEPS: Final = "gradwire._functorch.vmap"
"""The module in which libraries replace steps."""


def vmap(
    func: Callable[Given, Returned],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[Given, Returned]:
    """A function that maps ``func`` over a dimension of its arguments.

    Args:
        func: takes tensors, or tuples, lists and dicts of them, as they are for one sample; returns such, too.
        in_dims: the dimension to map over of each argument: an int for all, or a tuple with one entry per argument,
            each an int, ``None`` (not mapped: every sample gets the whole) or a structure like the argument. Keyword
            arguments are not mapped.
        out_dims: where the mapped dimension goes in each result: an int, ``None`` for a result that is not mapped, or
            a structure like the results.
        randomness: what random ops do: ``"error"`` refuses them, ``"different"`` draws for each sample, ``"same"``
            once for all.
        chunk_size: map over at most this many samples at a time, for less memory.

    Raises:
        ArgumentValueError: when the mapped function is called with ``in_dims`` that do not fit its arguments, or
            ``out_dims`` its results; for a ``chunk_size`` that is not positive.
        ArgumentError: for an unknown ``randomness``, and inside for what cannot be mapped: ``item()`` and its kin,
            results whose shape depends on data, and in-place writes of samples to a tensor they share.
    """
    if randomness not in RANDOMNESS:
        raise ArgumentError(f"vmap: randomness is one of {', '.join(map(repr, RANDOMNESS))}, not {randomness!r}")
    if chunk_size is not None and chunk_size <= 0:
        raise ArgumentValueError(f"vmap: chunk_size is None or positive, not {chunk_size}")

    @functools.wraps(func)
    def mapped_function(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _step("_process_batched_inputs")(in_dims, args, func)
        if chunk_size is None or chunk_size >= size:
            return _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs)
        return _run_in_chunks(func, leaves, dims, spec, size, out_dims, randomness, kwargs, chunk_size)

    return mapped_function


def _step(name: str) -> Callable[..., Any]:
    """A step of a map: the one of this module, or what a library has put into its place."""
    steps = sys.modules.get(_STEPS)
    return globals()[name] if steps is None else getattr(steps, name)


def _get_name(func: Any) -> str:
    return getattr(func, "__name__", type(func).__name__)


# Arguments


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Any
) -> tuple[int, list[Dim], list[Any], TreeSpec]:
    """The number of samples, the mapped dimension of each leaf of the arguments, the leaves, and their structure."""
    leaves, spec = tree_flatten(args)
    dims = _in_dims(func, in_dims, args, leaves, spec)
    return _size(leaves, dims), dims, leaves, spec


def _entered(level: int) -> VmapLevel:
    return next(one for one in MODES.maps if one.level == level)


def _add_batch_dim(tensor: Any, in_dim: int, level: int) -> Any:
    """A tensor with one dimension mapped over by the map that runs at a level."""
    return batch(tensor, in_dim, _entered(level))


def _create_batched_inputs(flat_in_dims: list[Dim], flat_args: list[Any], vmap_level: int, args_spec: TreeSpec) -> Any:
    """The arguments as they are for one sample."""
    samples = [
        leaf if dim is None else _add_batch_dim(leaf, dim, vmap_level)
        for leaf, dim in zip(flat_args, flat_in_dims, strict=True)
    ]
    return tree_unflatten(samples, args_spec)


def _in_dims(func: Any, in_dims: Any, args: tuple[Any, ...], leaves: list[Any], spec: TreeSpec) -> list[Dim]:
    """The mapped dimension of each leaf, counted from the front."""
    name = _get_name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ArgumentValueError(
            f"vmap of {name}: in_dims is an int, or a tuple with an entry for each argument, not {in_dims!r} of type "
            f"{type(in_dims).__name__}"
        )
    if not args:
        raise ArgumentValueError(f"vmap of {name}: it was called without positional arguments, which are what it maps")
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise ArgumentValueError(
            f"vmap of {name}: in_dims {in_dims!r} does not have the structure of the arguments, {spec!r}"
        )
    return [_in_dim(name, dim, leaf) for dim, leaf in zip(dims, leaves, strict=True)]


def _in_dim(name: str, dim: Any, leaf: Any) -> Dim:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ArgumentValueError(f"vmap of {name}: an entry of in_dims is an int or None, not {dim!r}")
    if not isinstance(leaf, Tensor):
        raise ArgumentValueError(
            f"vmap of {name}: in_dims has {dim} for an argument of type {type(leaf).__name__}; only tensors are "
            "mapped, say None for it"
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ArgumentValueError(
            f"vmap of {name}: in_dims has {dim} for a tensor of shape {list(leaf.shape)}, which has dimensions "
            f"{-leaf.ndim} to {leaf.ndim - 1}"
            if leaf.ndim
            else f"vmap of {name}: in_dims has {dim} for a 0-dim tensor, which has no dimension to map over"
        )
    return dim + leaf.ndim if dim < 0 else dim


def _size(leaves: list[Any], dims: list[Dim]) -> int:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ArgumentValueError("vmap: in_dims maps over none of the arguments, it must map over at least one tensor")
    if len(set(sizes)) > 1:
        raise ArgumentValueError(f"vmap: the mapped dimensions of the arguments have different sizes, {sizes}")
    return int(sizes[0])


# Running


def _run(
    func: Any, leaves: list[Any], dims: list[Dim], spec: TreeSpec, size: int, out_dims: Any, randomness: str,
    kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    with mapped(size, randomness) as entered:
        samples = _step("_create_batched_inputs")(dims, leaves, entered.level, spec)
        return _step("_unwrap_batched")(func(*samples, **kwargs), out_dims, entered.level, size, func)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Any) -> Any:
    """The results of one sample as results of all."""
    found, spec = tree_flatten(batched_outputs)
    places = _out_dims(func, out_dims, found, spec)
    name = _get_name(func)
    results = [
        _maybe_remove_batch_dim(name, result, vmap_level, batch_size, place)
        for result, place in zip(found, places, strict=True)
    ]
    return tree_unflatten(results, spec)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: Dim) -> Any:
    """A result with its mapped dimension in a place, or as it is where that is None.

    Raises:
        ArgumentValueError: for what is no tensor, and for None where samples differ.
    """
    if out_dim is None:
        if isinstance(batched_output, Tensor) and vmap_level in batched_output._levels:
            raise ArgumentValueError(
                f"vmap of {name}: out_dims has None for a result that differs between samples: say where its mapped "
                "dimension goes"
            )
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ArgumentValueError(
            f"vmap of {name}: it must return tensors, not {type(batched_output).__name__}, unless out_dims has None "
            "for what is none"
        )
    return unbatch(batched_output, vmap_level, out_dim, batch_size)


def _out_dims(func: Any, out_dims: Any, found: list[Any], spec: TreeSpec) -> list[Dim]:
    given = tree_flatten(out_dims)[0]
    if not all(dim is None or isinstance(dim, int) for dim in given):
        raise ArgumentValueError(
            f"vmap of {_get_name(func)}: out_dims is an int, None, or a structure of them like the results, not "
            f"{out_dims!r}"
        )
    if spec.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return list(given)
    dims = broadcast_prefix(out_dims, spec)
    if dims is None:
        raise ArgumentValueError(
            f"vmap of {_get_name(func)}: out_dims {out_dims!r} does not have the structure of the results, {spec!r}"
        )
    return dims


def _run_in_chunks(
    func: Any, leaves: list[Any], dims: list[Dim], spec: TreeSpec, size: int, out_dims: Any, randomness: str,
    kwargs: dict[str, Any], chunk_size: int,
) -> Any:  # fmt: skip
    state = call("get_rng_state") if randomness == "same" else None
    parts = []
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        chunk = [
            leaf if dim is None else _part(leaf, dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        if state is not None:
            state._session.record(TABLE["set_rng_state"], [state], 0)
        parts.append(tree_flatten(_run(func, chunk, dims, spec, count, out_dims, randomness, kwargs)))
    found, out_spec = parts[0]
    places = _out_dims(func, out_dims, found, out_spec)
    columns = zip(*(results for results, _ in parts), strict=True)
    joined = [
        column[0] if dim is None else call("cat", list(column), dim)
        for column, dim in zip(columns, places, strict=True)
    ]
    return tree_unflatten(joined, out_spec)


def _part(leaf: Any, dim: int, start: int, count: int) -> Any:
    """Some of the samples of an argument."""
    if isinstance(leaf, Tensor):
        return call("narrow", leaf, dim, start, count)
    return leaf[(*[slice(None)] * dim, slice(start, start + count))]
