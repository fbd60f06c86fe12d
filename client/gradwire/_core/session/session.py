"""A session as the program sees it: it makes tensors, tells about itself, notices quiet, and ends."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.awake import SPIN_S
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, GradwireError, NotFound, Superseded, UnknownTensor
from gradwire_protocol.frames import ID_BITS, MAX_ID
from gradwire_protocol.meta import meta
from gradwire_protocol.ops.control import GRAD_MODE
from gradwire_protocol.table import TABLE, Op

from ..context.biased_lock import BiasedLock
from ..context.call_sites import spell_line, user_depth
from ..context.modes import MODES
from ..context.numpy_dtypes import NUMPY_DTYPES
from ..tensor.tensor import UNKNOWN_GRAD, Tensor
from ..wire.connection import HEARTBEAT_S
from ..wire.link import Link
from ..wire.rest import RestClient
from ..wire.retry import PATIENCE_S
from .frame_builder import FrameBuilder
from .read_ahead import ReadAhead
from .read_loops import ReadLoops
from .round_trips import Report, Waits, report
from .upload_cache import KEPT_BYTES, LEAST_BYTES, SHARE, UploadCache
from .value_reader import ValueReader

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

QUIET_S: Final = 0.004
LOOKS_IN_VAIN: Final = 100
"""So often in a row nothing new was recorded when the one who looks goes to sleep."""
PAYLOAD_BYTES_PER_FRAME: Final = 8 << 20


DETACHED_KEPT: Final = 4096
"""Tensors that were detached in place and are remembered."""
ROWS_AT_ONCE: Final = 500
"""Ids in one request: their list has to fit into the head of one."""


class Session:
    """A session on a server. All tensors belong to one.

    Args:
        url: the server.
        session: id of the session.
        api_key: the key it belongs to.
        patience: seconds to keep reconnecting before ``ConnectionLost``.
        heartbeat: seconds of silence after which a connection that the program waits for is pinged.
        owned: delete the session on :meth:`close`.
        client: the client's place to take over; 0 for one of its own.
        spin: seconds in which an answer is waited for awake, if answers usually come that soon.
        direct: whether to follow a gateway's redirects.
        kept_uploads: bytes of uploads that may be kept on the server, and here, since they come again and again.

    Attributes:
        url, api_key: as they were given.
        rest: asks the server what is no frame.
        link: makes frames arrive.
        builder: records ops, and cuts frames.
        reader: waits for values and errors.
        read_ahead: reads that follow each other.
        read_loops: warns of lines that read one by one.
        lock, dropped: the builder's, here too since they are used for each tensor: whose turn it is to record, and the
            ids of tensors that are gone.
    """

    def __init__(
        self, url: str, session: str, api_key: str | None, *, patience: float = PATIENCE_S,
        heartbeat: float = HEARTBEAT_S, owned: bool = False, device: str = "cpu", client: int = 0,
        spin: float = SPIN_S, kept_uploads: float = KEPT_BYTES, direct: bool | None = None,
    ) -> None:  # fmt: skip
        rest = RestClient(url, api_key, patience=patience)
        link = Link(url, session, api_key, patience, heartbeat, client, spin, direct, lambda: _activity(rest, session))
        most = link.limits.get("max_session_bytes", KEPT_BYTES * SHARE) // SHARE
        self.id: str = session
        self.rest: RestClient = rest
        self.link: Link = link
        self.builder: FrameBuilder = FrameBuilder(self, link, bool(client))
        self.lock: BiasedLock = self.builder.lock
        self.dropped: list[int] = self.builder.dropped
        self.kept_uploads: UploadCache = UploadCache(min(int(kept_uploads), most))
        self.reader: ValueReader = ValueReader(self.builder, self.kept_uploads)
        self.read_ahead: ReadAhead = ReadAhead(self.builder, self.reader)
        self.read_loops: ReadLoops = ReadLoops(self.builder)
        self.url: str = url
        self.api_key: str | None = api_key
        self.device: str = device
        self.matmul_precision: str = "highest"
        self.max_tensor_bytes: int = link.limits.get("max_tensor_bytes", MAX_ID)
        self.names: dict[str, int] = {}
        self.detached: dict[int, float] = {}  # ids of results that were detached in place, and since which node
        link.cancelling, link.recorded = self._cancel, lambda: bool(self.builder.records)
        self._owned = owned
        threading.Thread(target=self._watch, name="gradwire-quiet", daemon=True).start()

    # Recording and reading

    @property
    def closed(self) -> bool:
        """Whether nothing can be recorded any more."""
        return self.builder.closed

    @property
    def recorded(self) -> int:
        """How many ops were recorded so far."""
        return self.builder.recorded

    @property
    def frames(self) -> int:
        """How many frames were sent."""
        return self.builder.sent_frames

    @property
    def ops(self) -> int:
        """How many ops were sent."""
        return self.builder.sent_ops

    @property
    def default_dtype(self) -> DType:
        """What Python's floats become."""
        return self.builder.default_dtype

    @property
    def waits(self) -> Waits:
        """Which lines of the program waited."""
        return self.reader.waits

    def record(self, op: Op, values: list[Any], results: int) -> int:
        """Add an op to the frame. Returns the id of its first result; the others follow."""
        return self.builder.record(op, values, results)

    def flush(self, must: bool = False) -> int | None:
        """Send what was recorded, without waiting for it. Returns the frame's number, or None if nothing was sent.

        Where as much is on its way as may be, it waits until there is room. If the server cannot be reached then, what
        was recorded stays recorded; with ``must`` that is raised.

        Raises:
            ConnectionLost: as said.
        """
        return self.builder.flush(must=must)

    def read(self, tensors: list[Tensor]) -> list[np.ndarray[Any, Any] | None]:
        """The values of tensors, in one round trip. ``None`` for an undefined gradient.

        Raises:
            The first error that the server met since the last read, or that one of the tensors depends on.
        """
        return self.reader.read(tensors)

    def ask(self, tensors: list[Tensor]) -> Callable[[], list[Any]]:
        """Ask for the values of tensors without waiting; returns a function that waits for them.

        By the time the program has read anything that was computed later, they have arrived, and that function costs
        no round trip.
        """
        return self.reader.ask(tensors)

    def synchronize(self) -> None:
        """Wait until everything recorded so far is done, and raise the first error among it."""
        self.reader.read([])

    # Tensors

    def note_detached(self, number: int, seq: float) -> None:
        """Note that a result was cut from its history in place, for the nodes before ``seq`` that keep it."""
        if len(self.detached) >= DETACHED_KEPT:
            del self.detached[next(iter(self.detached))]
        self.detached[number] = seq

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, device: str) -> int:
        """Send values; returns the id of the new tensor. The array must not change afterwards: it may be sent again."""
        data = np.ascontiguousarray(array, NUMPY_DTYPES[dtype])
        if data.nbytes >= LEAST_BYTES and MODES.flags == GRAD_MODE and MODES.capture is None and not MODES.maps:
            about = dtype, tuple(array.shape), device
            kept = self.kept_uploads.find(data, about, lambda: self._keep(data, *about))
            if kept is not None:
                return self.record(TABLE["clone"], [kept, False, False], 1)
        return self._upload(data, dtype, tuple(array.shape), device)

    def _keep(self, data: np.ndarray[Any, Any], dtype: DType, shape: tuple[int, ...], device: str) -> Tensor:
        kept: Tensor = Tensor._make(self, self._upload(data, dtype, shape, device), meta(shape, dtype, device))
        return kept

    def _upload(self, data: np.ndarray[Any, Any], dtype: DType, shape: tuple[int, ...], device: str) -> int:
        if self.builder.payload_bytes + data.nbytes > PAYLOAD_BYTES_PER_FRAME:
            self.flush()
        view = memoryview(data.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        return self.record(TABLE["upload"], [view, dtype, shape, device], 1)

    def tensor(self, name: str | int) -> Tensor:
        """The tensor that some client of this session named; or the one of an id, for a program that took the place
        of the one that made it.

        Raises:
            NotFound: when there is none of this name.
            UnknownTensor: when there is none of this id.
            ArgumentError: for an id of another client, whose tensor this program may not release.
        """
        if isinstance(name, int):
            if name >> ID_BITS != self.client:
                raise ArgumentError(
                    f"tensor {name} was made by client {name >> ID_BITS}, this is client {self.client}: let that one "
                    "name it, or take its place with connect(client=...)"
                )
            number = name
        else:
            number = self.record(TABLE["by_name"], [name], 1)
        probe: Tensor = Tensor._make(self, number, meta((0,), dtypes.float32, self.device))
        self.synchronize()
        row = self.rows([number]).get(number)
        if row is None:
            raise UnknownTensor(f"there is no tensor {name!r}: it was never made, or was released")
        probe._form = meta(tuple(row["shape"]), dtypes.BY_NAME[row["dtype"]], row["device"])
        probe._requires = bool(row["requires_grad"])
        probe._grad_state = UNKNOWN_GRAD
        return probe

    # What it counts itself, and what the server knows of it

    @property
    def client(self) -> int:
        """The number under which this program's frames are counted. Another program can take its place by it."""
        return self.link.client

    @property
    def epoch(self) -> int:
        """Rises each time a program resumes this client's place; frames of older epochs are refused."""
        return self.link.epoch

    @property
    def durability(self) -> str:
        """What a frame survives once it is acknowledged.

        ``none``: nothing but a lost connection. ``applied``: the death of the server's process, since its journal was
        written. ``durable``: the loss of power as well, since it was on the disk.
        """
        return self.link.durability

    def stats(self) -> dict[str, int]:
        """Counts since the session was opened here: frames, ops, round trips, bytes, reconnects.

        ``structure_hits`` counts frames whose structure the server had and that travelled as its hash; the others
        carried it: since it was new (``structure_new``), for the first time on this connection
        (``structure_reconnected``), known once and forgotten to make room (``structure_forgotten``), or too small to
        be worth a hash (``structure_small``). ``bytes_per_frame`` is a mean, of all that was sent.
        ``uploads_skipped`` counts uploads of what the server had already, ``upload_bytes_skipped`` their bytes,
        ``uploads_kept`` the tensors that it keeps for that.
        ``acknowledged`` is the number of the last frame that is known to be applied; ``unanswered`` frames, of
        ``unanswered_bytes``, are on their way or wait for the server; ``resent`` counts frames that were sent again.
        ``direct`` is 1 while the connection leads to the worker that has the session, past the gateway of a fleet;
        ``redirects`` counts how often the gateway sent the program to one, ``fallbacks`` how often the way there was
        given up for the gateway's relay.
        """
        builder, kept, link = self.builder, self.kept_uploads, self.link.stats()
        return {
            "frames": builder.sent_frames, "ops": builder.sent_ops, **link,
            "bytes_per_frame": link["bytes_sent"] // max(builder.sent_frames, 1),
            "uploads_skipped": kept.skipped, "upload_bytes_skipped": kept.skipped_bytes, "uploads_kept": len(kept),
        }  # fmt: skip

    def round_trip_report(self) -> Report:
        """Which lines of the program waited for the server since the session was opened here, and for how long."""
        return report([self.waits.copy()])

    def describe(self) -> dict[str, Any]:
        """What the server says of the session: memory, tensors, expiry."""
        found: dict[str, Any] = self.rest.get(f"/v1/sessions/{self.id}")
        return found

    def memory(self) -> dict[str, int]:
        """What the session's tensors occupy on the server, in bytes, once everything recorded so far is done.

        ``live_bytes`` is held by tensors and graph, each piece of memory once; ``saved_bytes`` are those of them that
        the graph keeps for backward; ``pooled_bytes`` is held in reserve by the devices' allocators (0 on the CPU);
        ``peak_bytes`` was the most that was live at once; ``limit_bytes`` is the session's limit.
        """
        self.synchronize()
        found: dict[str, int] = self.rest.get(f"/v1/sessions/{self.id}/memory")
        return found

    def reset_peak_memory(self) -> None:
        """Forget the peak of :meth:`memory`: it becomes what is live once everything recorded so far is done."""
        self.synchronize()
        self.rest.delete(f"/v1/sessions/{self.id}/memory/peak")

    def rows(self, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """What the server's list of tensors says of these ids, by id; one that it does not have is left out. Sends
        nothing of what was recorded.
        """
        found: dict[int, dict[str, Any]] = {}
        for at in range(0, len(ids), ROWS_AT_ONCE):
            query = "&".join(f"tensor={each}" for each in ids[at : at + ROWS_AT_ONCE])
            page = self.rest.get(f"/v1/sessions/{self.id}/tensors?{query}")["tensors"]
            found.update((row["id"], row) for row in page)
        return found

    def graph(self, *tensors: Tensor) -> dict[str, Any]:
        """Nodes and edges of the live autograd graph behind these tensors (all, when none are given)."""
        self.synchronize()
        query = "&".join(f"tensor={t._id}" for t in tensors)
        found: dict[str, Any] = self.rest.get(f"/v1/sessions/{self.id}/graph" + (f"?{query}" if query else ""))
        return found

    def line_of(self, position: int) -> str | None:
        """``file:line`` of the operation that made a node, by the ``position`` that :meth:`graph` tells.

        ``None`` for another client's, and for one that was sent too long ago.
        """
        line = self.builder.recent_lines.at(position)
        return None if line is None else spell_line(line)

    # Cancelling

    def cancel(self) -> None:
        """Stop what the server computes for this program, and what waits there. Any thread may call it; a program that
        is interrupted (Ctrl-C) while it waits does so itself.

        Each frame that was cancelled has had no effect: the session is as it was before it, and what it was to make
        raises ``Cancelled`` when it is read. What is recorded and was not sent yet is sent as usual.
        """
        self.link.cancel()

    def _cancel(self) -> None:
        self.kept_uploads.clear()  # some may have been in what is cancelled
        self.rest.cancel(f"/v1/sessions/{self.id}/frames?client={self.link.client}")

    # Quiet, and the end

    def _watch(self) -> None:
        """Send what was recorded once the program has been quiet for a few ms, and keep the connection alive.

        As long as the program records, this looks every few ms and need not be woken: to wake a thread with every frame
        costs more than the frame.
        """
        builder = self.builder
        while not builder.closed:
            stirred = builder.stirred.wait(1.0)
            if builder.closed:
                return
            if not stirred:
                self.link.tick()
                continue
            builder.stirred.clear()
            seen, idle = -1, 0
            while idle < LOOKS_IN_VAIN and not builder.closed:
                time.sleep(QUIET_S)
                recorded = builder.recorded
                idle = idle + 1 if recorded == seen else 0
                if idle and builder.records:
                    self._send_quietly()
                seen = recorded
            builder.watched = False
            if builder.records:
                builder.stirred.set()

    def _send_quietly(self) -> None:
        """Send what was recorded, unless somebody records. To wait for room is left to the program, which may be
        interrupted then; it would wait for this thread's lock otherwise."""
        if not self.link.has_room or not self.lock.acquire(blocking=False):
            return
        try:
            if not self.lock.busy:  # else a signal's handler may wait for the lock in the midst of a record
                self.flush()
        except GradwireError:
            pass  # the program meets it at its next read
        finally:
            self.lock.release()

    def close(self) -> None:
        """Send what is left and close.

        A session that was made here is deleted, unless it was to be kept. One that lives on has everything applied
        that was recorded, or a warning tells what may not be.
        """
        with self.lock:
            self.builder.begin()
            if self.closed:
                return
            try:
                self.flush()
                self.link.confirm()  # one that another program has taken over is not this one's to delete
                self.link.close(settle=not self._owned)
                if self._owned:
                    self.rest.delete(f"/v1/sessions/{self.id}")
            except (NotFound, Superseded):
                pass  # it is gone already, or another program's now
            except (GradwireError, OSError) as error:
                if not self._owned and self.link.unanswered:
                    warnings.warn(
                        f"session {self.id} was left without its server: {self.link.doubtful} may not be applied "
                        f"({type(error).__name__})", RuntimeWarning, user_depth(),
                    )  # fmt: skip
                # Else the server is gone, and the session with it or by its time to live.
            finally:
                self.builder.close()
                self.builder.stirred.set()
                self.link.close()
                self.rest.close()

    def leave(self) -> None:
        """Let go of it without a word, in a process that was forked from the one it belongs to."""
        self.lock = self.builder.lock = BiasedLock()
        self.builder.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gradwire session {self.id} at {self.url}>"

    if TYPE_CHECKING:  # attached from above

        def repeat(
            self, step: Any, times: int, *args: Any, after: Callable[[], Any] | None = None, **kwargs: Any
        ) -> Any: ...


def _activity(rest: RestClient, session: str) -> str:
    """What the server says that the session does, for somebody who looks at a wait; empty if it says nothing."""
    found = rest.glance(f"/v1/sessions/{session}?contents=false")
    return str(found.get("activity", "")) if isinstance(found, dict) else ""
