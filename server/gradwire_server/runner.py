"""A session that runs: the engine's session with its journal. Knows neither threads nor sockets."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Self

import msgspec
import structlog

from gradwire_engine.backends import Backends, DevicePool
from gradwire_engine.compiled import toolchain
from gradwire_engine.deadline import Clock
from gradwire_engine.failures import BACKWARDS, MOMENTARY, leaves_traces
from gradwire_engine.image import Image, NotImageable, detached, restore_foreign, take
from gradwire_engine.session import Session
from gradwire_protocol import envelope
from gradwire_protocol.errors import Cancelled, GradwireError, InternalError, LimitExceeded, MalformedFrame, Unavailable
from gradwire_protocol.frames import Chunk, Frame, Problem, Reply, Structure

from .durable import snapshots
from .durable.disk import Disk, Piece
from .durable.journal import PREFIX, SUFFIX, Journal, disk_refuses, journal_path
from .durable.manifest import Manifest, Mark, Owner
from .durable.records import MAX_RECORD_BYTES, Kind, Notes, damaged
from .durable.recovery import recover
from .durable.spec import JournalPolicy, SessionSpec
from .durable.store import DiskUse, Lock, read_spec, remove_session, write_spec

Buffers = list[memoryview]
How = Literal["new", "recover", "adopt"]
"""How a session begins: empty, from its folder, or from a file that somebody brings."""

LARGE_BYTES: Final = 64 << 10
"""What is smaller is not worth asking whether the disk has room for it."""

STRETCH: Final = 16
"""How many times its proper length a journal may reach while the session cannot be imaged, before data is refused; four
times as much, and every frame is that is not tiny."""

SMALL_BYTES: Final = 512
"""What is smaller may be what ends whatever keeps the session from being imaged."""

PAUSE_S: Final = 5.0
"""Between attempts to write a snapshot onto a disk that is full."""

_PLAIN: Final = Notes()
_HUMAN: Final = Notes(human=True)
_NO_STRUCTURE: Final = Frame().structure

log = structlog.get_logger("gradwire.runner")


class Runner:
    """One session. Not thread-safe; what it answers is safe to tell after :meth:`commit`.

    Args:
        folder: where the session is kept on disk; ``None`` for one that lives in memory only.

    Attributes:
        snapshots_taken: since it was opened here.

    Raises:
        DeviceError: for a device that does not exist.
        LimitExceeded: when the data directory is full.
        Unavailable: when another process has the folder open, and when the disk is full or broken.
    """

    def __init__(
        self,
        spec: SessionSpec,
        folder: Path | None = None,
        backends: Backends | None = None,
        policy: JournalPolicy | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._prepare(spec, folder, backends, policy, disk)
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
    ) -> Self:
        """A new session with what somebody's file holds.

        Raises:
            InvalidRequest, LimitExceeded: for an image that is none, or is over a limit.
        """
        self = cls.__new__(cls)
        self._prepare(spec, folder, backends, policy, disk)
        self.session = restore_foreign(image, spec.engine_limits(), spec.device, backends)
        if self.folder is not None:
            self._begin(self.folder, take(self.session))
        return self

    @classmethod
    def recover(
        cls,
        folder: Path,
        backends: Backends | None = None,
        policy: JournalPolicy | None = None,
        disk: Disk | None = None,
        plans: int | None = None,
    ) -> Self:
        """The session of a folder, as it was when its last record was written.

        Args:
            plans: how it runs frames from now on, in place of how it did.

        Raises:
            JournalDamaged: naming the file and the offset.
            OutOfMemory: when the session does not fit into memory.
            Unavailable: when another process has the folder open, when the disk is full or broken, and when the session
            needs compiled kernels that cannot be had.
        """
        kept = read_spec(folder)
        self = cls.__new__(cls)
        self._prepare(kept.spec if plans is None else kept.spec.with_plans(plans), folder, backends, policy, disk)
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
                raise damaged(folder, 0, f"it cannot be used: {error.strerror}") from None
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
    ) -> None:
        self.spec = spec
        self.folder = None if spec.durability == "none" else folder
        self.policy = policy or JournalPolicy()
        self.disk = disk or Disk()
        self.snapshots_taken = 0
        self.committed_bytes = 0
        self._disk_use = DiskUse.of(folder.parent if folder is not None else Path(), self.policy.max_data_bytes)
        self._backends = backends
        self._journal: Journal | None = None
        self._manifest: Manifest | None = None
        self._superfluous: list[Path] = []
        self._lock: Lock | None = None
        self._snapshot_bytes = 0
        self._uncertain = False
        self._not_before = (0, 0.0)
        self._postponed = ""
        self._lost: InternalError | None = None
        toolchain.wanted()  # who waits for kernels does so here, in the session's thread

    def _begin(self, folder: Path, image: Image | None) -> None:
        """Make the folder of a new session; ``session.json`` comes last, so that it is there whole or not at all."""
        self._disk_use.check(LARGE_BYTES if image is None else image.nbytes)
        self.disk.make_folder(folder)
        self._lock = Lock(folder)
        try:
            snapshot = None
            if image is not None:
                snapshot = snapshots.write(self.disk, folder, self.spec.id, 0, image)
                self._snapshot_bytes = snapshot.path.stat().st_size
            owner = Owner(self.spec.id, self.spec.tenant)
            self._manifest = Manifest.begin(self.disk, folder, owner, Mark())
            self._journal = Journal.begin(self.disk, folder, self.spec.id, 0, self.durable, self._manifest, snapshot)
            write_spec(self.disk, folder, self.spec, "empty" if image is None else "snapshot")
            self.disk.sync_folder(folder.parent)
            self._manifest.complete()
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
        self._snapshot_bytes, self._uncertain = found.snapshot_bytes, found.uncertain

    @property
    def durable(self) -> bool:
        """Whether what was committed survives the loss of power, too."""
        return self.spec.durability == "durable"

    @property
    def journaled(self) -> bool:
        """Whether what it does is written down."""
        return self._journal is not None

    @property
    def ran(self) -> Structure | None:
        """The structure of the last frame, unless that was refused or a repetition: for counting."""
        return self.session.ran

    @property
    def planned(self) -> bool:
        """Whether a plan ran the last frame."""
        return self.session.planned

    # What changes the session

    def _choose_kernels(self) -> None:
        """Go over to compiled kernels once they are there, or back where they are not: an event of its own."""
        compiled = toolchain.wanted()
        if compiled != self.session.engine.compiled:
            self.session.run_compiled(compiled)
            if self._journal is not None:
                self._journal.append(Kind.KERNELS, Notes(compiled=compiled), [])

    def apply(
        self, frame: Frame, buffers: Buffers, human: bool = False, clock: Clock | None = None
    ) -> tuple[Reply, Buffers]:
        """Apply a frame once and answer it; a refused frame has changed nothing. ``clock`` is what cancels it."""
        journal = self._journal
        if journal is None:
            self._choose_kernels()
            return self.session.apply(frame, buffers, human, clock=clock)
        client = self.session.clients.get(frame.client)
        if client is None or frame.seq not in (0, client.expected):
            reply, out = self.session.apply(frame, buffers, human)  # it is refused, or answered once more
            if self.session.dropped:
                journal.append(Kind.DROP, Notes(client=frame.client, transfers=self.session.dropped), [])
            return reply, out
        try:
            if self._lost is not None or journal.failing:
                self._ready()
            message = _encoded(frame, buffers, human)
            nbytes = sum(map(len, message))
            if nbytes >= LARGE_BYTES or journal.nbytes > self.policy.journal_bytes:
                self._check_room(nbytes, bool(frame.payloads))
        except GradwireError as error:
            self.session.ran = None
            return _refusal(frame.seq, error), []
        self._choose_kernels()
        try:
            reply, out = self.session.apply(frame, buffers, human, clock=clock)
        except Exception:
            self._go_back()
            raise
        if reply.refused is None:
            notes = _HUMAN if human else _PLAIN
            if self.session.failed:
                failures = {p.index: _plain(p) for p in self.session.failed if p.code in MOMENTARY}
                if any(leaves_traces(problem.op) for problem in failures.values()) or _has_freed(reply, self.ran):
                    self._uncertain = True
                notes = Notes(human=human, failures=failures)
            journal.append(Kind.FRAME, notes, message)
        return reply, out

    def add_chunk(self, client: int, chunk: Chunk, data: memoryview) -> None:
        """Take a piece of an upload.

        Raises:
            LimitExceeded, MalformedFrame: for a piece that is too much, or does not fit.
            Unavailable: while the disk takes nothing.
        """
        if self._journal is None:
            self.session.add_chunk(client, chunk.transfer, chunk.offset, chunk.total, data)
            return
        self._ready()
        try:
            self._check_room(data.nbytes, True)
        except LimitExceeded as error:
            self.session.uploads.refuse((client, chunk.transfer), error)
            raise
        self.session.add_chunk(client, chunk.transfer, chunk.offset, chunk.total, data)
        message = envelope.encode(Chunk(chunk.transfer, chunk.offset, chunk.total), [data])
        self._journal.append(Kind.CHUNK, Notes(client=client), message)

    def join(self, client: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        """Register or resume a client: its number, the number of its next frame, its epoch.

        Raises:
            MalformedFrame: for a client that the session never had.
            Superseded: for a program whose place was taken by another one.
            Unavailable: while the disk takes nothing.
        """
        if self._journal is None:
            return self.session.join(client, instance, epoch)
        self._ready()
        joined = self.session.join(client, instance, epoch)
        self._journal.append(Kind.JOIN, Notes(client=client, instance=instance, epoch=epoch), [])
        return joined

    def _ready(self) -> None:
        """See that what waits from a disk that was full is written before anything else is done.

        Raises:
            Unavailable: when it is full still.
            InternalError: when the session could not be brought back after a defect.
        """
        if self._lost is not None:
            raise self._lost
        if self._journal is not None and self._journal.failing:
            self.commit()

    def _check_room(self, nbytes: int, brings_data: bool) -> None:
        journal = self._journal
        assert journal is not None
        if nbytes > MAX_RECORD_BYTES:
            raise LimitExceeded(
                f"a message of {nbytes:,} bytes is too long for a journal, which takes {MAX_RECORD_BYTES:,}: send its "
                "payloads in chunks",
                limit=MAX_RECORD_BYTES, value=nbytes,
            )  # fmt: skip
        if nbytes >= LARGE_BYTES:
            self._disk_use.check(nbytes)
        most = STRETCH * self._proper_bytes() * (1 if brings_data else 4)
        if journal.nbytes > most and (brings_data or nbytes >= SMALL_BYTES):
            raise LimitExceeded(
                f"the journal of the session has {journal.nbytes:,} bytes and cannot be replaced by a snapshot "
                f"({self._postponed or 'the disk takes none'}); it may have {most:,}, {most // self._proper_bytes()} "
                f"times what GRADWIRE_JOURNAL_BYTES and the session's own size allow",
                setting="GRADWIRE_JOURNAL_BYTES", limit=most, value=journal.nbytes,
            )  # fmt: skip

    def _go_back(self) -> None:
        """After a frame of which nobody knows what it has changed: be what the journal tells."""
        assert self._journal is not None
        assert self.folder is not None
        log.error("a frame failed in an unforeseen way; the session goes back to its journal", session=self.spec.id)
        self._lost = InternalError("the session cannot be brought back from its journal by this process")
        self._journal.commit()
        self._journal.close()
        if self._manifest is not None:
            self._manifest.close()
        self.session.close()
        self._recover(self.folder)
        self._lost = None

    # The journal

    @property
    def dirty(self) -> bool:
        """Whether something was applied that is not safe to tell yet."""
        return self._journal is not None and self._journal.dirty

    @property
    def waiting_bytes(self) -> int:
        """How much of the journal waits to be written."""
        return self._journal.waiting_bytes if self._journal is not None else 0

    def commit(self) -> None:
        """Make safe what was applied, to the degree that the session's durability promises.

        Raises:
            Unavailable: when the disk is full or broken. What was applied stays applied and is written first, later.
        """
        if self._journal is None:
            return
        if self._superfluous:
            self._withdraw()
        written = self._journal.commit()
        self.committed_bytes += written
        self._disk_use.count(written)
        if self._uncertain:
            self.compact()

    def compact(self, force: bool = False) -> bool:
        """Replace the journal by a snapshot, if that is due (or ``force``) and possible; whether it was done."""
        journal, manifest, folder = self._journal, self._manifest, self.folder
        if journal is None or manifest is None or folder is None or journal.dirty or not (force or self._due(journal)):
            return False
        try:
            image = take(self.session)
        except (NotImageable, MemoryError) as error:
            self._postponed = error.message if isinstance(error, NotImageable) else "there is no memory for it"
            self._not_before = journal.nbytes + self._proper_bytes() // 8, 0.0
            return False
        base = journal.last
        try:
            if journal.base < base:
                self._superfluous.append(journal_path(folder, base))
            written = snapshots.write(self.disk, folder, self.spec.id, base, image)
            del image
            if journal.base < base:
                self._superfluous.append(written.path)
                following = Journal.begin(self.disk, folder, self.spec.id, base, self.durable, manifest, written)
                self._superfluous = []
            else:  # nothing is in it yet
                following = journal
                journal.announce(written)
        except OSError as error:
            log.warning("a snapshot cannot be written", session=self.spec.id, error=str(error))
            with suppress(Unavailable):
                self._withdraw()
            self._postponed = str(error.strerror)
            self._not_before = 0, time.monotonic() + PAUSE_S
            return False
        self._journal = following
        if following is not journal:
            journal.close()
        self._snapshot_bytes = written.path.stat().st_size
        self._uncertain, self._postponed, self._not_before = False, "", (0, 0.0)
        self.snapshots_taken += 1
        self._forget_before(folder, written)
        return True

    def _withdraw(self) -> None:
        """Remove a snapshot behind which no journal could be begun: nobody may look for what follows behind it.

        Raises:
            Unavailable: when the disk does not take that either. The next commit tries it again, and first.
        """
        assert self.folder is not None
        try:
            for path in self._superfluous:
                if os.path.lexists(path):
                    self.disk.remove(path)
            self.disk.sync_folder(self.folder)
        except OSError as error:
            raise disk_refuses(error) from None
        self._superfluous = []

    def _proper_bytes(self) -> int:
        """How long the journal may be. As long as the snapshot at least, so that writing snapshots costs no more than
        writing the journal did."""
        return max(self.policy.journal_bytes, self._snapshot_bytes)

    def _due(self, journal: Journal) -> bool:
        nbytes, moment = self._not_before
        if time.monotonic() < moment:
            return False
        return self._uncertain or journal.nbytes >= max(self._proper_bytes(), nbytes)

    def _forget_before(self, folder: Path, newest: snapshots.Snapshot) -> None:
        """Remove what the newest snapshot includes. What is left over by a crash goes the next time."""
        kept = {newest.path, journal_path(folder, newest.seq)}
        try:
            for path in sorted(folder.glob(f"{PREFIX}*{SUFFIX}")):
                if path not in kept:
                    self.disk.remove(path)
            for old in snapshots.snapshots(folder):
                if old.path not in kept:
                    self.disk.remove(old.path)
        except OSError as error:
            log.warning("an old journal cannot be removed", session=self.spec.id, error=str(error))

    # Looking in

    def describe(self) -> dict[str, Any]:
        """Counts and sizes of what the session holds."""
        return self.session.describe() | self._kept()

    def glance(self) -> dict[str, Any]:
        """What :meth:`describe` tells and can be seen from another thread while an op runs; only counters are read."""
        return self.session.glance() | self._kept()

    def _kept(self) -> dict[str, Any]:
        journal, plans = self._journal, self.session.plan_stats()
        if journal is None:
            return {"durability": "none", "plans": plans}
        return {
            "plans": plans,
            "durability": self.spec.durability,
            "journal": {
                "bytes": journal.nbytes, "records": journal.last, "snapshot_bytes": self._snapshot_bytes,
                "snapshots_taken": self.snapshots_taken, "postponed": self._postponed,
            },
        }  # fmt: skip

    def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None, peek: bool = False
    ) -> list[dict[str, Any]]:
        """Rows of live tensors by rising id; ``peek`` from another thread while an op runs."""
        return self.session.tensors(after, most, among, peek)

    def memory(self) -> dict[str, int]:
        """What the session's tensors occupy."""
        return self.session.memory()

    def reset_peak(self) -> None:
        """Let the peak of memory be what is held now."""
        self.session.reset_peak_memory()

    def graph(self, ids: list[int] | None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the autograd graph behind these tensors, or all.

        Raises:
            UnknownTensor: for an id that is not there.
            LimitExceeded: for a graph of more nodes than ``most``.
        """
        return self.session.graph(ids, most)

    def export(self) -> bytes:
        """The session's tensors and names as one file."""
        return b"".join(snapshots.encode(detached(self.session)))

    # The end

    def close(self, keep: bool = False) -> None:
        """Release everything; on disk it stays if ``keep`` says so.

        Raises:
            Unavailable: when the disk does not take what waits for it.
            OSError: when files cannot be removed.
        """
        try:
            if self._journal is not None:
                try:
                    if keep:
                        self.commit()
                        self._journal.sync()
                finally:
                    self._journal.close()
                    self._journal = None
                    if self._manifest is not None:
                        self._manifest.close()
                if not keep and self.folder is not None:
                    remove_session(self.disk, self.folder)
        finally:
            self.session.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None


def open_runner(
    spec: SessionSpec,
    folder: Path | None,
    how: How = "new",
    image: bytes | memoryview = b"",
    policy: JournalPolicy | None = None,
) -> Runner:
    """A runner that begins as ``how`` says; ``image`` is the file to adopt. It has its thread for itself."""
    limits = spec.engine_limits()
    # What a session may hold, and what one op may need beside that for a while.
    backends = Backends(pool=DevicePool(limits.max_session_bytes + limits.max_tensor_bytes))
    if how == "new":
        return Runner(spec, folder, backends, policy)
    if how == "adopt":
        return Runner.adopt(spec, folder, snapshots.decode(image), backends, policy)
    assert folder is not None
    return Runner.recover(folder, backends, policy, plans=spec.limits.get("plans"))


def _encoded(frame: Frame, buffers: Buffers, human: bool) -> Sequence[Piece]:
    """The frame as the journal keeps it: the wire's own bytes, but for a structure in JSON, which has no place there.

    Raises:
        MalformedFrame: for numbers that MessagePack does not hold.
    """
    if not frame.structure and frame.structure is not _NO_STRUCTURE:
        # Left out only if it is the default itself; nothing at all in its place would not be MessagePack.
        frame = msgspec.structs.replace(frame, structure=_NO_STRUCTURE)
    if human:
        structure = msgspec.Raw(msgspec.msgpack.encode(bytes(frame.structure)))
        frame = msgspec.structs.replace(frame, structure=structure)
    try:
        return envelope.encode(frame, buffers)
    except (OverflowError, RecursionError, TypeError, ValueError) as error:
        raise MalformedFrame(f"the frame holds what a journal cannot: {error}") from None


def _plain(problem: Problem) -> Problem:
    """The problem, without particulars that cannot be written down."""
    try:
        msgspec.msgpack.encode(problem)
    except (TypeError, OverflowError, RecursionError, ValueError):
        return msgspec.structs.replace(problem, extra={})
    return problem


def _refusal(seq: int, error: GradwireError) -> Reply:
    problem = Problem(error.code, error.message, seq=seq, retryable=error.retryable, extra=error.details)
    return Reply(seq=seq, refused=problem)


def _has_freed(reply: Reply, structure: Structure | None) -> bool:
    """Whether a cancelled frame may have freed a graph, the one thing that is not taken back."""
    if structure is None or not any(problem.code == Cancelled.code for problem in reply.errors):
        return False
    return any(record[0] == "grad" or record[0] in BACKWARDS for record in structure.ops if type(record[0]) is str)
