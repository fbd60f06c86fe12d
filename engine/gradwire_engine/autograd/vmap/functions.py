"""Backward with a client taking part, where what it sees is mapped over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..functional import F
from ..registry import CONTROLS
from ..tensor import Tensor
from .batched import Batched, enter, leave, levels_of, physical

if TYPE_CHECKING:
    from ..engine_context import EngineContext

Gradients = Sequence[Tensor | None]
Levels = list[tuple[int, int, str]]


def as_mapped(gradient: Tensor, levels: Levels) -> Tensor:
    """A gradient of what is inside, mapped as its tensor is. ``levels`` has the innermost first."""
    for level, _, randomness in reversed(levels):
        gradient = enter(gradient, level, randomness)
    return gradient


class Maps:
    """How the operands and results of a node whose derivative lives in a client are mapped.

    The node stands in the graph of what is inside; its client computes with samples.
    """

    __slots__ = ("_inputs", "_outputs")

    def __init__(self, inputs: Gradients, outputs: Gradients) -> None:
        self._inputs = [[] if t is None else levels_of(t) for t in inputs]
        self._outputs = [[] if t is None else levels_of(t) for t in outputs]

    def shown(self, gradients: Gradients) -> list[Tensor | None]:
        """Gradients of the results as the client is given them."""
        return [None if g is None else as_mapped(g, levels) for g, levels in zip(gradients, self._outputs, strict=True)]

    def taken(self, supplied: Gradients) -> list[Tensor | None]:
        """Gradients of the operands as the graph needs them; samples add up for an operand that they share."""
        every = sorted({entry for levels in (*self._inputs, *self._outputs) for entry in levels}, reverse=True)
        found = list(supplied)
        for i, gradient in enumerate(found):
            if gradient is None:
                continue
            own = {level for level, _, _ in self._inputs[i]}
            for level, size, _ in every:
                mapped = level in {n for n, _, _ in levels_of(gradient)}
                if level in own or mapped:
                    gradient = leave(gradient, level, size)
                    gradient = gradient if level in own else F.sum(gradient, 0)
            found[i] = gradient
        return found


def attach_function(
    engine: EngineContext, name: str, inputs: list[Tensor], outputs: list[Tensor | None], *options: Any
) -> Tensor:
    plain = [None if t is None else physical(t) for t in outputs]
    place: Tensor = CONTROLS["attach_function"](engine, name, [physical(t) for t in inputs], plain, *options)
    node: Any = place.grad_fn
    node.maps = Maps(inputs, outputs)
    return place


def begin_backward(
    engine: EngineContext,
    tensors: list[Tensor],
    gradients: list[Tensor | None],
    inputs: list[Tensor] | None,
    *options: Any,
) -> Tensor:
    given = []
    for tensor, gradient in zip(tensors, gradients, strict=True):
        if gradient is not None:
            for level, size, _ in levels_of(tensor):
                gradient = leave(gradient, level, size)
        given.append(gradient)
    wanted = None if inputs is None else [physical(t) for t in inputs]
    handle: Tensor = CONTROLS["begin_backward"](engine, [physical(t) for t in tensors], given, wanted, *options)
    if inputs is not None and any(type(t) is Batched for t in inputs):
        engine.handles[id(handle)][1].result_maps = [levels_of(t) for t in inputs]
    return handle


def passed_on(name: str) -> Callable[..., Any]:
    """A control op that may be supplied with mapped gradients as they are."""

    def apply(engine: EngineContext, *values: Any) -> Any:
        return CONTROLS[name](engine, *values)

    return apply
