"""Control ops on mapped tensors: entering and leaving a map, gradients, flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, GraphError

from ..forward import tangent_at, without
from ..functional import F
from ..registry import CONTROLS
from ..tensor import Tensor
from .batched import enter, leave, levels_of, physical
from .functions import as_mapped, attach_function, begin_backward, passed_on
from .level import VmapLevel, rule

if TYPE_CHECKING:
    from ..engine_context import EngineContext


def batch(engine: EngineContext, tensor: Tensor, dim: int, level: int, randomness: str) -> Tensor:
    dim += tensor.ndim if dim < 0 else 0
    # The tensor itself where it can be: a write to a sample is a write to it.
    return enter(F.movedim(tensor, dim, 0) if dim else tensor, level, randomness)


def unbatch(engine: EngineContext, tensor: Tensor, level: int, dim: int, size: int) -> Tensor:
    found = next((n for at, n, _ in levels_of(tensor) if at == level), size)
    if found != size:
        raise ArgumentError(f"unbatch: the tensor is mapped over {found} samples, not {size}")
    value = leave(tensor, level, size)
    laid: Tensor = F.contiguous(value) if not value.meta.contiguous else F.alias(value)
    return F.movedim(laid, 0, dim + value.ndim if dim < 0 else dim) if dim else laid


def grad(
    engine: EngineContext, outputs: list[Tensor], inputs: list[Tensor], grad_outputs: list[Tensor | None], *options: Any
) -> Any:
    """Gradients of what is mapped, per sample: of the tensors inside, which carry the graph.

    A gradient may be mapped at levels that its output is not: derivatives are made of ops, and these of rules.

    Raises:
        GraphError: for an input that is the same for all samples of a map that an output is in.
    """
    mapped = {level for output in outputs for level, _, _ in levels_of(output)}
    for i, tensor in enumerate(inputs):
        if mapped - {level for level, _, _ in levels_of(tensor)}:
            raise GraphError(
                f"input {i}, a {tensor.meta!r} tensor, is the same for all samples of a vmap, and the outputs differ "
                "between them: the gradient would be a sum over samples"
            )
    gradients = []
    for output, gradient in zip(outputs, grad_outputs, strict=True):
        if gradient is not None:
            for level, size, _ in levels_of(output):
                gradient = leave(gradient, level, size)
        gradients.append(gradient)
    found = CONTROLS["grad"](engine, [physical(o) for o in outputs], [physical(i) for i in inputs], gradients, *options)
    return tuple([None if g is None else _as_mapped(g, i) for g, i in zip(found, inputs, strict=True)])


def _as_mapped(gradient: Tensor, like: Tensor) -> Tensor:
    return as_mapped(gradient, levels_of(like))


def _inside(name: str) -> Callable[..., Any]:
    def apply(engine: EngineContext, tensor: Tensor, *options: bool) -> Any:
        return CONTROLS[name](engine, physical(tensor), *options)

    return apply


def _mapped_again(name: str) -> Callable[..., Any]:
    def apply(engine: EngineContext, tensor: Tensor, *options: DType | None) -> Tensor | None:
        found = CONTROLS[name](engine, physical(tensor), *options)
        return None if found is None else _as_mapped(found, tensor)

    return apply


def shape_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    shape: Tensor = engine.from_numpy(np.array(tensor.shape, dtype=np.int64))
    return shape


def offset_of(engine: EngineContext, tensor: Tensor) -> Tensor:
    offset: Tensor = CONTROLS["offset_of"](engine, physical(tensor))
    return offset


def set_grad(engine: EngineContext, tensor: Tensor, gradient: Tensor | None) -> None:
    if gradient is not None:
        if {n for n, _, _ in levels_of(gradient)} - {n for n, _, _ in levels_of(tensor)}:
            raise ArgumentError("set_grad: the gradient is mapped over, the tensor is not")
        for level, size, _ in levels_of(tensor):
            gradient = leave(gradient, level, size)
    CONTROLS["set_grad"](engine, physical(tensor), gradient)


def with_its_tangents(x: VmapLevel, value: Any) -> Any:
    """A value that is the same for all samples of a map, mapped if a tangent of it differs between them."""
    if type(value) in (list, tuple):
        return [with_its_tangents(x, v) for v in value]
    if not isinstance(value, Tensor) or x.has(value):
        return value
    for level in reversed(x.engine.dual_levels):
        tangent = tangent_at(value, level)
        if tangent is not None and any(at == x.level for at, _, _ in levels_of(tangent)):
            primal = with_its_tangents(x, without(x.engine, value, level))
            if not x.has(primal):
                primal = enter(leave(primal, x.level, x.size), x.level, x.randomness)
            return make_dual(x.engine, primal, tangent, level)
    return value


def make_dual(engine: EngineContext, primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    """The primal may be mapped at fewer levels than the tangent: what all samples share is computed once."""
    for at, size, _ in levels_of(primal):
        tangent = leave(tangent, at, size)
    dual: Tensor = CONTROLS["make_dual"](engine, physical(primal), tangent, level)
    return _as_mapped(dual, primal)


def _part_of_dual(name: str) -> Callable[..., Any]:
    def apply(engine: EngineContext, tensor: Tensor, level: int) -> Tensor:
        return _as_mapped(CONTROLS[name](engine, physical(tensor), level), tensor)

    return apply


ON_BATCHED: Final[dict[str, Callable[..., Any]]] = {
    "batch": batch,
    "unbatch": unbatch,
    "grad": grad,
    "set_grad": set_grad,
    "shape_of": shape_of,
    "offset_of": offset_of,
    "grad_of": _mapped_again("grad_of"),
    "data_of": _mapped_again("data_of"),
    "requires_grad_": _inside("requires_grad_"),
    "retain_grad": _inside("retain_grad"),
    "detach_": _inside("detach_"),
    "attach_function": attach_function,
    "begin_backward": begin_backward,
    "advance": passed_on("advance"),
    "finish_backward": passed_on("finish_backward"),
    "make_dual": make_dual,
    "primal_of": _part_of_dual("primal_of"),
    "tangent_of": _part_of_dual("tangent_of"),
}


@rule("check_all")
def check_all(x: VmapLevel, mask: Tensor, message: str, value: Tensor | None) -> Any:
    # Which sample fails does not matter: all of them come to nothing.
    x.engine.call("check_all", x.inside(mask), message)
    return ()
