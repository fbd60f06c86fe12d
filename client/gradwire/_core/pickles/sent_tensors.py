"""Tensors that a program sends to its other processes: they join its session, and find the tensors there.

What travels is the session's id and a name. The receiver's tensor has the memory of the sender's, and neither its
history nor its gradient: each process has gradients of its own, as with PyTorch's shared memory.
"""

from __future__ import annotations

import os
import threading
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any
from uuid import uuid4

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.meta import meta
from gradwire_protocol.table import TABLE

from ..modules.parameter import Parameter, rename
from ..session.current_session import connect
from ..session.opened import OPENED
from ..session.session import Session
from ..tensor.tensor import Tensor

_lock = threading.Lock()


def register() -> None:
    """Let Python's multiprocessing send tensors."""
    for cls in (Tensor, Parameter):
        ForkingPickler.register(cls, _sent)


def _sent(tensor: Tensor) -> Any:
    """How a tensor is found by another process.

    Raises:
        ArgumentError: for a tensor with history, as in PyTorch, and for one of the meta device.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise ArgumentError("a tensor with history is not sent to another process: send its detach()")
    if tensor.is_meta:
        raise ArgumentError("a tensor on the meta device has no values to send to another process")
    session = tensor._session
    name = f"sent-{uuid4().hex}"
    tensor.set_name(name)
    session.synchronize()
    # Only a process that is being started gets the key with it; others have it from their environment.
    key = session.api_key if get_spawning_popen() is not None else None
    where = (session.url, session.id, key)
    described = (tuple(tensor.shape), tensor.dtype.name, str(tensor.device), tuple(tensor.stride()))
    return _received, (type(tensor), where, name, described, tensor.requires_grad)


def _received(
    cls: type[Tensor], where: tuple[str, str, str | None], name: str,
    described: tuple[tuple[int, ...], str, str, tuple[int, ...]], requires_grad: bool,
) -> Tensor:  # fmt: skip
    session = _joined(*where)
    shape, dtype, device, stride = described
    number = session.record(TABLE["by_name"], [name], 1)
    found = Tensor._make(session, number, meta(shape, dtypes.BY_NAME[dtype], device, stride))
    return rename(cls, found.data).requires_grad_(requires_grad)


def _joined(url: str, number: str, key: str | None) -> Session:
    """The session with this id, in which new tensors of this process are made from now on if it is joined now."""
    with _lock:
        for session in OPENED:
            if session.id == number and not session.closed:
                return session
        return connect(url, key or os.environ.get("GRADWIRE_API_KEY"), session=number)
