"""What ``Tensor.grad`` is: a proxy for what the server has by now."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import GradwireError

from ..dispatch import grad_of
from ..tensor import NO_GRAD, PRESENT, UNKNOWN_GRAD, Tensor
from .history import attach


def find_grad(tensor: Tensor) -> Any:
    """A tensor's gradient, which is not known yet, or not known to be there any more. ``None`` where there is none.

    After an error the server is asked, once for each tensor: a backward that failed has not added what the client takes
    for added. A proxy that was made in between is poisoned, and is replaced.
    """
    session, doubtful = tensor._session, tensor._session.doubtful
    ask = tensor._grad_state == UNKNOWN_GRAD or tensor._id < doubtful != tensor._grad_known
    if tensor._grad_proxy is not None:
        if tensor._id < 0:  # of the meta device
            return tensor._grad_proxy
        session.synchronize()  # raises what is not about this gradient
        try:
            session.read([tensor._grad_proxy])
            tensor._grad_known = session.doubtful
            return tensor._grad_proxy
        except GradwireError:
            tensor._grad_proxy = None
    found = grad_of(tensor)
    if ask:
        if session.read([found])[0] is None:
            tensor._grad_state = NO_GRAD
            return None
        tensor._grad_state, tensor._grad_known = PRESENT, session.doubtful
    found._inference = tensor._grad_inference  # looking at it in inference mode does not make it
    if tensor._grad_history:
        found = attach(found, tensor._grad_history)
    tensor._grad_proxy = found
    return found
