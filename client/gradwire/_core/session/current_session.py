"""Which session the program computes in: the configured server, the embedded one, or one chosen with ``connect``."""

from __future__ import annotations

import atexit
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.awake import SPIN_S
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError
from gradwire_protocol.table import TABLE

from ..context.waiting import Facts, Wait
from ..wire import tls
from ..wire.connection import HEARTBEAT_S
from ..wire.embedded_server import embedded_server
from ..wire.rest import RestClient
from ..wire.retry import PATIENCE_S, chosen
from ..wire.server_url import check_url
from .opened import OPENED
from .profile_recorder import current as current_recorder
from .session import Session
from .upload_cache import KEPT_BYTES

_lock = threading.RLock()
_current: Session | None = None
_default_dtype: DType = dtypes.float32
_matmul_precision = "highest"


def connect(
    url: str | None = None,
    api_key: str | None = None,
    *,
    session: str | None = None,
    device: str = "cpu",
    seed: int | None = None,
    client: int = 0,
    durability: str | None = None,
    name: str | None = None,
    keep: bool = False,
    ttl: float | None = None,
    patience: float | None = None,
    heartbeat: float | None = None,
    ca: str | os.PathLike[str] | None = None,
    direct: bool | None = None,
    gpu: str | bool | None = None,
    gpus: float | None = None,
    cpus: float | None = None,
    memory: str | int | None = None,
    resources: dict[str, float] | None = None,
    labels: dict[str, str] | None = None,
) -> Session:
    """Open a session and make it the one that new tensors belong to.

    A connection that breaks is not an event: the session reconnects, resumes, and sends again what was not answered;
    the server applies every frame once.

    Args:
        url: the server; by default ``GRADWIRE_URL``, or an embedded server when that is not set.
        api_key: by default ``GRADWIRE_API_KEY``.
        session: id of a session to join; by default a new one is made, and deleted when it is closed.
        device: where new tensors live unless told otherwise.
        seed: for the session's random numbers.
        client: with ``session``, the place of another program in it (its ``Session.client``) to take over, for a
            program that was restarted, or that replaces one on a machine that hangs. From then on nothing of the
            other program is applied; it meets ``Superseded``. What it made is still there: ``Session.tensor`` finds
            it by name, or by the ids that the other program wrote down, and ``Session.stats()["acknowledged"]`` says
            how many of its frames were applied. By default a client of its own, beside all others.
        name: of a new session: what listings and the console call it; at most 100 characters.
        durability: of a new session: what an acknowledged frame survives. ``"none"``, ``"applied"`` (the death of the
            server's process) or ``"durable"`` (loss of power as well); by default what the server is set to.
        keep: leave a new session on the server when it is closed or the program ends. It expires after its time to
            live without use; until then ``connect(session=id)`` joins it.
        ttl: of a new session: seconds without use after which it expires; by default what the server is set to.
        patience: seconds to keep trying to reconnect before ``ConnectionLost``, 120 unless ``GRADWIRE_PATIENCE`` says
            otherwise. Time during which the machine sleeps does not count, and a try that has begun is not cut short
            (40 s at most). After ``ConnectionLost`` nothing is lost: the next use of the session tries again. Given
            here or by the variable, it is also how long a server that is not there yet is asked for a new session;
            otherwise it is asked a few times.
        heartbeat: seconds of silence after which a connection that the program waits for is pinged, 15 unless
            ``GRADWIRE_HEARTBEAT`` says otherwise; 0 for never. When two pings stay unanswered the session reconnects.
        ca: file with the authority behind the server's certificate (PEM), where it is none that the system knows; by
            default ``GRADWIRE_CA_FILE``. It counts for the workers to which that server redirects as well.
        direct: where the server is the gateway of a fleet, connect to the worker that has the session, as long as its
            address answers; with False everything goes through the gateway. By default what ``GRADWIRE_DIRECT`` says,
            else True. A gateway at ``https://`` cannot send the program to an ``http://`` address, unless it is on this
            machine or ``GRADWIRE_DIRECT`` is ``plain``.
        gpu: of a fleet, for a new session: a GPU of this model, such as ``"H100"``, or True for any. With
            ``device="cuda"`` a session has one without asking.
        gpus: of a fleet: how many GPUs; a fraction shares one with others.
        cpus: of a fleet: how many CPUs.
        memory: of a fleet: memory of the machine, as ``"40GB"`` or in bytes.
        resources: of a fleet: amounts of what its operator named, by name.
        labels: of a fleet: what must be written on the machine, by name.

    Raises:
        Unavailable: when the server cannot be reached.
        ArgumentValueError: for a URL that is none of a server, such as ``ws://``.
        Unauthorized: when it refuses the key.
        SessionGone: when the session to join does not exist (any more).
        ArgumentError: for arguments that belong to a new session together with ``session``, or the other way round.
        InvalidRequest: for resources that no machine of the fleet has, or that are asked of a server that is no fleet.
    """
    global _current
    opened = open_session(
        url, api_key, session=session, device=device, seed=seed, client=client, durability=durability, name=name,
        keep=keep, ttl=ttl, patience=patience, heartbeat=heartbeat, ca=ca, direct=direct,
        gpu=gpu, gpus=gpus, cpus=cpus, memory=memory, resources=resources, labels=labels,
    )  # fmt: skip
    with _lock:
        _current = opened
        use_defaults(opened)
    return opened


def open_session(
    url: str | None = None,
    api_key: str | None = None,
    *,
    session: str | None = None,
    device: str = "cpu",
    seed: int | None = None,
    client: int = 0,
    durability: str | None = None,
    name: str | None = None,
    keep: bool = False,
    ttl: float | None = None,
    patience: float | None = None,
    heartbeat: float | None = None,
    ca: str | os.PathLike[str] | None = None,
    direct: bool | None = None,
    gpu: str | bool | None = None,
    gpus: float | None = None,
    cpus: float | None = None,
    memory: str | int | None = None,
    resources: dict[str, float] | None = None,
    labels: dict[str, str] | None = None,
) -> Session:
    """Like :func:`connect`, without changing where new tensors go."""
    machine = {"gpu": gpu, "gpus": gpus, "cpus": cpus, "memory": memory, "resources": resources, "labels": labels}
    new = {"seed": seed, "durability": durability, "name": name} | machine
    _check_arguments(session, client, ttl=ttl, keep=keep or None, **new)
    wanted = {"device": device, "ttl_s": ttl} | new
    limits = {
        "patience": chosen("GRADWIRE_PATIENCE", patience, PATIENCE_S),
        "heartbeat": chosen("GRADWIRE_HEARTBEAT", heartbeat, HEARTBEAT_S),
        "spin": chosen("GRADWIRE_SPIN_S", None, SPIN_S),
        "kept_uploads": chosen("GRADWIRE_KEPT_UPLOADS", None, KEPT_BYTES, "bytes"),
    }
    if ca is not None:
        tls.believe(url or os.environ.get("GRADWIRE_URL") or "", ca)
    drawn = random.getstate()
    try:
        patient = patience is not None or bool(os.environ.get("GRADWIRE_PATIENCE"))
        return _open(
            url, api_key, session, client, wanted, keep, limits, limits["patience"] if patient else None, direct
        )
    finally:
        # Some libraries draw from Python's generator as they are imported, and it is the program's to seed.
        random.setstate(drawn)


def _check_arguments(session: str | None, client: int, **new: Any) -> None:
    given = [name for name, value in new.items() if value is not None]
    if session is not None and given:
        raise ArgumentError(f"{given[0]}= is for a new session, session={session!r:.40} joins one that exists")
    if session is None and client:
        raise ArgumentError(f"client={client} takes a place in a session that exists: say which with session=")
    if type(client) is not int or client < 0:
        raise ArgumentError(f"client must be the number of a client, not {client!r:.40}")


def _open(
    url: str | None, api_key: str | None, session: str | None, client: int, wanted: dict[str, Any], keep: bool,
    limits: dict[str, float], opening_patience: float | None, direct: bool | None,
) -> Session:  # fmt: skip
    url = url or os.environ.get("GRADWIRE_URL") or None
    api_key = api_key or os.environ.get("GRADWIRE_API_KEY")
    if url is None:
        server = embedded_server()
        url, api_key = server.url, server.api_key
    url = check_url(url)
    owned = session is None and not keep
    if session is None:
        rest = RestClient(url, api_key, patience=opening_patience)
        try:
            body = {name: value for name, value in wanted.items() if value is not None}
            wait = Wait(lambda: Facts("session", url=url), lambda: _compiling(rest))
            wait.attend()
            try:
                session = str(rest.post("/v1/sessions", body)["id"])
            finally:
                wait.end()
        finally:
            rest.close()
    opened = Session(
        url, session, api_key, owned=owned, device=wanted["device"], client=client, direct=direct, **limits
    )
    atexit.register(opened.close)
    OPENED.append(opened)
    if (recorder := current_recorder()) is not None:
        recorder.attach(opened)
    return opened


def _compiling(rest: RestClient) -> str:
    """Whether the server says that it compiles kernels, for which a new session may have to wait."""
    found = rest.glance("/v1/version")
    return "compiling" if isinstance(found, dict) and found.get("kernels") == "preparing" else ""


def current_session() -> Session:
    """The session that new tensors belong to, opened at first use."""
    global _current
    if (current := _current) is not None and not current.closed:
        return current
    with _lock:
        if _current is None or _current.closed:
            _current = open_session()
            use_defaults(_current)
        return _current


@contextmanager
def active(session: Session) -> Iterator[None]:
    """For the extent of the ``with``, new tensors of all threads belong to this session."""
    global _current
    with _lock:
        before, _current = _current, session
        use_defaults(session)
    try:
        yield
    finally:
        with _lock:
            _current = before


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


def use_defaults(session: Session) -> None:
    """Have a session use what the program has set for all."""
    _use_default_dtype(session)
    _use_matmul_precision(session)


def _use_default_dtype(session: Session) -> None:
    if session.default_dtype is not _default_dtype:
        session.record(TABLE["set_default_dtype"], [_default_dtype.name], 0)
        session.builder.use_default_dtype(_default_dtype)


def set_default_dtype(dtype: DType) -> None:
    """The floating point dtype that Python floats take.

    Raises:
        ArgumentTypeError: for any other dtype.
    """
    global _default_dtype
    if not isinstance(dtype, DType) or not dtype.is_floating_point or dtype.for_storage:
        raise ArgumentTypeError(f"the default dtype must be a floating point dtype, not {dtype!r}")
    _default_dtype = dtype
    if _current is not None and not _current.closed:
        _use_default_dtype(_current)


def get_default_dtype() -> DType:
    """The floating point dtype that Python floats take."""
    return _default_dtype


def _use_matmul_precision(session: Session) -> None:
    if session.matmul_precision != _matmul_precision:
        session.record(TABLE["set_float32_matmul_precision"], [_matmul_precision], 0)
        session.matmul_precision = _matmul_precision


def set_matmul_precision(precision: str) -> None:
    """How coarse float32 products may be on a GPU: 'highest', 'high' or 'medium'."""
    global _matmul_precision
    _matmul_precision = precision
    if _current is not None and not _current.closed:
        _use_matmul_precision(_current)


def get_matmul_precision() -> str:
    """What :func:`set_matmul_precision` was given last."""
    return _matmul_precision
