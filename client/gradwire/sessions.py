"""Which session the program computes in: the configured server, the embedded one, or one chosen with ``connect``."""

from __future__ import annotations

import atexit
import os
import random
import threading
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.table import TABLE

from .embedded import embedded_server
from .rest import Rest
from .session import Session

_lock = threading.RLock()
_current: Session | None = None
_default_dtype: DType = dtypes.float32

OPENED: list[Session] = []
"""Every session that this process opened, also those that are closed: for counting what it did."""


def connect(
    url: str | None = None,
    api_key: str | None = None,
    *,
    session: str | None = None,
    device: str = "cpu",
    seed: int | None = None,
    patience: float = 120.0,
) -> Session:
    """Open a session and make it the one that new tensors belong to.

    Args:
        url: the server; by default ``GRADWIRE_URL``, or an embedded server when that is not set.
        api_key: by default ``GRADWIRE_API_KEY``.
        session: id of a session to join; by default a new one is made, and deleted when it is closed.
        device: where new tensors live unless told otherwise.
        seed: for the session's random numbers.
        patience: seconds to keep reconnecting before ``ConnectionLost``.

    Raises:
        Unavailable: when the server cannot be reached.
        Unauthorized: when it refuses the key.
    """
    global _current
    opened = open_session(url, api_key, session=session, device=device, seed=seed, patience=patience)
    with _lock:
        _current = opened
        _use_default_dtype(opened)
    return opened


def open_session(
    url: str | None = None,
    api_key: str | None = None,
    *,
    session: str | None = None,
    device: str = "cpu",
    seed: int | None = None,
    patience: float = 120.0,
) -> Session:
    """Like :func:`connect`, without changing where new tensors go."""
    drawn = random.getstate()
    try:
        return _open(url, api_key, session, device, seed, patience)
    finally:
        # Some libraries draw from Python's generator as they are imported, and it is the program's to seed.
        random.setstate(drawn)


def _open(
    url: str | None, api_key: str | None, session: str | None, device: str, seed: int | None, patience: float
) -> Session:
    url = url or os.environ.get("GRADWIRE_URL") or None
    api_key = api_key or os.environ.get("GRADWIRE_API_KEY")
    if url is None:
        server = embedded_server()
        url, api_key = server.url, server.api_key
    owned = session is None
    if session is None:
        rest = Rest(url, api_key)
        body: dict[str, Any] = {"device": device}
        if seed is not None:
            body["seed"] = seed
        session = str(rest.post("/v1/sessions", body)["id"])
        rest.close()
    opened = Session(url, session, api_key, patience=patience, owned=owned, device=device)
    atexit.register(opened.close)
    OPENED.append(opened)
    return opened


def current_session() -> Session:
    """The session that new tensors belong to, opened at first use."""
    global _current
    with _lock:
        if _current is None or _current.closed:
            _current = open_session()
            _use_default_dtype(_current)
        return _current


def _leave_to_parent() -> None:
    """In a forked child: sessions go on being the parent's. What the child computes, it computes in one of its own."""
    global _current, _lock
    _lock, _current = threading.RLock(), None
    for session in OPENED:
        atexit.unregister(session.close)
        session.leave()
    OPENED.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _use_default_dtype(session: Session) -> None:
    if session.default_dtype is not _default_dtype:
        session.record(TABLE["set_default_dtype"], [_default_dtype.name], 0)
        session.default_dtype = _default_dtype


def set_default_dtype(dtype: DType) -> None:
    """The floating point dtype that Python floats take.

    Raises:
        ArgumentTypeError: for any other dtype.
    """
    global _default_dtype
    if not isinstance(dtype, DType) or not dtype.is_floating_point:
        raise ArgumentTypeError(f"the default dtype must be a floating point dtype, not {dtype!r}")
    _default_dtype = dtype
    if _current is not None and not _current.closed:
        _use_default_dtype(_current)


def get_default_dtype() -> DType:
    """The floating point dtype that Python floats take."""
    return _default_dtype
