"""A running session: the engine's session with its journal, independent of threads and sockets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Self

import msgspec
import structlog

from gradwire_engine.autograd.failures import MOMENTARY, leaves_traces
from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.backends import Backends
from gradwire_engine.runtime.deadline import Clock
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import Image, NotImageable, restore, restore_foreign, take
from gradwire_protocol import envelope
from gradwire_protocol.errors import (
    GradwireError,
    InternalError,
    InvalidRequest,
    LimitExceeded,
    OutOfMemory,
    Unavailable,
)
from gradwire_protocol.frames import Chunk, Frame, Reply

from ..durable import snapshots
from ..durable.disk import Disk
from ..durable.journal import Journal, disk_refuses, journal_path, superseded
from ..durable.manifest import Manifest, Mark, Owner
from ..durable.records import GroupNote, Kind, Notes, damaged
from ..durable.recovery import recover
from ..durable.shared.home import Home
from ..durable.store import DiskUse, Lock, read_spec, remove_session, write_spec
from ..settings.session_spec import JournalPolicy, SessionSpec
from .journaled_frames import Buffers, encoded, has_freed, plain, refusal
from .session_groups import SessionGroups
from .session_travels import SessionTravels
from .snapshot_schedule import LARGE_BYTES, SnapshotSchedule
from .time_travel import Past, PastPlace, check_alone

How = Literal["new", "recover", "adopt", "go_on", "fork", "past"]
"""How a session starts: empty, recovered from its folder, imported from a file, as it was in another process, as
another one is or was, or as a look at the past of another one."""

CHEAP_BYTES: Final = 64 << 20
CHEAP_RECORDS: Final = 16
"""Before a hand-over, a session of at most this size and with at least this many records takes a snapshot."""

_PLAIN: Final = Notes()
_HUMAN: Final = Notes(human=True)

log = structlog.get_logger("gradwire.runner")


class Runner(SessionTravels):
    """One session. Not thread-safe. Results may be published only after :meth:`commit`.

    Args:
        folder: the session's folder on disk; ``None`` for a session in memory only.
        home: the session's place in shared storage, which the folder belongs to. Nothing may be published before
            :meth:`publish_epoch`.

    Attributes:
        snapshots_taken: snapshots since the session was opened here.
        given_up: a frame was given up halfway, to be applied elsewhere: only the journal still has the session.

    Raises:
        DeviceError: when the device does not exist.
        LimitExceeded: when the data directory is full.
        Unavailable: when another process has the folder open, or the disk is full or broken.
    """

    def __init__(
        self,
        spec: SessionSpec,
        folder: Path | None = None,
        backends: Backends | None = None,
        policy: JournalPolicy | None = None,
        disk: Disk | None = None,
        home: Home | None = None,
    ) -> None:
        self._prepare(spec, folder, backends, policy, disk, home)
        self.session = Session(spec.engine_limits(), spec.device, spec.default_dtype, spec.seed, backends)
        if self.folder is not None:
            self._begin(self.folder, None)

    @classmethod
    def adopt(
        cls,
        spec: SessionSpec,
        folder: Path | None,
        image: Image,
        backends: Backends | None = None,
        policy: JournalPolicy | None = None,
        disk: Disk | None = None,
        home: Home | None = None,
    ) -> Self:
        """A new session from an imported file.

        Raises:
            InvalidRequest, LimitExceeded: when the image is invalid or exceeds a limit.
        """
        self = cls.__new__(cls)
        self._prepare(spec, folder, backends, policy, disk, home)
        self.session = restore_foreign(image, spec.engine_limits(), spec.device, backends)
        if self.folder is not None:
            self._begin(self.folder, take(self.session))
        return self

    @classmethod
    def go_on(cls, spec: SessionSpec, image: Image, backends: Backends | None = None) -> Self:
        """A session without a journal, as another process of this server or fleet had it (:meth:`image`).

        Raises:
            Unavailable: when the session needs compiled kernels that are not available.
            OutOfMemory: when it does not fit into memory.
        """
        self = cls.__new__(cls)
        self._prepare(spec, None, backends, None, None, None)
        try:
            self.session = restore(image, spec.engine_limits(), backends)
        except MemoryError as error:
            raise OutOfMemory(f"the session does not fit into memory: {error or 'allocation failed'}") from None
        except (msgspec.ValidationError, KeyError, IndexError, ValueError, TypeError) as error:
            raise InvalidRequest(f"this version does not know the form of the session: {error}") from None
        if self.session.engine.compiled and not toolchain.wait():
            raise Unavailable(f"the session uses compiled kernels, here are none: {toolchain.describe()['reason']}")
        for group in self.session.engine.groups.values():
            group.keeps = False
        return self

    @classmethod
    def fork(
        cls, spec: SessionSpec, folder: Path | None, image: Image, backends: Backends | None = None,
        policy: JournalPolicy | None = None, disk: Disk | None = None, home: Home | None = None,
    ) -> Self:  # fmt: skip
        """A new session in the state of another one, live graph included. Its clients resume their places in it.

        Raises:
            InvalidRequest: when the other one is in a group.
            OutOfMemory: when it does not fit into memory.
            LimitExceeded, Unavailable: as the constructor.
        """
        self = cls.go_on(spec, image, backends)
        check_alone(self.session)
        for client in self.session.clients.values():
            client.replies.clear()
            client.reply_bytes = 0
        self._prepare(spec, folder, backends, policy, disk, home)
        if self.folder is not None:
            self._begin(self.folder, take(self.session))
        return self

    @classmethod
    def look_back(cls, spec: SessionSpec, place: PastPlace, backends: Backends | None = None) -> Self:
        """A session that shows another one at a frame of its past.

        Raises:
            NotFound: when the frame is not kept.
            JournalDamaged: when a file of the other one is damaged.
        """
        self = cls.__new__(cls)
        self._prepare(spec, None, backends, None, None, None)
        self.past = Past(spec, place, backends)
        self.session = self.past.session
        return self

    @classmethod
    def recover(
        cls,
        folder: Path,
        backends: Backends | None = None,
        policy: JournalPolicy | None = None,
        disk: Disk | None = None,
        plans: int | None = None,
        home: Home | None = None,
    ) -> Self:
        """Recover a session from its folder, including the last written record.

        Args:
            plans: overrides the mode of plans.

        Raises:
            JournalDamaged: names the file and the offset.
            OutOfMemory: when the session does not fit into memory.
            Unavailable: when another process has the folder open, the disk is full or broken, or compiled kernels that
                the session needs are not available.
        """
        kept = read_spec(folder)
        self = cls.__new__(cls)
        spec = kept.spec if plans is None else kept.spec.with_plans(plans)
        self._prepare(spec, folder, backends, policy, disk, home)
        try:
            self._lock = Lock(folder)
            for part in folder.glob("*.part"):
                self.disk.remove(part)
            self._recover(folder)
            if not kept.manifest:
                write_spec(self.disk, folder, kept.spec, kept.begins)
        except BaseException as error:
            if self._lock is not None:
                self._lock.release()
            if isinstance(error, PermissionError):
                raise damaged(folder, 0, f"no access: {error.strerror}") from None
            if isinstance(error, OSError) and not isinstance(error, Unavailable):
                raise disk_refuses(error) from None
            raise
        return self

    def _prepare(
        self,
        spec: SessionSpec,
        folder: Path | None,
        backends: Backends | None,
        policy: JournalPolicy | None,
        disk: Disk | None,
        home: Home | None,
    ) -> None:
        self.spec = spec
        self._home = home
        self.folder = None if spec.durability == "none" else folder
        self.policy = policy or JournalPolicy()
        self.disk = disk or Disk()
        self.snapshots_taken = 0
        self.given_up = False
        self.committed_bytes = 0
        measured, most = (Path(), 0) if folder is None else (folder.parent, self.policy.max_data_bytes)
        self._disk_use = DiskUse.of(measured, most) if home is None else home.use
        self._backends = backends
        self._journal: Journal | None = None
        self._manifest: Manifest | None = None
        self._orphans: list[Path] = []
        self._lock: Lock | None = None
        self._schedule = SnapshotSchedule(self.policy.journal_bytes)
        self._restore_error: InternalError | None = None
        self.groups = SessionGroups()
        toolchain.wanted()  # a wait for kernels happens here, in the session's thread

    def _begin(self, folder: Path, image: Image | None) -> None:
        """Create the folder of a new session. ``session.json`` is written last, which makes the creation atomic."""
        self._disk_use.check(LARGE_BYTES if image is None else image.nbytes)
        self.disk.make_folder(folder)
        self._lock = Lock(folder)
        try:
            snapshot = None
            if image is not None:
                snapshot = snapshots.write(self.disk, folder, self.spec.id, 0, image)
                self._schedule.snapshot_bytes = snapshot.path.stat().st_size
            owner = Owner(self.spec.id, self.spec.tenant)
            self._manifest = Manifest.begin(self.disk, folder, owner, Mark())
            self._journal = Journal.begin(self.disk, folder, self.spec.id, 0, self.durable, self._manifest, snapshot)
            write_spec(self.disk, folder, self.spec, "empty" if image is None else "snapshot")
            self.disk.sync_folder(folder.parent)
            self._manifest.complete(self._journal.last)
        except OSError as error:
            with suppress(OSError):
                remove_session(self.disk, folder)
            self._lock.release()
            raise disk_refuses(error) from None
        except BaseException:
            self._lock.release()
            raise

    def _recover(self, folder: Path) -> None:
        kept = read_spec(folder)._replace(spec=self.spec)
        found = recover(self.disk, folder, kept, self._backends)
        self.session, self._journal, self._manifest = found.session, found.journal, found.manifest
        self._schedule.snapshot_bytes, self._schedule.uncertain = found.snapshot_bytes, found.uncertain
        self.rewound = found.uncertain  # perhaps

    def publish_epoch(self) -> None:
        """Make the session's folder the session, if it is in shared storage: after everything in it is durable.

        Raises:
            OwnershipLost: when this process owns the session no longer.
            Unavailable: when the storage fails.
        """
        if self._home is None or self._journal is None:
            return
        try:
            self._journal.sync()
            self._home.publish(self.spec, self._journal.last)
        except OSError as error:
            raise error if isinstance(error, Unavailable) else disk_refuses(error) from None

    @property
    def durable(self) -> bool:
        """Whether committed changes survive a power failure."""
        return self.spec.durability == "durable"

    @property
    def journaled(self) -> bool:
        """Whether the session has a journal."""
        return self._journal is not None

    # Changes

    def _choose_kernels(self) -> None:
        """Switch to compiled kernels when they become available, or back. The journal records each switch."""
        compiled = toolchain.wanted()
        if compiled != self.session.engine.compiled:
            self.session.run_compiled(compiled)
            if self._journal is not None:
                self._journal.append(Kind.KERNELS, Notes(compiled=compiled), [])

    def apply(
        self, frame: Frame, buffers: Buffers, human: bool = False, clock: Clock | None = None
    ) -> tuple[Reply, Buffers]:
        """Apply a frame at most once and return its reply. A refused frame changes nothing. ``clock`` can cancel it."""
        journal = self._journal
        if journal is None:
            self._choose_kernels()
            return self.session.apply(frame, buffers, human, clock=clock)
        client = self.session.clients.get(frame.client)
        if client is None or frame.seq not in (0, client.expected):
            reply, out = self.session.apply(frame, buffers, human)  # a refusal or a repeated reply
            if self.session.dropped:
                journal.append(Kind.DROP, Notes(client=frame.client, transfers=self.session.dropped), [])
            return reply, out
        try:
            if self._restore_error is not None or journal.failing:
                self._ensure_writable()
            message = encoded(frame, buffers, human)
            nbytes = sum(map(len, message))
            if nbytes >= LARGE_BYTES or journal.nbytes > self.policy.journal_bytes:
                self._schedule.check_room(journal, self._disk_use, nbytes, bool(frame.payloads))
        except GradwireError as error:
            self.session.ran = None
            return refusal(frame.seq, error), []
        self._choose_kernels()
        try:
            reply, out = self.session.apply(frame, buffers, human, clock=clock)
        except Exception:
            self._restore()
            raise
        if reply.refused is None:
            notes, session = _HUMAN if human else _PLAIN, self.session
            if session.failed:
                failures = {p.index: plain(p) for p in session.failed if p.code in MOMENTARY}
                if any(leaves_traces(problem.op) for problem in failures.values()) or has_freed(reply, session.ran):
                    self._schedule.uncertain = True
                notes = Notes(human=human, failures=failures)
            if session.engine.groups:
                notes = self.groups.noted(session, notes)
            journal.append(Kind.FRAME, notes, message)
            for name in self.groups.ended(session):
                journal.append(Kind.GROUP, Notes(closed=name), [])
        return reply, out

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview) -> None:
        """Add a chunk of an upload.

        Raises:
            LimitExceeded, MalformedFrame: when the chunk exceeds a limit or does not fit.
            Unavailable: while the disk is not writable.
        """
        if self._journal is None:
            self.session.add_chunk(client, chunk.transfer, chunk.offset, chunk.total, data)
            return
        self._ensure_writable()
        try:
            self._schedule.check_room(self._journal, self._disk_use, data.nbytes, True)
        except LimitExceeded as error:
            self.session.uploads.refuse((client, chunk.transfer), error)
            raise
        self.session.add_chunk(client, chunk.transfer, chunk.offset, chunk.total, data)
        message = envelope.encode(Chunk(chunk.transfer, chunk.offset, chunk.total), [data])
        self._journal.append(Kind.CHUNK, Notes(client=client), message)

    def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        """Register or resume a client. Returns its number, the number of its next frame, and its epoch.

        Raises:
            MalformedFrame: when the session has no such client.
            Superseded: when another program resumed the client.
            Unavailable: while the disk is not writable.
        """
        if self._journal is None:
            return self.session.join(client, instance, epoch)
        self._ensure_writable()
        joined = self.session.join(client, instance, epoch)
        self._journal.append(Kind.JOIN, Notes(client=client, instance=instance, epoch=epoch), [])
        return joined

    def open_group(
        self, opened: GroupNote, secret: str, addresses: Sequence[tuple[str, int]], resumes: bool, meets: bool
    ) -> None:
        """Open a group of sessions, or connect one again that the session has (``resumes``).

        Args:
            meets: its ranks may exchange tensors on GPUs by NCCL.

        Raises:
            Unavailable: while the disk is not writable.
        """
        self._ensure_writable()
        if not resumes:
            self.groups.open(self.session, opened, self.journaled, meets)
            if self._journal is not None:
                self._journal.append(Kind.GROUP, Notes(opened=opened), [])
        self.groups.connect(self.session, opened.name, secret, addresses)

    def close_group(self, name: str) -> None:
        """Close a group; the other ranks' next collective fails."""
        self._ensure_writable()
        if self.groups.close(self.session, name) and self._journal is not None:
            self._journal.append(Kind.GROUP, Notes(closed=name), [])

    def _ensure_writable(self) -> None:
        """Write what a full disk has delayed before anything else.

        Raises:
            Unavailable: when the disk is still full.
            InternalError: when the session could not be restored after a bug.
        """
        if self._restore_error is not None:
            raise self._restore_error
        if self._journal is not None and self._journal.failing:
            self.commit()

    def _restore(self) -> None:
        """Restore the session from its journal after a frame with unknown effects."""
        assert self._journal is not None
        assert self.folder is not None
        log.error("a frame failed unexpectedly; restoring the session from its journal", session=self.spec.id)
        self._restore_error = InternalError("this process could not restore the session from its journal")
        self._journal.commit()
        self._journal.close()
        if self._manifest is not None:
            self._manifest.close()
        self.session.close()
        self._recover(self.folder)
        self.groups.close_all("its session failed unexpectedly and was restored", self.session)
        self._restore_error = None

    # The journal

    @property
    def dirty(self) -> bool:
        """Whether results may be published only after a commit: changes are not committed yet, or the session may have
        another owner meanwhile."""
        return self._journal is not None and (self._journal.dirty or self._home is not None)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of the journal are not written yet."""
        return self._journal.waiting_bytes if self._journal is not None else 0

    def commit(self) -> None:
        """Commit the applied changes as the session's durability requires.

        Raises:
            OwnershipLost: when this process owns the session no longer. Nothing may be published then.
            Unavailable: when the disk is full or broken. The changes stay applied, and the next commit writes them.
        """
        if self._journal is None:
            return
        if self._home is not None:
            self._home.check()
        if self._orphans:
            self._remove_orphans()
        written = self._journal.commit()
        self.committed_bytes += written
        self._disk_use.count(written)
        if not self.given_up:
            if self.session.engine.groups:
                self.groups.committed(self.session)
            if self._schedule.uncertain:
                self.compact()
        if self._home is not None:
            self._home.check()  # last: what was written while this server owned the session reaches its successor

    def compact(self, force: bool = False) -> bool:
        """Replace the journal by a snapshot, if that is due (or ``force``) and possible. Returns whether it was."""
        journal, manifest, folder = self._journal, self._manifest, self.folder
        if (
            journal is None
            or manifest is None
            or folder is None
            or self.given_up
            or journal.dirty
            or not (force or self._schedule.due(journal))
        ):
            return False
        try:
            image = take(self.session)
        except (NotImageable, MemoryError) as error:
            self._schedule.impossible(
                journal, error.message if isinstance(error, NotImageable) else "not enough memory"
            )
            return False
        base = journal.last
        try:
            if journal.base < base:
                self._orphans.append(journal_path(folder, base))
            written = snapshots.write(self.disk, folder, self.spec.id, base, image)
            del image
            if journal.base < base:
                self._orphans.append(written.path)
                following = Journal.begin(self.disk, folder, self.spec.id, base, self.durable, manifest, written)
                self._orphans = []
            else:  # the journal is empty
                following = journal
                journal.announce(written)
        except OSError as error:
            log.warning("cannot write a snapshot", session=self.spec.id, error=str(error))
            with suppress(Unavailable):
                self._remove_orphans()
            self._schedule.failed(str(error.strerror))
            return False
        self._journal = following
        if following is not journal:
            journal.close()
        if self._home is not None:
            self._home.check()  # a successor then knows the snapshot, and needs none of the older files
        self._schedule.taken(written.path.stat().st_size)
        self.snapshots_taken += 1
        self.rewound = False
        try:
            for path in superseded(folder, written, self._oldest_checkpoint(folder)):
                self.disk.remove(path)
        except OSError as error:
            log.warning("cannot remove an old journal", session=self.spec.id, error=str(error))
        return True

    @property
    def lost(self) -> bool:
        """Whether another process may own the session meanwhile."""
        return self._home is not None and self._home.lost

    def _remove_orphans(self) -> None:
        """Remove a snapshot without a following journal, because recovery would look for that journal.

        Raises:
            Unavailable: when the disk fails again. The next commit retries it first.
        """
        assert self.folder is not None
        try:
            for path in self._orphans:
                if os.path.lexists(path):
                    self.disk.remove(path)
            self.disk.sync_folder(self.folder)
        except OSError as error:
            raise disk_refuses(error) from None
        self._orphans = []

    # Queries

    def describe(self) -> dict[str, Any]:
        """Counts and sizes of the session's contents."""
        return self.session.describe() | self._kept()

    def glance(self) -> dict[str, Any]:
        """The part of :meth:`describe` that reads only counters, safe from another thread while an op runs."""
        return self.session.glance() | self._kept()

    def _kept(self) -> dict[str, Any]:
        journal, plans = self._journal, self.session.plan_stats()
        kernels = {"in_use": self.session.engine.compiled, "state": toolchain.describe()["state"]}
        if journal is None:
            return {"durability": "none", "plans": plans, "kernels": kernels}
        return {
            "plans": plans,
            "kernels": kernels,
            "durability": self.spec.durability,
            "journal": {
                "bytes": journal.nbytes, "records": journal.last, "snapshot_bytes": self._schedule.snapshot_bytes,
                "snapshots_taken": self.snapshots_taken, "postponed": self._schedule.postponed,
            },
        }  # fmt: skip

    # Close

    def discard(self) -> None:
        """Release everything without writing; for a session that was opened here in vain."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._manifest is not None:
            self._manifest.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        self.session.close()

    def _shorten(self) -> None:
        """Take a snapshot if that is cheap, so that the next owner starts sooner."""
        journal = self._journal
        if journal is None or journal.nbytes < self._schedule.snapshot_bytes // 4:
            return
        if self.session.engine.account.live <= CHEAP_BYTES and journal.last - journal.base >= CHEAP_RECORDS:
            self.compact(force=True)

    def close(self, keep: bool = False) -> None:
        """Release everything; ``keep`` leaves the session on disk.

        Raises:
            Unavailable: when the last commit fails.
            OSError: when files cannot be removed.
        """
        if keep:
            self.groups.detach()
        else:
            self.groups.close_all("its session has ended")
        try:
            if self._journal is not None:
                try:
                    if keep and not self.lost:
                        self.commit()
                        if self._home is not None:
                            self._shorten()
                        self._journal.sync()
                finally:
                    self._journal.close()
                    self._journal = None
                    if self._manifest is not None:
                        self._manifest.close()
                if not keep and self.folder is not None and self._home is None:
                    remove_session(self.disk, self.folder)
                elif self._home is not None and keep:
                    self._home.release()
                elif self._home is not None and not self.lost:
                    self._home.remove(self.spec.tenant)
        finally:
            if self._home is not None:
                self._home.leave()
            self.session.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None
