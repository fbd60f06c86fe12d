"""What the control ops do: backward, gradients, flags, names, random state."""

from __future__ import annotations

from collections.abc import Generator
from math import prod
from typing import Any

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GraphError,
    InternalError,
    LimitExceeded,
    NotFound,
    ShapeError,
)
from gradwire_protocol.frames import MAX_NAME_CHARS
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.ops.control import (
    ANOMALY_MODE,
    GRAD_MODE,
    INFERENCE_MODE,
    check_assigned_grad,
    check_can_require_grad,
)

from ..autograd.backward import backward, root_edge
from ..autograd.client_callbacks import CallbackRequest
from ..autograd.engine_context import EngineContext
from ..autograd.registry import control
from ..autograd.tape import Edge, edge_of
from ..autograd.tensor import Storage, Tensor
from ..runtime.arrays import Array


def _note(engine: EngineContext, tensor: Tensor) -> None:
    """Something that is known of a tensor, beside its values, is about to change."""
    if engine.undo is not None:
        engine.undo.note(tensor)


@control("set_mode", planned=True, settles=True)
def set_mode(engine: EngineContext, flags: int) -> None:
    engine.grad_enabled = bool(flags & GRAD_MODE) and not flags & INFERENCE_MODE
    engine.inference = bool(flags & INFERENCE_MODE)
    engine.anomaly = bool(flags & ANOMALY_MODE)


def roots_of(engine: EngineContext, tensors: list[Tensor], gradients: list[Tensor | None]) -> list[tuple[Edge, Tensor]]:
    """Where backward starts: the edges of the tensors, each with its initial gradient."""
    roots = []
    for tensor, gradient in zip(tensors, gradients, strict=True):
        if gradient is None:
            gradient = engine.call("ones", tensor.shape, dtype=tensor.dtype, device=tensor.device)
        elif gradient.dtype is not tensor.dtype:
            gradient = engine.call("to", gradient, dtype=tensor.dtype)
        roots.append((root_edge(tensor), gradient))
    return roots


def run_to_end(
    engine: EngineContext, run: Generator[CallbackRequest, Any, list[Tensor | None]], create_graph: bool
) -> list[Tensor | None]:
    """Run a backward that does not pause."""
    was_enabled, engine.grad_enabled = engine.grad_enabled, create_graph and not engine.inference
    try:
        call = next(run)
    except StopIteration as stop:
        results: list[Tensor | None] = stop.value
        return results
    finally:
        engine.grad_enabled = was_enabled
    run.close()
    raise InternalError(f"backward paused at {call.node.name}, unexpectedly")


def edges_of(inputs: list[Tensor]) -> list[Edge]:
    """The places of tensors that a gradient is wanted for."""
    edges = []
    for i, tensor in enumerate(inputs):
        edge = edge_of(tensor)
        if edge is None:
            raise GraphError(f"input {i}, a {tensor.meta!r} tensor, does not require grad")
        edges.append(edge)
    return edges


@control("backward", planned=True, backward=True, walks=True)
def run_backward(
    engine: EngineContext,
    tensors: list[Tensor],
    gradients: list[Tensor | None],
    inputs: list[Tensor] | None,
    retain_graph: bool | None,
    create_graph: bool,
) -> None:
    captures = None if inputs is None else edges_of(inputs)
    receive_gradients(engine, inputs or [])
    run = backward(
        engine, roots_of(engine, tensors, gradients), captures,
        retain_graph=create_graph if retain_graph is None else retain_graph, create_graph=create_graph, accumulate=True,
    )  # fmt: skip
    run_to_end(engine, run, create_graph)


def receive_gradients(engine: EngineContext, inputs: list[Tensor]) -> None:
    """Let those of the inputs that are no leaves keep the gradient that arrives, as leaves do."""
    for tensor in inputs:
        if tensor.grad_fn is not None:
            retain_grad(engine, tensor)


@control("grad", planned=True, walks=True)
def grad(
    engine: EngineContext,
    outputs: list[Tensor],
    inputs: list[Tensor],
    grad_outputs: list[Tensor | None],
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
) -> tuple[Tensor | None, ...]:
    run = backward(
        engine, roots_of(engine, outputs, grad_outputs), edges_of(inputs),
        retain_graph=create_graph if retain_graph is None else retain_graph, create_graph=create_graph,
    )  # fmt: skip
    return wanted_gradients(engine, inputs, run_to_end(engine, run, create_graph), allow_unused, materialize_grads)


def wanted_gradients(
    engine: EngineContext, inputs: list[Tensor], results: list[Tensor | None], allow_unused: bool,
    materialize_grads: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The results of ``grad``, with what was not used refused, filled in or left out."""
    for i, (tensor, gradient) in enumerate(zip(inputs, results, strict=True)):
        if gradient is None and materialize_grads:
            results[i] = engine.call("zeros", tensor.shape, dtype=tensor.dtype, device=tensor.device)
        elif gradient is None and not allow_unused:
            raise GraphError(
                f"input {i}, a {tensor.meta!r} tensor, was not used for the outputs; pass allow_unused=True to get "
                "None for it, or materialize_grads=True to get zeros"
            )
    return tuple(results)


@control("grad_of", planned=True, settles=True)
def grad_of(engine: EngineContext, tensor: Tensor, dtype: dtypes.DType | None) -> Tensor | None:
    return tensor.grad


@control("set_grad", planned=True, settles=True)
def set_grad(engine: EngineContext, tensor: Tensor, gradient: Tensor | None) -> None:
    if gradient is not None:
        check_assigned_grad(tensor.meta, gradient.meta, tensor.grad_dtype)
    _note(engine, tensor)
    tensor.grad = gradient


@control("set_grad_dtype", planned=True)
def set_grad_dtype(engine: EngineContext, tensor: Tensor, dtype: dtypes.DType | None) -> None:
    if tensor.grad_fn is not None:
        raise GraphError("grad_dtype is set for a leaf, not for the result of an operation")
    if dtype is not None and tensor.grad is not None and tensor.grad.dtype is not dtype:
        raise DTypeError(f"grad_dtype cannot become {dtype.name} while there is a {tensor.grad.dtype.name} gradient")
    _note(engine, tensor)
    tensor.grad_dtype = dtype


@control("requires_grad_", planned=True, settles=True)
def requires_grad_(engine: EngineContext, tensor: Tensor, requires_grad: bool) -> None:
    check_can_require_grad(tensor.meta, requires_grad)
    if tensor.grad_fn is not None:
        if not requires_grad:
            raise GraphError(
                "requires_grad can be turned off only for a leaf; use detach() for a tensor without history"
            )
        return
    if requires_grad and tensor.inference and not engine.inference:
        raise GraphError("a tensor created in inference mode cannot require a gradient outside of it; clone it first")
    _note(engine, tensor)
    tensor.requires_grad_flag = requires_grad


@control("retain_grad", planned=True)
def retain_grad(engine: EngineContext, tensor: Tensor) -> None:
    from weakref import ref

    node = tensor.grad_fn
    if node is None:
        if not tensor.requires_grad:
            raise GraphError("a tensor that does not require grad has no gradient to retain")
        return
    _note(engine, tensor)
    if engine.undo is not None:
        watchers = node.watchers and dict(node.watchers)
        engine.undo.later(lambda: setattr(node, "watchers", watchers))
    tensor.retains_grad = True
    if node.watchers is None:
        node.watchers = {}
    node.watchers[tensor.slot] = ref(tensor)


@control("detach_", planned=True)
def detach_(engine: EngineContext, tensor: Tensor) -> None:
    if tensor.base is not None:
        raise GraphError("a view cannot be detached in place; use detach()")
    _note(engine, tensor)
    tensor.grad_fn = None
    tensor.requires_grad_flag = False
    tensor.slot = 0


@control("data_of", planned=True)
def data_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    alias = Tensor(engine, tensor.array, tensor.meta, tensor.storage.unversioned(), tensor.offset)
    alias.inference = tensor.inference
    return alias


@control("set_data")
def set_data(engine: EngineContext, tensor: Tensor, data: Tensor) -> None:
    if tensor.dtype is not data.dtype and tensor.requires_grad and data.dtype.category < dtypes.FLOATING:
        raise ArgumentError(f"data of dtype {data.dtype.name} cannot be the data of a tensor that requires grad")
    _note(engine, tensor)
    if engine.undo is not None:
        before = tensor.array, tensor.meta, tensor.storage, tensor.offset
        engine.undo.later(lambda: _show(tensor, *before))
    if tensor.grad_dtype is tensor.dtype:
        tensor.grad_dtype = data.dtype
    _show(tensor, data.array, data.meta, data.storage, data.offset)


def _show(tensor: Tensor, array: Array, meta: Meta, storage: Storage, offset: int) -> None:
    tensor.array, tensor.meta, tensor.storage, tensor.offset = array, meta, storage, offset


@control("resized")
def resized(engine: EngineContext, tensor: Tensor, size: tuple[int, ...]) -> Tensor:
    backend = engine.backends[tensor.device]
    memory = tensor.storage.memory(backend)
    wanted, room = prod(size), memory.nbytes // tensor.dtype.itemsize - tensor.offset

    def shown(shape: tuple[int, ...]) -> Tensor:
        described = meta(shape, tensor.dtype, tensor.device)
        try:
            array = backend.view(memory, shape, described.stride, tensor.offset, tensor.dtype)
        except (ValueError, OverflowError) as error:  # sizes beyond what the array library counts to
            raise ShapeError(f"resized: cannot create an array of shape {list(shape)} ({error})") from None
        return Tensor(engine, array, described, tensor.storage, tensor.offset)

    if wanted <= room:
        return shown(size)
    more = engine.call("empty", (wanted - room,), dtype=tensor.dtype, device=tensor.device)
    made: Tensor = engine.call("reshape", engine.call("cat", [shown((room,)), more], 0), size)
    return made


@control("manual_seed")
def manual_seed(engine: EngineContext, seed: int) -> None:
    if type(seed) is not int:
        raise ArgumentTypeError(f"a seed must be an int, not {seed!r}")
    engine.generator.manual_seed(int(seed))


@control("get_rng_state")
def get_rng_state(engine: EngineContext) -> Tensor:
    state: Tensor = engine.from_numpy(np.array(engine.generator.get_state(), dtype=np.uint64).view(np.uint8))
    return state


@control("set_rng_state")
def set_rng_state(engine: EngineContext, state: Tensor) -> None:
    if state.dtype is not dtypes.uint8 or state.shape != (16,):
        raise ArgumentError(f"a random state must be a uint8 tensor of 16 elements, got {state.meta!r}")
    seed, offset = np.ascontiguousarray(engine.to_numpy(state)).view(np.uint64).tolist()
    engine.generator.set_state((seed, offset))


@control("set_default_dtype")
def set_default_dtype(engine: EngineContext, dtype: str) -> None:
    found = dtypes.BY_NAME.get(dtype)
    if found is None or not found.is_floating_point:
        raise ArgumentError(f"the default dtype must be a floating point dtype, not {dtype!r}")
    engine.default_dtype = found
    engine.forget_rules()


@control("set_float32_matmul_precision")
def set_float32_matmul_precision(engine: EngineContext, precision: str) -> None:
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(f"the precision must be highest, high or medium, not {precision!r:.80}")
    engine.coarse_products = precision != "highest"


@control("set_name")
def set_name(engine: EngineContext, tensor: Tensor, name: str) -> None:
    if not name or len(name) > MAX_NAME_CHARS:
        raise ArgumentError(f"a name must have 1 to {MAX_NAME_CHARS} characters, not {len(name)}")
    limit = engine.account.limits.max_tensors
    if len(engine.names) >= limit and name not in engine.names:
        raise LimitExceeded(
            f"the session has {limit:,} names (GRADWIRE_MAX_TENSORS)", setting="GRADWIRE_MAX_TENSORS", limit=limit
        )
    if engine.undo is not None:
        before = engine.names.get(name)
        engine.undo.later(
            lambda: engine.names.pop(name, None) if before is None else engine.names.update({name: before})
        )
    engine.names[name] = tensor


@control("by_name")
def by_name(engine: EngineContext, name: str) -> Tensor:
    tensor: Tensor | None = engine.names.get(name)
    if tensor is None:
        raise NotFound(f"no tensor of this session is named {name!r}")
    return tensor


@control("grad_fn_of")
def grad_fn_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    node = tensor.grad_fn
    letters: Tensor = engine.from_numpy(np.frombuffer((node.name if node is not None else "").encode(), np.uint8))
    return letters


@control("shape_of")
def shape_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    shape: Tensor = engine.from_numpy(np.array(tensor.shape, dtype=np.int64))
    return shape


@control("offset_of")
def offset_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    offset: Tensor = engine.from_numpy(np.array(tensor.offset, dtype=np.int64))
    return offset
