"""What the control ops of a backward with client callbacks do."""

from __future__ import annotations

from typing import Any
from weakref import ref

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, GraphError, LimitExceeded

from ..autograd.backward import backward
from ..autograd.client_callbacks import Backward, ClientCallbacks, ClientNode
from ..autograd.engine_context import EngineContext
from ..autograd.inplace import keep_watching
from ..autograd.regions import RecomputedRegion
from ..autograd.registry import control
from ..autograd.tape import Node, SavedTensor, edge_of, join
from ..autograd.tensor import Tensor
from ..autograd.vmap.functions import as_mapped
from .control import edges_of, receive_gradients, roots_of, wanted_gradients

SUSPENDED_AT_ONCE = 1000
"""Backwards of one session that have begun and not ended: callbacks may call backward in turn."""


def _empty(engine: EngineContext, dtype: DType | None, device: str) -> Tensor:
    made: Tensor = engine.call("empty", (0,), dtype=dtype, device=device)
    return made


def _node_of(place: Tensor) -> Any:
    edge = edge_of(place)
    if edge is None:
        raise GraphError(f"a {place.meta!r} tensor without history is not part of a graph")
    return edge[0]


@control("place_of")
def place_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    place = _empty(engine, tensor.dtype, tensor.device)
    place.grad_fn, place.slot = _node_of(tensor), tensor.slot
    return place


@control("next_place")
def next_place(engine: EngineContext, tensor: Tensor, edge: int) -> Tensor:
    edges = _node_of(tensor).edges
    if edge >= len(edges) or edges[edge] is None:
        raise ArgumentError(f"{_node_of(tensor).name} has no edge {edge}")
    place = _empty(engine, tensor.dtype, tensor.device)
    place.grad_fn, place.slot = edges[edge]
    return place


@control("rejoin")
def rejoin(engine: EngineContext, tensor: Tensor, place: Tensor, slot: int) -> Tensor:
    node: Any = _node_of(place)
    if not 0 <= slot < len(node.outs) or node.outs[slot].shape != tensor.shape:
        raise ArgumentError(f"{node.name} has no output {slot} of shape {list(tensor.shape)}")
    joined = Tensor(engine, tensor.array, tensor.meta, tensor.storage, tensor.offset)
    join(joined, (node, slot))
    return joined


@control("bump_version", planned=True)
def bump_version(engine: EngineContext, tensor: Tensor) -> None:
    if engine.undo is not None:
        storage, version = tensor.storage, tensor.storage.version
        engine.undo.later(lambda: setattr(storage, "version", version))
    tensor.storage.version += 1


@control("attach_function")
def attach_function(
    engine: EngineContext,
    name: str,
    inputs: list[Tensor],
    outputs: list[Tensor | None],
    attached: tuple[int, ...],
    changed: tuple[int, ...],
) -> Tensor:
    blank = _empty(engine, inputs[0].dtype, inputs[0].device)
    outs = tuple([blank.meta if t is None else t.meta for t in outputs])
    edges = tuple([edge_of(t) if t.dtype.carries_gradient else None for t in inputs])
    node: Any = ClientNode(name, edges, outs, engine.new_node_seq(), engine.account, engine.position)
    engine.account.check_nodes()
    if engine.undo is not None:
        for i in (*changed, *attached):
            if (output := outputs[i]) is not None:
                bump_version(engine, output)
                output.storage.version -= 1
                engine.undo.note(output)
    for i in changed:
        output = outputs[i]
        assert output is not None
        if output.base is not None:
            raise GraphError(f"{name} modifies a view in place, which a custom Function cannot do")
        output.storage.version += 1
    for i in attached:
        output = outputs[i]
        assert output is not None
        before = output._grad_fn, output.slot
        output.grad_fn, output.slot, output.requires_grad_flag = node, i, False
        keep_watching(output, *before)
        output.seen_version = output.storage.version
    place = _empty(engine, inputs[0].dtype, inputs[0].device)
    place.grad_fn = node
    return place


@control("begin_backward", backward=True)
def begin_backward(
    engine: EngineContext,
    tensors: list[Tensor],
    gradients: list[Tensor | None],
    inputs: list[Tensor] | None,
    places: list[Tensor],
    stages: tuple[int, ...],
    retain_graph: bool | None,
    create_graph: bool,
    accumulate: bool,
) -> Tensor:
    begun = sum(type(named) is Backward for _, named in engine.handles.values())
    if begun >= SUSPENDED_AT_ONCE:
        raise LimitExceeded(
            f"{begun} backwards are unfinished, the maximum; avoid unbounded recursion of backward in its own "
            "callbacks",
            limit=SUSPENDED_AT_ONCE,
        )
    if accumulate:
        receive_gradients(engine, inputs or [])
    generator = backward(
        engine,
        roots_of(engine, tensors, gradients),
        None if inputs is None else edges_of(inputs),
        retain_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        pauses=ClientCallbacks([_place_named(engine, p) for p in places], list(stages)),
        accumulate=accumulate,
    )
    return _handle(engine, Backward(engine, generator, inputs, accumulate, create_graph))


def _handle(engine: EngineContext, named: Any) -> Tensor:
    """A tensor without elements that names something for a client, for as long as the client holds it."""
    handle = _empty(engine, None, "cpu")
    let_name(engine, handle, named)
    return handle


def let_name(engine: EngineContext, handle: Tensor, named: Any) -> None:
    """Let a tensor be the handle of something."""
    number, handles = id(handle), engine.handles
    handles[number] = (ref(handle, lambda _: handles.pop(number, None)), named)


def _run_of(engine: EngineContext, handle: Tensor) -> Backward:
    found = engine.handles.get(id(handle))
    if found is None or type(found[1]) is not Backward:
        raise GraphError("this backward has ended or was never started")
    if engine.undo is not None:
        engine.undo.use(id(handle))
    run: Backward = found[1]
    return run


def _region_of(engine: EngineContext, handle: Tensor) -> RecomputedRegion:
    found = engine.handles.get(id(handle))
    if found is None or type(found[1]) is not RecomputedRegion:
        raise ArgumentError(f"a {handle.meta!r} tensor is not a region")
    region: RecomputedRegion = found[1]
    return region


def _place_named(engine: EngineContext, place: Tensor) -> Any:
    found = engine.handles.get(id(place))
    return found[1] if found is not None and type(found[1]) is RecomputedRegion else _node_of(place)


@control("saved_of")
def saved_of(
    engine: EngineContext, place: Tensor, name: str, shape: tuple[int, ...], stride: tuple[int, ...], dtype: DType,
    at: int,
) -> Tensor:  # fmt: skip
    node = _node_of(place)
    node = getattr(node, "inner", node)
    saved: dict[str, Any] | None = getattr(node, "saved", {})
    if saved is None:
        raise GraphError(f"what {node.name} saved was freed by an earlier backward; pass retain_graph=True there")
    name = _saved_name(saved, name)
    kept = saved.get(name)
    if type(kept) is list:
        kept = kept[at] if 0 <= at < len(kept) else None
    if type(kept) is SavedTensor:
        kept = kept.unpack(node, name)
    position = node.row.op.positions.get(name) if isinstance(node, Node) else None
    if kept is None and position is not None:
        kept = node.values[position]
    if isinstance(kept, (bool, int, float, complex)):
        kept = engine.call("full", (), kept, dtype=dtype, device=place.device)
    if not isinstance(kept, Tensor) or (kept.shape, kept.meta.stride, kept.dtype) != (shape, stride, dtype):
        raise ArgumentError(f"{node.name} saved nothing of shape {list(shape)} as {name!r} at {at}")
    return kept


@control("let_go")
def let_go(engine: EngineContext, place: Tensor, names: tuple[str, ...], at: tuple[int, ...]) -> None:
    node = _node_of(place)
    saved = getattr(getattr(node, "inner", node), "saved", None)
    _note_saved(engine, saved)
    for label, i in zip(names, at, strict=True):
        name = _saved_name(saved or {}, label)
        if saved and name in saved:
            entry = saved[name]
            if type(entry) is list and 0 <= i < len(entry):
                entry[i] = None
            elif i < 0:
                saved[name] = None


@control("bring_back")
def bring_back(engine: EngineContext, place: Tensor, tensor: Tensor, name: str, at: int) -> None:
    node = _node_of(place)
    node = getattr(node, "inner", node)
    saved: dict[str, Any] = getattr(node, "saved", None) or {}
    _note_saved(engine, saved)
    name = _saved_name(saved, name)
    entry = saved.get(name, saved)
    if entry is saved or (type(entry) is list and not 0 <= at < len(entry)):
        raise ArgumentError(f"{node.name} saved nothing as {name!r} at {at}")
    is_result = name not in node.row.op.positions
    kept = SavedTensor(tensor, is_result)
    if is_result:
        kept.slot = int(name.removeprefix("result") or 0)
    if type(entry) is list:
        entry[at] = kept
    else:
        saved[name] = kept


def _note_saved(engine: EngineContext, saved: dict[str, Any] | None) -> None:
    """What a node keeps is about to change."""
    if engine.undo is not None and saved:
        before = {name: list(entry) if type(entry) is list else entry for name, entry in saved.items()}
        engine.undo.later(lambda: saved.update(before))


def _saved_name(saved: dict[str, Any], name: str) -> str:
    """A first result may have been saved as ``result`` or as ``result0``: in-place operations are told by either."""
    other = {"result": "result0", "result0": "result"}.get(name)
    return other if other is not None and other in saved and name not in saved else name


@control("new_region")
def new_region(engine: EngineContext, source: Tensor | None) -> Tensor:
    return _handle(engine, RecomputedRegion(None if source is None else _region_of(engine, source)))


@control("set_region")
def set_region(engine: EngineContext, region: Tensor | None) -> None:
    if engine.region is not None:
        engine.region.settle()
    engine.region = None if region is None else _region_of(engine, region)


@control("hand_over")
def hand_over(engine: EngineContext, handle: Tensor) -> None:
    region = _region_of(engine, handle)
    if region.source is None:
        raise ArgumentError("a region without a source has no saved values")
    region.hand_over()


@control("forget_region")
def forget_region(engine: EngineContext, handle: Tensor) -> None:
    _region_of(engine, handle).forget()


@control("advance", backward=True)
def advance(
    engine: EngineContext, handle: Tensor, step: int, supplied: list[Tensor | None], results: int,
    removed: tuple[int, ...],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    call, _ = _run_of(engine, handle).advance(engine, step, supplied, removed)
    if call is None:
        raise GraphError("backward ended before the expected pause")
    return tuple(call.tensors[:results])


@control("finish_backward", backward=True)
def finish_backward(
    engine: EngineContext,
    handle: Tensor,
    step: int,
    supplied: list[Tensor | None],
    allow_unused: bool,
    materialize_grads: bool,
    removed: tuple[int, ...],
) -> tuple[Tensor | None, ...]:
    run = _run_of(engine, handle)
    call, results = run.advance(engine, step, supplied, removed)
    engine.handles.pop(id(handle), None)
    if call is not None:
        run.close()
        raise GraphError(f"backward pauses at {call.node.name} instead of ending")
    if run.accumulate:
        return ()
    found = wanted_gradients(engine, run.inputs or [], results, allow_unused, materialize_grads)
    if run.result_maps is None:
        return found
    return tuple([None if g is None else as_mapped(g, m) for g, m in zip(found, run.result_maps, strict=True)])


@control("abandon_backward")
def abandon_backward(engine: EngineContext, handle: Tensor) -> None:
    found = engine.handles.pop(id(handle), None)
    if found is not None:
        found[1].close()
