"""``Parameter`` and ``Buffer``: tensors that a module keeps, trains, moves and saves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Self

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.table import TABLE

from ..context.modes import no_grad
from ..dispatch.dispatch import call, run
from ..dispatch.overrides import refuses_overrides
from ..graph.recorded_call import entry_of
from ..surface.creation import empty
from ..surface.representation import FORMS
from ..tensor.printing import format_parameter
from ..tensor.tensor import NO_GRAD, Tensor

_ZERO_GRAD: Final = entry_of(TABLE["zero_grad"])


def alias_as(cls: type[Tensor], data: Tensor) -> Any:
    """A proxy of class ``cls`` for the memory of ``data``, without its history."""
    with no_grad():
        made = call("detach", data)
    return rename(cls, made)


def rename(cls: type[Tensor], made: Tensor) -> Any:
    """Turn a proxy that nobody else holds into one of class ``cls``, which then owns the tensor on the server."""
    found = cls._make(made._session, made._id, made._form)
    found._inference = made._inference
    made._share_memory_with(found)
    del made._session  # it no longer releases the tensor when it is dropped
    return found


def _copied(self: Tensor) -> Any:
    """What ``copy.copy`` makes of a tensor: another leaf of its class with the same memory."""
    made = alias_as(type(self), self)
    return made.requires_grad_() if self.requires_grad else made


setattr(Tensor, "__copy__", _copied)  # noqa: B010  (what is attached to a class is not declared on it)


class Parameter(Tensor):
    """A tensor that a module registers under its attribute's name, and that requires grad unless told otherwise.

    It shares memory with the tensor it is made from, and has no history.
    """

    __slots__ = ()

    __torch_function__: Any = classmethod(refuses_overrides)

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = empty(0)
        if not isinstance(data, Tensor):
            raise ArgumentTypeError(f"a Parameter is made from a tensor, not from {type(data).__name__}")
        made = alias_as(cls, data)
        if requires_grad:
            made.requires_grad_()
        return made

    def __repr__(self) -> str:
        return format_parameter(super().__repr__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A parameter with a copy of the values, and no gradient."""
        if id(self) not in memo:
            with no_grad():
                copied = rename(type(self), call("clone", self))
            if self._requires:
                copied.requires_grad_()
            memo[id(self)] = copied
        return memo[id(self)]


if TYPE_CHECKING:
    _Made = Tensor  # so is what the class makes, which itself has nothing of it
else:
    _Made = object


FORMS[Parameter.__repr__] = format_parameter


class _BufferType(type):
    """Lets ``isinstance(x, Buffer)`` recognise the plain tensors that :class:`Buffer` makes."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and "_is_buffer" in instance.__dict__


class Buffer(_Made, metaclass=_BufferType):
    """``Buffer(data, persistent=True)``: a tensor that a module registers as a buffer when it is assigned.

    Buffers move and are saved with the module, but are not trained. A buffer that is not persistent is left out
    of the state dict. The result is an ordinary tensor that shares memory with ``data``.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        made = alias_as(Tensor, empty(0) if data is None else data)
        made._is_buffer = True
        made.persistent = persistent
        return made


def clear_gradients(tensors: Iterable[Tensor], set_to_none: bool = True) -> None:
    """Remove the gradients of leaves, or make them zero, in one record per session.

    Leaves that could have a gradient are named as well: so the first step of a loop is recorded as all others are.
    """
    by_session: dict[Any, list[Tensor]] = {}
    session, alike = None, []  # of the last tensor: most have the same one
    for tensor in tensors:
        if tensor._grad_state != NO_GRAD or (tensor._requires and tensor._id > 0):
            if tensor._session is not session:
                session = tensor._session
                alike = by_session.setdefault(session, [])
            alike.append(tensor)
    for with_grad in by_session.values():
        run(_ZERO_GRAD, [with_grad, set_to_none])
        for tensor in with_grad:
            if set_to_none:
                if tensor._grad_state != NO_GRAD:
                    tensor._grad_state = NO_GRAD
                    if tensor._grad_proxy is not None:
                        tensor._grad_proxy = None
            else:
                tensor._grad_history = None
                gradient = tensor._grad_proxy
                if gradient is None:
                    continue
                if gradient._base_tensor is not None and gradient.requires_grad:
                    tensor._grad_proxy = None
                    continue
                if gradient.requires_grad:
                    gradient._node, gradient._slot, gradient._requires = None, 0, False
                gradient._bump()
