"""Whose derivative is being taken: the leaves that function transforms make, and whether a result outlives them.

A transform differentiates for aliases of its inputs. What it returns is attached to the program's own graph, or to a
transform around it, where it depends on tensors of theirs, and to nothing otherwise.
"""

from __future__ import annotations

from typing import Any, Final

from gradwire_protocol.errors import ArgumentValueError

from ..context.modes import MODES, enable_grad
from ..graph.forward_levels import duals_of
from ..graph.graph_mirror import AccumulateGrad, edge_of
from ..tensor.tensor import Tensor
from .dispatch import call
from .mapped_tensors import materialize


class TransformLevel:
    """The extent of a transform: its leaves count as outside for the transforms inside of it.

    Attributes:
        first: the first tensor that the transform made. What was there before has smaller ids.
        admitted: tensors that were there before and may be changed in place: the memory of the function's arguments.
    """

    __slots__ = ("active", "admitted", "first")

    def __init__(self) -> None:
        self.active = False
        self.first: Any = None
        self.admitted: list[Any] = []

    def __enter__(self) -> TransformLevel:
        self.active = True
        MODES.scopes = (*MODES.scopes, self)
        return self

    def __exit__(self, *_: object) -> None:
        self.active = False
        MODES.scopes = MODES.scopes[:-1]

    def holds(self, tensor: Any) -> bool:
        """Whether the tensor's memory was made since the transform made its first tensor, or is an argument's."""
        memory, first = _memory_of(tensor), self.first
        if first is None or memory._session is not first._session or memory._id < 0 or memory._id >= first._id:
            return True
        return any(given is memory for given in self.admitted)

    def admit(self, arguments: list[Any]) -> None:
        """Let the function change the memory of its arguments in place."""
        self.admitted += [_memory_of(t) for t in arguments]


def _memory_of(tensor: Any) -> Any:
    return tensor if tensor._base_tensor is None else tensor._base_tensor


ENDED: Final = TransformLevel()
"""The scope of leaves that nobody differentiates for."""


def alias(tensor: Any, scope: TransformLevel) -> Any:
    """The same values, to differentiate for: a leaf of the scope, or a view where something outside is differentiated.

    Raises:
        ArgumentValueError: for what is no tensor.
        DTypeError: for integers and bools.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentValueError(f"a transform differentiates for tensors, not for {type(tensor).__name__}")
    tensor = materialize(tensor)
    with enable_grad():
        attached = tensor.requires_grad or duals_of(tensor)
        made = tensor.view(tensor.shape) if attached else tensor.detach()
    if not made.requires_grad:
        made.requires_grad_()
        made._scope = scope
    if scope.first is None:
        scope.first = made
    return made


def passed(value: Any) -> Any:
    """An argument as the innermost transform hands it to its function: the same memory, but what is written to it
    inside leaves the caller's tensor without a history that leads into the transform."""
    if not isinstance(value, Tensor):
        return value
    with enable_grad():
        if not value.requires_grad and not duals_of(value):
            return value.detach()
        made = value.view(value.shape)
    MODES.scopes[-1].admit([made])
    return made


def anchored(tensor: Any) -> Tensor:
    """The same values, with a history for certain.

    The client's graph says of a recorded gradient that it depends on everything its graph reaches. The server knows
    better (the gradient of a linear function is a constant) and refuses to differentiate a constant; added to a zero
    that requires grad it is none. The derivatives are as before.
    """
    with enable_grad():
        zero = call("zeros", (), dtype=tensor.dtype, device=tensor._form.device).requires_grad_()
        zero._scope = ENDED
        return tensor + zero


def depends_outside(tensors: list[Any]) -> bool:
    """Whether some tensor depends on one that requires grad outside of the scopes that have ended."""
    stack = [edge[0] for t in tensors if (edge := edge_of(t)) is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if type(node) is AccumulateGrad and (node.variable._scope is None or node.variable._scope.active):
            return True
        for edge in node.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return False


def released(value: Any, recording: bool) -> Any:
    """A result as it leaves a transform: without history unless it depends on something outside."""
    if not isinstance(value, Tensor) or not value.requires_grad:
        return value
    if duals_of(value):
        return value  # detach() would take its tangents: the transform they belong to lets go of the history
    if recording and depends_outside([value]):
        return value
    return value.detach()
