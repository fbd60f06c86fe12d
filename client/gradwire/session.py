"""A session as the program sees it: it records ops into a frame, cuts frames, and reads values."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from gradwire_protocol import dtypes, envelope
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import (
    ArgumentError,
    ConnectionLost,
    GradwireError,
    InternalError,
    NotFound,
    Superseded,
    UnknownTensor,
    Unsupported,
)
from gradwire_protocol.frames import ID_BITS, MAX_ID, Frame, Problem, Structure, structure_hash
from gradwire_protocol.meta import meta
from gradwire_protocol.ops.control import GRAD_MODE
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import DEFAULT_DTYPE, TABLE, Op

from .connection import HEARTBEAT_S
from .kept_uploads import KEPT_BYTES, LEAST_BYTES, SHARE, KeptUploads
from .lines import Line, RecentLines, quote_line, spell_line, user_depth, user_line
from .link import Link
from .mapping import refuse_reading
from .modes import MODES
from .patience import PATIENCE_S
from .replies import error_of
from .rest import Rest
from .round_trips import BACKPRESSURE, PROFILE, Report, Waits, report
from .turns import NOBODY, Turns
from .window import UNKNOWN_BYTES, Answer

if TYPE_CHECKING:
    from .dispatch import Recipe
    from .recorder import Recorder, Travelled
    from .tensor import Tensor

QUIET_S: Final = 0.004
LOOKS_IN_VAIN: Final = 100
"""So often in a row nothing new was recorded when the one who looks goes to sleep."""
OPS_PER_FRAME: Final = 2048
PAYLOAD_BYTES_PER_FRAME: Final = 8 << 20
NUMPY_DTYPES: Final = {
    d: np.dtype(ml_dtypes.bfloat16 if d is dtypes.bfloat16 else d.name) for d in dtypes.ALL
}  # fmt: skip
DTYPES: Final = {native: dtype for dtype, native in NUMPY_DTYPES.items()}
JOINS: Final = frozenset({"clip_grad_norm_", "grad_of", "unscale_gradients", "update_scale"})
"""What still belongs to a frame that is due to end after a backward, beside the steps of optimizers."""


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
        kept_uploads: bytes of uploads that may be kept on the server, and here, since they come again and again.
    """

    def __init__(
        self, url: str, session: str, api_key: str | None, *, patience: float = PATIENCE_S,
        heartbeat: float = HEARTBEAT_S, owned: bool = False, device: str = "cpu", client: int = 0,
        kept_uploads: float = KEPT_BYTES,
    ) -> None:  # fmt: skip
        self.url = url
        self.id = session
        self.device = device
        self._default_dtype = dtypes.float32
        self.matmul_precision = "highest"
        self.rest = Rest(url, api_key)
        self.link = Link(url, session, api_key, patience, heartbeat, client)
        self.max_tensor_bytes = self.link.limits.get("max_tensor_bytes", MAX_ID)
        most = self.link.limits.get("max_session_bytes", KEPT_BYTES * SHARE) // SHARE
        self.kept_uploads = KeptUploads(min(int(kept_uploads), most))
        self.waits = Waits()
        self.lock = Turns()
        self._recorder: Recorder | None = None
        self.link.stalled = lambda began: self.waits.note(began, what=BACKPRESSURE)
        self.dropped: list[int] = []
        self._closed = False
        self._owned = owned
        self._base = self.link.client << ID_BITS
        self._next_id = self._first_free_id() if client else self._base + 1
        self._nowhere = 0
        self._stirred = threading.Event()
        self._watched = False  # as the event is set, for the path of every op
        self._limit = min(OPS_PER_FRAME, self.link.limits.get("max_ops_per_frame", OPS_PER_FRAME))
        self._fresh()
        self._lines_of: dict[tuple[int, int], str] = {}
        self._recent_lines = RecentLines(self.link.client)
        self.names: dict[str, int] = {}
        self.while_waiting: list[Callable[[], Any]] = []  # what is worth doing while the server computes
        self.frames = 0
        self.ops = 0
        self.changes = 0  # what was recorded that may change memory
        threading.Thread(target=self._watch, name="gradwire-quiet", daemon=True).start()

    def _first_free_id(self) -> int:
        """The id after all that the program before has used: the one that the session chooses for a result."""
        structure = envelope.encode_part(Structure(ops=[["zeros", [[0]]]], drops=[0]))
        seq = self.link.submit(Frame(), structure, b"", [], [None], wait=True)
        return self.link.wait(seq).reply.first

    # Recording

    def _fresh(self) -> None:
        self._ops: list[Any] = []
        self._lines: list[Any] = []
        self._scalars: list[Any] = []
        self._payloads: list[Any] = []
        self._payload_bytes = 0
        self._external: dict[int, int] = {}
        self._first = self._next_id
        self._flags = GRAD_MODE
        self._region: Any = None
        self._note: Travelled | None = None
        self._due = False
        self._let_through()

    def _let_through(self) -> None:
        """Let this thread, whose turn it is, take the short way, if an op is nothing but its record now."""
        plain = not (
            self._due or self._closed or self._recorder is not None or self._region is not None
            or self._default_dtype is not DEFAULT_DTYPE or self._flags & ~GRAD_MODE
        )  # fmt: skip
        self.lock.ready = MODES.thread | self._flags if plain else NOBODY

    @property
    def closed(self) -> bool:
        """Whether nothing can be recorded any more."""
        return self._closed

    @closed.setter
    def closed(self, closed: bool) -> None:
        self._closed = closed
        self.lock.ready = NOBODY

    @property
    def recorder(self) -> Recorder | None:
        """Of the profile that runs."""
        return self._recorder

    @recorder.setter
    def recorder(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self.lock.ready = NOBODY

    @property
    def default_dtype(self) -> DType:
        """What Python's floats become."""
        return self._default_dtype

    @default_dtype.setter
    def default_dtype(self, dtype: DType) -> None:
        self._default_dtype = dtype
        self.lock.ready = NOBODY

    def frame_ends(self) -> None:
        """The frame is due to end, after a backward or an optimizer's step: with the next read, or before the next
        record that does not belong to these. So a training step is one frame, whether or not its loss is read."""
        self._due = bool(self._ops)
        self.lock.ready = NOBODY

    def record(
        self, op: Op, values: list[Any], results: int, recipe: Recipe | None = None, line: Line | None = None
    ) -> int:
        """Add an op to the frame. Returns the id of its first result; the others follow.

        A recipe spares the encoding of arguments that were encoded before; a line that is known is not looked for.
        """
        with self.lock:
            if self.closed:
                raise InternalError("the session is closed")
            if len(self._ops) >= self._limit:
                self.flush(must=True)  # before anything of this op is recorded: if it fails, the op can be tried again
            elif self._due and not (op.control and (op.name in JOINS or op.name.endswith("_step"))):
                self._due = False  # where it cannot be sent now, it goes on
                self.flush()
            recorder = self.recorder
            began = 0 if recorder is None else time.perf_counter_ns()
            flags = MODES.flags
            if flags != self._flags:
                self._ops.append(["set_mode", [flags]])
                self._lines.append(None)
                self._flags = flags
            if MODES.region is not self._region:
                region = self._region = MODES.region
                self._ops.append(["set_region", [None if region is None else self._ref(region.handle)]])
                self._lines.append(None)
            if op.mutates is not None or op.control:
                self.changes += 1
            first = self._next_id
            if recipe is not None and recipe.template is not None:
                args = recipe.template.copy()
                for i in recipe.references:
                    args[i] = self._ref(values[i])
                for i in recipe.lists:
                    args[i] = self._refs(values[i])
                for i in recipe.numbers:
                    self._scalars.append(values[i])
            else:
                args = self._encode(op, values)
            self._ops.append([op.name, args] if op.results is not None else [op.name, args, results])
            self._lines.append(user_line() if line is None else line)
            self._next_id = first + results
            if recorder is not None:
                at = len(self._ops) - 1
                self._note = recorder.recorded(self._note, self, op, values, at, began, self._lines[at])
            if not self._watched:
                self._watched = True
                self._stirred.set()
            self._let_through()
            return first

    def _encode(self, op: Op, values: list[Any]) -> list[Any]:
        from .tensor import Tensor

        numbers, payloads = len(self._scalars), len(self._payloads)
        try:
            return encode_args(op, values, Tensor.__instancecheck__, self._ref, self._scalars, self._payloads)
        except GradwireError:
            # The frame goes on without this record, and so must its tables.
            del self._scalars[numbers:], self._payloads[payloads:]
            raise

    def _ref(self, tensor: Tensor) -> int:
        if tensor._session is not self:
            raise ArgumentError(
                f"tensors of different sessions, {self.id} and {tensor._session.id}, were used together: each session "
                "computes on its own"
            )
        number = tensor._id
        slot = number - self._first
        if slot >= 0:
            return slot
        table = self._external
        at = table.get(number)
        if at is None:
            if number < 0:
                raise Unsupported(
                    f"{tensor._meta!r} has no values: a tensor on the meta device is its shape and dtype, and nothing "
                    "can be computed from it on another"
                )
            at = table[number] = len(table)
        return -1 - at

    def _refs(self, tensors: list[Tensor | None]) -> list[int | None]:
        """References to several: an optimizer's step names all parameters of a model."""
        first, known = self._first, self._external.get
        found: list[int | None] = []
        for tensor in tensors:
            if tensor is None:
                found.append(None)
                continue
            number = tensor._id
            at = known(number) if number < first and tensor._session is self else None
            found.append(self._ref(tensor) if at is None else -1 - at)
        return found

    @property
    def recorded(self) -> int:
        """How many ops were recorded so far."""
        return self.ops + len(self._ops)

    def nowhere(self, count: int = 1) -> int:
        """An id for a tensor on the meta device, below zero; those of ``count - 1`` others follow it."""
        self._nowhere -= count
        return self._nowhere

    # Cutting frames

    def flush(
        self, wait: bool = False, reads: list[int] | None = None, read_bytes: int = 0, must: bool = False
    ) -> int | None:
        """Send what was recorded, without waiting for it. Returns the frame's number, or None if nothing was sent.

        Where as much is on its way as may be, it waits until there is room. If the server cannot be reached then, what
        was recorded stays recorded; with ``wait`` or ``must`` that is raised.

        Raises:
            ConnectionLost: as said.
        """
        with self.lock:
            if not self._ops and not reads and not wait:
                return None
            try:
                self.link.make_room(self._payload_bytes, read_bytes)
            except ConnectionLost:
                if wait or must:
                    raise
                return None
            if self._note is None and self.recorder is not None:
                self._note = self.recorder.plain(self)
            dropped = self.dropped
            count = len(dropped)
            local: list[int] = []
            releases: list[int] = []
            for number in dropped[:count]:
                if number > 0:
                    (local if number >= self._first else releases).append(number)
            del dropped[:count]
            structure = envelope.encode_part(
                Structure(
                    ops=self._ops,
                    reads=reads or [],
                    drops=sorted(n - self._first for n in local),
                    heard=wait and not reads,
                )
            )
            frame = Frame(
                first=self._first,
                external=list(self._external),
                scalars=self._scalars,
                releases=sorted(releases),
                timed=wait or self._note is not None,
            )
            payloads, lines = self._payloads, self._lines
            key = structure_hash(structure) if len(structure) > 64 else b""
            self.frames += 1
            self.ops += len(self._ops)
            note = self._note
            if note is not None:
                frame.detailed = True
                note.cut, note.total = time.perf_counter_ns(), len(self._ops)
            self._fresh()
            before = self.link.bytes_sent
            seq = self.link.submit(
                frame, structure, key, payloads, lines, wait, len(reads or ()), read_bytes, note=note
            )
            if note is not None:
                note.seq, note.sent, note.sent_bytes = seq, time.perf_counter_ns(), self.link.bytes_sent - before
            self._recent_lines.keep(seq, lines)
            return seq

    def read(self, tensors: list[Tensor]) -> list[np.ndarray[Any, Any] | None]:
        """The values of tensors, in one round trip. ``None`` for an undefined gradient.

        Raises:
            The first error that the server met since the last read, or that one of the tensors depends on.
        """
        with self.lock:
            for tensor in tensors:
                if tensor._levels:
                    refuse_reading(tensor)
            seq = self._ask(tensors)
            answered = False
            try:
                for task in list(self.while_waiting):
                    task()
                began = time.perf_counter_ns()
                answer = self.link.wait(seq)
                self.waits.note(began, answer)
                answered = True
            finally:
                if not answered:
                    self.link.give_up(seq)
            self._raise_first(answer)
            return [self._value(v, answer) for v in answer.reply.values]

    def ask(self, tensors: list[Tensor]) -> Callable[[], list[Any]]:
        """Ask for the values of tensors without waiting; returns a function that waits for them.

        By the time the program has read anything that was computed later, they have arrived, and that function costs
        no round trip.
        """
        with self.lock:
            seq = self._ask(tensors)
        values: list[Any] = []

        def answered() -> list[Any]:
            if not values:
                with self.lock:
                    known = self.link.has_answer(seq)
                    began = time.perf_counter_ns()
                    answer = self.link.wait(seq, counts=not known)
                    if not known:
                        self.waits.note(began, answer)
                    self._raise_first(answer)
                    values.extend(self._value(v, answer) for v in answer.reply.values)
            return values

        return answered

    def _ask(self, tensors: list[Tensor]) -> int:
        if MODES.capture is not None:
            MODES.capture.refuse("it reads a value")
        size = sum(t._meta.nbytes if t._meta.known else UNKNOWN_BYTES for t in tensors)
        seq = self.flush(wait=True, reads=[self._ref(t) for t in tensors], read_bytes=size)
        assert seq is not None
        return seq

    def synchronize(self) -> None:
        """Wait until everything recorded so far is done, and raise the first error among it."""
        self.read([])

    def _value(self, value: Any, answer: Answer) -> np.ndarray[Any, Any] | None:
        if not value.dtype:
            return None
        native = NUMPY_DTYPES[dtypes.BY_NAME[value.dtype]]
        data = answer.buffers[value.buffer]
        # What came inside a message is a read-only slice of it; what came in chunks is a buffer of its own.
        return np.frombuffer(bytearray(data) if data.readonly else data, native).reshape(value.shape)

    def _raise_first(self, last: Answer) -> None:
        failed, self.link.failed = self.link.failed, []
        if failed or last.refusal is not None or last.reply.errors:
            self.kept_uploads.clear()
        for answer in failed:
            for problem in answer.reply.errors:
                self._remember_line(answer, problem)
        for answer in [*failed, last]:
            if answer.refusal is not None:
                answer.refusal.args = (
                    f"{answer.refusal.message} (a frame of {len(answer.lines)} ops that ends at "
                    f"{spell_line(answer.lines[-1] if answer.lines else None)} was refused)",
                )
                raise answer.refusal
            if answer.reply.errors:
                raise self._error(answer.reply.errors[0])

    def _remember_line(self, answer: Answer, problem: Problem) -> None:
        if problem.seq == answer.reply.seq and 0 <= problem.index < len(answer.lines):
            self._lines_of[problem.seq, problem.index] = spell_line(answer.lines[problem.index])
            if len(self._lines_of) > 1000:
                del self._lines_of[next(iter(self._lines_of))]

    def _error(self, problem: Problem) -> GradwireError:
        where = self._lines_of.get((problem.seq, problem.index))
        text = problem.detail if where is None else f"{problem.detail}\n  issued by {problem.op} at {where}"
        position = problem.extra.get("position", 0)
        made = self._recent_lines.at(position) if isinstance(position, int) else None
        if made is not None:
            text += f"\n  {problem.extra.get('node')} was recorded at {quote_line(made)}"
        return error_of(problem, text, op=problem.op, line=where)

    # Tensors

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, device: str) -> int:
        """Send values; returns the id of the new tensor. The array must not change afterwards: it may be sent again."""
        data = np.ascontiguousarray(array, NUMPY_DTYPES[dtype])
        if data.nbytes >= LEAST_BYTES and MODES.flags == GRAD_MODE and MODES.capture is None and not MODES.maps:
            about = dtype, tuple(array.shape), device
            kept = self.kept_uploads.find(data, about, lambda: self._keep(data, *about))
            if kept is not None:
                return self.record(TABLE["clone"], [kept], 1)
        return self._upload(data, dtype, tuple(array.shape), device)

    def _keep(self, data: np.ndarray[Any, Any], dtype: DType, shape: tuple[int, ...], device: str) -> Tensor:
        from .tensor import Tensor

        kept: Tensor = Tensor._make(self, self._upload(data, dtype, shape, device), meta(shape, dtype, device))
        return kept

    def _upload(self, data: np.ndarray[Any, Any], dtype: DType, shape: tuple[int, ...], device: str) -> int:
        if self._payload_bytes + data.nbytes > PAYLOAD_BYTES_PER_FRAME:
            self.flush()
        self._payload_bytes += data.nbytes
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
        from .tensor import Tensor

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
        for row in self.rest.get(f"/v1/sessions/{self.id}/tensors")["tensors"]:
            if row["id"] == number:
                probe._meta = meta(tuple(row["shape"]), dtypes.BY_NAME[row["dtype"]], row["device"])
                probe._requires = bool(row["requires_grad"])
                probe._grad_state = 2
                return probe
        raise UnknownTensor(f"there is no tensor {name!r}: it was never made, or was released")

    def repeat(
        self, step: Any, times: int, *args: Any, after: Callable[[], Any] | None = None, **kwargs: Any
    ) -> Any:  # fmt: skip
        """Call a compiled function ``times`` times, in one message: a loop that the server runs by itself.

        Arguments are the same each time, but for those in ``gradwire.each(...)``, of which each iteration gets the next
        row: of indices, say, with which the function takes its batch from data on the server. All that the function
        changes is changed as by ``times`` calls. Returns what it returns, with the tensors of all iterations stacked
        along a new first dimension, and without history. Does not wait.

        The first iterations are ordinary calls, as long as the function's call is not recorded yet. An iteration in
        which something fails on the server is the last one, and the error names it.

        Args:
            after: called here after each iteration, to change numbers of an optimizer: a schedule's ``step``.

        Raises:
            ArgumentTypeError: for a function that is not compiled.
            ArgumentError: for one whose calls cannot be replayed, or do not leave things as the next has to find them.
        """
        from .compiling import repeat

        return repeat(self, step, times, *args, after=after, **kwargs)

    # Facts

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
        ``uploads_skipped`` counts uploads of what the server had already, ``upload_bytes_skipped`` their bytes.
        ``acknowledged`` is the number of the last frame that is known to be applied; ``unanswered`` frames, of
        ``unanswered_bytes``, are on their way or wait for the server; ``resent`` counts frames that were sent again.
        """
        link = self.link
        structures = {f"structure_{name}": count for name, count in link.structures.items()}
        return {
            "frames": self.frames, "ops": self.ops, "round_trips": link.round_trips, "bytes_sent": link.bytes_sent,
            "bytes_received": link.bytes_received, "reconnects": link.reconnects, "acknowledged": link.acknowledged,
            "unanswered": link.unanswered, "unanswered_bytes": link.unanswered_bytes, "resent": link.resent,
            "uploads_skipped": self.kept_uploads.skipped, "upload_bytes_skipped": self.kept_uploads.skipped_bytes,
            "bytes_per_frame": link.bytes_sent // max(self.frames, 1), **structures,
        }  # fmt: skip

    def round_trip_report(self) -> Report:
        """Which lines of the program waited for the server since the session was opened here, and for how long."""
        return report([self.waits.copy()])

    def cut_for(self, recorder: Recorder) -> None:
        """Send what an earlier profile has noted, before this one notes anything: a frame belongs to one profile."""
        with self.lock:
            if self._note is not None and self._note not in recorder.frames and not self.closed:
                self.flush()

    def settle(self, frame: Travelled) -> None:
        """Send a frame that is being profiled, if it was not sent yet, and wait for the server's times of it."""
        with self.lock:
            if self._note is frame:
                self.flush()
            if frame.seq and not frame.arrived:
                began = time.perf_counter_ns()
                self.link.until(frame.seq)
                self.waits.note(began, what=PROFILE)

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

    def line_of(self, position: int) -> str | None:
        """``file:line`` of the operation that made a node, by the ``position`` that :meth:`graph` tells.

        ``None`` for another client's, and for one that was sent too long ago.
        """
        line = self._recent_lines.at(position)
        return None if line is None else spell_line(line)

    def graph(self, *tensors: Tensor) -> dict[str, Any]:
        """Nodes and edges of the live autograd graph behind these tensors (all, when none are given)."""
        self.synchronize()
        query = "&".join(f"tensor={t._id}" for t in tensors)
        found: dict[str, Any] = self.rest.get(f"/v1/sessions/{self.id}/graph" + (f"?{query}" if query else ""))
        return found

    # Ending

    def _watch(self) -> None:
        """Send what was recorded once the program has been quiet for a few ms, and keep the connection alive.

        As long as the program records, this looks every few ms and need not be woken: to wake a thread with every frame
        costs more than the frame.
        """
        while not self.closed:
            stirred = self._stirred.wait(1.0)
            if self.closed:
                return
            if not stirred:
                self.link.tick()
                continue
            self._stirred.clear()
            seen, idle = -1, 0
            while idle < LOOKS_IN_VAIN and not self.closed:
                time.sleep(QUIET_S)
                recorded = self.recorded
                idle = idle + 1 if recorded == seen else 0
                if idle and self._ops:
                    self._send_quietly()
                seen = recorded
            self._watched = False
            if self._ops:
                self._stirred.set()

    def _send_quietly(self) -> None:
        """Send what was recorded, unless somebody records."""
        if not self.lock.acquire(blocking=False):
            return
        try:
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
                self.closed = True
                self._stirred.set()
                self.link.close()
                self.rest.close()

    def leave(self) -> None:
        """Let go of it without a word, in a process that was forked from the one it belongs to."""
        self.lock = Turns()
        self.closed = True

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<gradwire session {self.id} at {self.url}>"
