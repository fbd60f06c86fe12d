"""What gateways, workers and the Directory send each other.

During an upgrade both versions run at once, so every field has a default, and unknown fields are ignored. Messages
cross Ray as plain dictionaries.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from gradwire_protocol.errors import GradwireError, from_code

NAMESPACE: Final = "gradwire"
DIRECTORY: Final = "gradwire-directory"
WORKER_PREFIX: Final = "gradwire-worker-"
REPORT_EVERY_S: Final = 1.0

T = TypeVar("T", bound=msgspec.Struct)


class Facts(msgspec.Struct, kw_only=True):
    """A worker, as it describes itself.

    Attributes:
        worker: its id, also the name of its owner in the shared storage.
        node: the id of its node in Ray.
        url: where it listens.
        assigned: the tenant or the session that it belongs to; empty for a warm worker.
        resources: what it takes of its node.
        secret: the secret of passes, from which a new Directory learns it.
        groups: the groups of ranks that its sessions have open, each a ``Meeting``.
    """

    worker: str = ""
    node: str = ""
    url: str = ""
    pid: int = 0
    assigned: str = ""
    resources: dict[str, Any] = {}
    version: str = ""
    secret: bytes = b""
    owner: str = ""
    sessions: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []


class Placement(msgspec.Struct, kw_only=True):
    """Where a session is, or is to be created.

    Attributes:
        reservation: of a new session: what the gateway reports as created or failed.
        session: the session's id; of a new session, the one that an earlier request with the same key created.
        limits: of a new session: the limits that the quota grants.
        incarnation: the Directory's; a gateway that sees another one joins again.
        fresh: the session was just placed on this worker, which has to load it.
    """

    session: str = ""
    tenant: str = ""
    worker: str = ""
    url: str = ""
    node: str = ""
    reservation: str = ""
    limits: dict[str, int] | None = None
    incarnation: str = ""
    fresh: bool = False


class Wanted(msgspec.Struct, kw_only=True):
    """A session that a gateway wants placed.

    Attributes:
        key: the caller's key, for quotas.
        limits: the limits that it requests.
        repeat: the Idempotency-Key, and ``request`` what it belongs to.
    """

    tenant: str = ""
    key: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    limits: dict[str, int] | None = None
    repeat: str = ""
    request: str = ""


class Joined(msgspec.Struct, kw_only=True):
    """What the Directory tells a gateway that joins."""

    incarnation: str = ""
    secret: bytes = b""


class Report(msgspec.Struct, kw_only=True):
    """What a gateway tells the Directory each second, and a worker when something changed.

    Attributes:
        process: its id.
        worker: whether it is a worker.
        sessions: a worker's sessions that changed since its last report.
        here: the ids of all its sessions; ``None``: those of ``sessions``.
        gone: the last sessions that ended at a worker, and how.
        use: the part of its rates that each tenant used since the last report, from 0 to 1; more where it was held.
        ended: ids of keys that were revoked or have expired.
    """

    process: str = ""
    worker: bool = False
    sessions: list[dict[str, Any]] = []
    here: list[str] | None = None
    gone: dict[str, str] = {}
    use: dict[str, float] = {}
    ended: list[str] = []
    version: str = ""
    url: str = ""


class Shared(msgspec.Struct, kw_only=True):
    """The Directory's answer to a report.

    Attributes:
        shares: the part of each tenant's rates that this process may use.
        ended: ids of keys whose streams a worker ends.
        incarnation: the Directory's.
        known: whether the Directory knows this process.
        devices: the kinds of devices of the fleet.
        whole: the Directory lacks facts of some of the worker's sessions, so the next report is to have them all.
    """

    shares: dict[str, float] = {}
    ended: list[str] = []
    incarnation: str = ""
    known: bool = True
    devices: list[str] = []
    whole: bool = False


def pack(message: msgspec.Struct) -> dict[str, Any]:
    """A message as a dictionary."""
    return {name: getattr(message, name) for name in message.__struct_fields__}


def unpack(data: dict[str, Any], kind: type[T]) -> T:
    """The message in a dictionary."""
    return msgspec.convert(data, kind, strict=False)


def refused(error: GradwireError) -> dict[str, Any]:
    """An error as an answer: exceptions of one version need not exist in another."""
    return {
        "error": {"code": error.details.get("code", error.code), "message": error.message, "details": error.details}
    }


def answered(data: dict[str, Any]) -> dict[str, Any]:
    """The answer.

    Raises:
        GradwireError: when it is an error.
    """
    error = data.get("error")
    if error is None:
        return data
    details = {name: value for name, value in error.get("details", {}).items() if name not in ("code", "message")}
    raise from_code(error["code"], error["message"], **details)
