"""What ``Tensor.grad`` is: a proxy for what the server has by now."""

from __future__ import annotations

import warnings
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError, GradwireError, GraphError
from gradwire_protocol.ops.control import check_assigned_grad
from gradwire_protocol.table import TABLE

from ..context.modes import MODES
from ..dispatch.dispatch import grad_of, tell
from ..tensor.tensor import NO_GRAD, PRESENT, UNKNOWN_GRAD, Tensor
from .predicted_history import attach


def find_grad(tensor: Tensor) -> Any:
    """A tensor's gradient, which is not known yet, or not known to be there any more. ``None`` where there is none.

    After an error the server is asked, once for each tensor: a backward that failed has not added what the client takes
    for added. A proxy that was made in between is poisoned, and is replaced.
    """
    session, doubtful = tensor._session, tensor._session.reader.doubtful
    ask = tensor._grad_state == UNKNOWN_GRAD or tensor._id < doubtful != tensor._grad_known
    if tensor._grad_proxy is not None:
        if tensor._id < 0:  # of the meta device
            return tensor._grad_proxy
        session.synchronize()  # raises what is not about this gradient
        try:
            session.read([tensor._grad_proxy])
            tensor._grad_known = session.reader.doubtful
            return tensor._grad_proxy
        except GradwireError:
            tensor._grad_proxy = None
    found = grad_of(tensor)
    if ask:
        if session.read([found])[0] is None:
            tensor._grad_state = NO_GRAD
            return None
        tensor._grad_state, tensor._grad_known = PRESENT, session.reader.doubtful
    found._inference = tensor._grad_inference  # looking at it in inference mode does not make it
    if tensor._grad_history:
        found = attach(found, tensor._grad_history)
    tensor._grad_proxy = found
    return found


def _grad(self: Tensor) -> Tensor | None:
    """The accumulated gradient, or None."""
    if self._grad_state == NO_GRAD:
        if self._node is not None and not self._retains:  # a view's history is not looked at
            warnings.warn(
                "the .grad of a tensor that is not a leaf is not kept: call retain_grad() on it before backward",
                UserWarning,
                stacklevel=2,
            )
        return None
    if self._grad_proxy is None or self._id < self._session.reader.doubtful != self._grad_known:
        return find_grad(self)
    return self._grad_proxy


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is None:
        if self._grad_state != NO_GRAD:
            tell("set_grad", [self, None])
        self._grad_proxy, self._grad_state = None, NO_GRAD
        if self._grad_history is not None:
            self._grad_history = None
        return
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(f"grad must be a tensor or None, not {type(value).__name__}")
    if value is self:
        raise GraphError("a tensor cannot be its own grad: detach() or clone() it")
    check_assigned_grad(self._known_meta(), value._known_meta(), self._dtype_of_grad())
    self._session.record(TABLE["set_grad"], [self, value], 0)
    self._grad_proxy, self._grad_state, self._grad_inference = value, PRESENT, value._inference
    if value._inference:
        MODES.expect_inference_gradients()


def _delete_grad(self: Tensor) -> None:
    _set_grad(self, None)


for _function in (_grad, _set_grad, _delete_grad):
    _function.__name__, _function.__qualname__ = "grad", "Tensor.grad"
Tensor.grad = Tensor._grad = property(_grad, _set_grad, _delete_grad)  # type: ignore[method-assign, assignment]  # the second for libraries that use it
