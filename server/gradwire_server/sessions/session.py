"""A session as the registry knows it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import structlog

from gradwire_engine.runtime.cuda import launching
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import MAX_ID

from ..durable.shared.home import Home
from ..durable.store import note_use
from ..observability.session_activity import SessionActivity
from ..settings.session_spec import SessionSpec
from ..settings.timestamps import timestamp
from .session_supervisor import SessionSupervisor

log = structlog.get_logger("gradwire.sessions")


class OpenStream(Protocol):
    """An open stream of a session.

    Attributes:
        instance: the id of the client's process.
        epoch: counts the streams of one instance.
    """

    instance: str
    epoch: int

    def cancel_waiting(self, first: int, last: int) -> int:
        """Cancel queued frames in this range; returns their number."""

    def end_resumed(self) -> None:
        """End the stream because its client resumed on another one."""

    def end_with_session(self, text: str) -> None:
        """End the stream because the session ended."""

    def end_unavailable(self, error: GradwireError) -> None:
        """End the stream because the session is unavailable."""

    def end_with_server(self) -> None:
        """End the stream because the server is stopping."""


@dataclass(eq=False)
class Session:
    """A session in the registry. Its host has the tensors and the graph.

    Attributes:
        spec: its parameters.
        host: its host.
        activity: what its frames did.
        folder: its folder on disk.
        home: its place in shared storage; the folder is a name then.
        moving: it is being handed over to another server.
        opening: how many groups it is about to open.
        damaged: its description on disk is unreadable; each use fails with the reason.
        used: when it was last used, by the monotonic clock.
        streams: open streams by client number. An open stream counts as use.
    """

    spec: SessionSpec
    host: SessionSupervisor
    activity: SessionActivity
    folder: Path | None = None
    home: Home | None = None
    moving: bool = False
    opening: int = 0
    damaged: bool = False
    used: float = field(default_factory=time.monotonic)
    streams: dict[int, OpenStream] = field(default_factory=dict)
    saved: float = 0.0

    @property
    def id(self) -> str:
        return self.spec.id

    @property
    def tenant(self) -> str:
        """The owner. For other tenants the session does not exist."""
        return self.spec.tenant

    @property
    def device(self) -> str:
        return self.spec.device

    @property
    def default_dtype(self) -> str:
        return self.spec.default_dtype

    @property
    def limits(self) -> Limits:
        return self.spec.engine_limits()

    @property
    def stored_elsewhere(self) -> bool:
        """Whether it is not loaded here, but in shared storage, where another server may use it."""
        return self.home is not None and not self.host.awake and not self.in_use

    @property
    def in_use(self) -> bool:
        """Whether it has open streams or pending frames, or waits for the ranks of a group."""
        return bool(self.streams or self.host.pending or self.opening)

    async def cancel(self, client: int | None = None, first: int = 0, last: int = MAX_ID) -> int:
        """Cancel queued and running frames in this range, of one client or of all; returns their number."""
        found = sum(
            [stream.cancel_waiting(first, last) for number, stream in self.streams.items() if client in (None, number)]
        )
        return found + await self.host.cancel(client, first, last)

    def touch(self) -> None:
        """Record a use."""
        self.used = time.monotonic()

    @property
    def remaining(self) -> float:
        """Seconds until it expires if it stays idle."""
        if self.in_use:
            return self.spec.ttl_s
        return self.used + self.spec.ttl_s - time.monotonic()

    @property
    def state(self) -> str:
        """``running``, ``dormant`` or ``damaged``."""
        return "damaged" if self.damaged else "running" if self.host.awake else "dormant"

    def summary(self) -> dict[str, Any]:
        """The data that requires no query of the host."""
        spec = self.spec
        return {
            "id": self.id,
            "name": spec.name,
            "device": spec.device,
            "default_dtype": spec.default_dtype,
            "ttl_s": spec.ttl_s,
            "durability": spec.durability,
            "state": self.state,
            "activity": self.doing,
            "created_at": timestamp(spec.created),
            "expires_at": timestamp(time.time() + self.remaining),
            "streams": len(self.streams),
            "limits": {name: most for name, most in asdict(self.limits).items() if name != "plans"},
        }

    @property
    def doing(self) -> str:
        """What its clients wait for, as far as this process knows."""
        if self.host.waking:
            return "waking"
        if not self.host.pending:
            return "idle"
        return "compiling" if self.device != "cpu" and launching.compiling() else "computing"

    def save_use(self) -> None:
        """Save its last use on disk."""
        if self.in_use:
            self.touch()
        if self.folder is not None and self.home is None and self.used > self.saved and not self.damaged:
            at = time.time() - (time.monotonic() - self.used)
            try:
                note_use(self.folder, at)
            except OSError as error:  # at worst, the session expires too early
                log.warning("cannot save a session's last use", session=self.id, reason=str(error))
            self.saved = self.used
