"""A session eats frames: it owns the tensor ids, the order of each client's frames, and the replies it keeps."""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from operator import length_hint
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.errors import (
    FrameOutOfOrder,
    GradwireError,
    InternalError,
    LimitExceeded,
    MalformedFrame,
    OutOfMemory,
    ReplyForgotten,
    ShapeError,
    Superseded,
    TooManyRequests,
    UnknownOp,
    UnknownStructure,
    UnknownTensor,
    from_code,
)
from gradwire_protocol.frames import (
    ID_BITS,
    MAX_ID,
    Frame,
    Payload,
    Problem,
    Reply,
    Structure,
    Timing,
    Value,
    position_of,
    structure_hash,
)
from gradwire_protocol.records import decode_args, mentioned
from gradwire_protocol.table import TABLE, Kind, Op, lookup

from . import deadline
from .backends import Backends, native
from .clients import JSON_NUMBER_BYTES, Client
from .engine import Engine
from .graph import describe_graph, saved_bytes
from .inplace import looked_at
from .json_values import from_json, to_json
from .lifetimes import Frees, last_uses
from .memory import UNLIMITED, Limits
from .registry import row
from .tensor import Tensor

log = logging.getLogger("gradwire.session")

STRUCTURES_KEPT: Final = 256
STRUCTURE_BYTES_KEPT: Final = 16 << 20
"""Encoded; decoded they take some ten times as much."""
UPLOADS_KEPT: Final = 64
CLIENTS_KEPT: Final = 4096

_from_msgpack = msgspec.msgpack.Decoder(Structure)
_from_json = msgspec.json.Decoder(Structure)
Buffers = list[memoryview]
_BACKWARDS: Final = frozenset({"backward", "begin_backward", "advance", "finish_backward"})


class Poison:
    """Stands for a tensor that could not be computed, and remembers the first cause."""

    __slots__ = ("problem",)

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


_GONE: Final = Poison(Problem(code="unknown_tensor", detail="this result was dropped by its frame"))


class Known(NamedTuple):
    """A structure that can be named by its hash: decoded, planned, and as it came."""

    structure: Structure
    frees: Frees
    encoded: bytes
    human: bool


class _Poisoned(Exception):
    """An operand of the record is poisoned."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def _sound(tensor: Tensor) -> Tensor:
    """The tensor, unless a write to its memory failed that the client does not know of yet."""
    problem = tensor.storage.poison
    if problem is not None:
        raise _Poisoned(problem)
    return tensor


class Session:
    """Holds tensors and graphs for the clients that share it. Not thread-safe: one frame at a time.

    Raises:
        DeviceError: for a default device that does not exist.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        device: str = "cpu",
        default_dtype: str = "float32",
        seed: int | None = None,
        backends: Backends | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.engine = Engine(self.limits, backends, seed or 0, dtypes.BY_NAME[default_dtype])
        self.device = device
        _ = self.engine.backends[device]
        self.ids: dict[int, Tensor | Poison | None] = {}
        self.clients: dict[int, Client] = {0: Client(0), 1: Client(1)}
        self.uploads: OrderedDict[tuple[int, int], tuple[memoryview, int]] = OrderedDict()
        self.structures: OrderedDict[bytes, Known] = OrderedDict()
        self.frames_applied = 0
        self.ops_run = 0
        self.failed: tuple[Problem, ...] = ()
        """What records of the last frame failed with, of themselves: what a replay has to be told."""
        self.ran: Structure | None = None
        """Of the last frame, unless that was refused or a repetition: for counting."""

    # Clients

    def new_client(self) -> int:
        """Register a client and return its number. 0 and 1 are taken: people without a client, and the server."""
        if len(self.clients) >= CLIENTS_KEPT:
            raise TooManyRequests(f"the session has had {CLIENTS_KEPT} clients: make a new one", limit=CLIENTS_KEPT)
        number = max(self.clients) + 1
        self.clients[number] = Client(number)
        return number

    def join(self, number: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        """Register a new client (0), or resume one: its number, the number of its next frame, and its new epoch.

        Another program takes a client's place by not knowing its epoch (0): from then on the old one is refused.

        Raises:
            MalformedFrame: for a client that the session never had.
            Superseded: for a program whose place was taken by another one.
        """
        client = self._client(number or self.new_client())
        if client.epoch and epoch and instance != client.instance:
            raise Superseded(
                f"client {number} was resumed by another program, {epoch} is an epoch of its past", epoch=client.epoch
            )
        client.instance = instance
        client.epoch += 1
        return client.number, client.expected, client.epoch

    def expected(self, client: int) -> int:
        """The number of the next frame of this client."""
        return self._client(client).expected

    def _client(self, number: int) -> Client:
        found = self.clients.get(number)
        if found is None:
            raise MalformedFrame(f"the session has no client {number}")
        return found

    def add_chunk(self, client: int, transfer: int, offset: int, total: int, data: memoryview) -> None:
        """Take a piece of an upload. Pieces may come again, but must come without gaps.

        Raises:
            LimitExceeded: for an upload over the limit of a tensor, before anything is allocated.
            MalformedFrame: for a piece that does not fit.
        """
        if total > self.limits.max_tensor_bytes:
            raise LimitExceeded(
                f"an upload of {total:,} bytes is over GRADWIRE_MAX_TENSOR_BYTES={self.limits.max_tensor_bytes:,}",
                setting="GRADWIRE_MAX_TENSOR_BYTES", limit=self.limits.max_tensor_bytes, value=total,
            )  # fmt: skip
        key = (client, transfer)
        if key not in self.uploads:
            held = sum(len(b) for b, _ in self.uploads.values())
            if held + total > self.limits.max_session_bytes or len(self.uploads) >= UPLOADS_KEPT:
                raise LimitExceeded(
                    f"{len(self.uploads)} uploads of {held:,} bytes are unfinished, {total:,} more are too many",
                    setting="GRADWIRE_MAX_SESSION_BYTES", limit=self.limits.max_session_bytes, value=held + total,
                )  # fmt: skip
            # Not a bytearray: that would fill, and so take, memory for what was announced and may never come.
            try:
                self.uploads[key] = (np.empty(total, np.uint8).data, 0)
            except MemoryError as error:
                raise self.engine.out_of_memory(f"an upload of {total:,} bytes", error) from None
        buffer, filled = self.uploads[key]
        end = offset + data.nbytes
        if offset < 0 or offset > filled or end > len(buffer):
            raise MalformedFrame(f"a piece of {data.nbytes} bytes at {offset} does not follow the {filled} received")
        buffer[offset:end] = data
        self.uploads[key] = (buffer, max(filled, end))

    # Frames

    def apply(
        self,
        frame: Frame,
        buffers: Buffers | None = None,
        human: bool = False,
        failures: Mapping[int, Problem] | None = None,
    ) -> tuple[Reply, Buffers]:
        """Apply a frame once and answer it. What a client did wrong is in the reply, never raised.

        ``human`` takes the structure as JSON and gives values as nested lists. ``failures`` is given, be it empty, to a
        frame that was applied before and is replayed: the records at these indexes are not run but fail with that
        problem, as they did then for want of memory or time, and no limit of memory or time stops the others.
        A refused frame changes nothing.
        """
        self.ran = None
        self.failed = ()
        try:
            client = self._client(frame.client)
            if frame.epoch and frame.epoch != client.epoch:
                raise Superseded(
                    f"client {client.number} was resumed since epoch {frame.epoch}: it is in epoch {client.epoch}",
                    epoch=client.epoch,
                )
            seq = frame.seq or client.expected
            if seq < client.expected:
                return self._again(client, seq, frame)
            if seq > client.expected:
                raise FrameOutOfOrder(
                    f"frame {seq} arrived, frame {client.expected} is expected next", expected=client.expected
                )
            try:
                known = self._structure(frame, human)
            except MemoryError as error:
                raise self.engine.out_of_memory("the structure of the frame", error) from None
            run = _Run(self, client, frame, seq, known, buffers or [], human, failures)
            # Nothing has changed until here, and nothing from here on refuses the frame.
            self._remember(frame.hash, known)
            client.acknowledge(frame.ack)
            reply, out = run.execute() if failures is None else run.replay()
        except GradwireError as error:
            return Reply(seq=frame.seq, refused=problem_of(error)), []
        client.expected = seq + 1
        if frame.seq:  # what has no number cannot be sent again
            client.keep(reply, out)
        self.frames_applied += 1
        self.ran = known.structure
        return reply, out

    def _again(self, client: Client, seq: int, frame: Frame) -> tuple[Reply, Buffers]:
        for payload in frame.payloads:
            # It came again with the frame, and nothing will take it.
            if payload.upload is not None:
                self.uploads.pop((client.number, payload.upload), None)
        kept = client.replies.get(seq)
        if kept is None:
            raise ReplyForgotten(
                f"frame {seq} was applied before, and its reply is no longer kept", expected=client.expected
            )
        return kept

    def _structure(self, frame: Frame, human: bool) -> Known:
        encoded = bytes(frame.structure)
        if not encoded:
            if not frame.hash:
                raise MalformedFrame("the frame has neither a structure nor the hash of one")
            known = self.structures.get(frame.hash)
            if known is None:
                raise UnknownStructure("the structure of this hash is not held here (any more): send it whole")
            return known
        try:
            structure = (_from_json if human else _from_msgpack).decode(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedFrame(f"the structure cannot be read: {error}") from None
        if len(structure.ops) > self.limits.max_ops_per_frame:
            raise LimitExceeded(
                f"the frame has {len(structure.ops):,} ops, {self.limits.max_ops_per_frame:,} are allowed "
                "(GRADWIRE_MAX_OPS_PER_FRAME)",
                setting="GRADWIRE_MAX_OPS_PER_FRAME", limit=self.limits.max_ops_per_frame, value=len(structure.ops),
            )  # fmt: skip
        announced = [record[2] for record in structure.ops if len(record) > 2]
        if any(type(n) is not int for n in announced):
            raise MalformedFrame("a record announces a number of results that is not an int")
        if announced and (min(announced) < 0 or sum(announced) > self.limits.max_tensors):
            # Before a record fails and its results are filled in: their number is the client's word.
            raise MalformedFrame(f"the records announce from {min(announced)} to {max(announced)} results each")
        if frame.hash and structure_hash(encoded) != frame.hash:
            raise MalformedFrame("the hash does not belong to the structure")
        return Known(structure, last_uses(structure), encoded, human)

    def _remember(self, digest: bytes, known: Known) -> None:
        if digest:
            self.structures[digest] = known
            self.structures.move_to_end(digest)
            held = sum(len(each.encoded) for each in self.structures.values())
            while len(self.structures) > STRUCTURES_KEPT or (held > STRUCTURE_BYTES_KEPT and len(self.structures) > 1):
                held -= len(self.structures.popitem(last=False)[1].encoded)

    def tensor(self, tensor_id: int) -> Tensor:
        """The tensor of this id.

        Raises:
            UnknownTensor: when there is none.
        """
        found = self.ids.get(tensor_id)
        if isinstance(found, Tensor):
            return _sound(found)
        if isinstance(found, Poison):
            raise _Poisoned(found.problem)
        raise UnknownTensor(
            f"there is no tensor {tensor_id}: it was never made, or was released"
            if tensor_id not in self.ids
            else f"tensor {tensor_id} is undefined: a gradient that is not there"
        )

    # Looking in

    def describe(self) -> dict[str, Any]:
        """Counts and sizes of what the session holds."""
        return self.glance() | {"memory": self.memory()}

    def glance(self) -> dict[str, Any]:
        """:meth:`describe` without what has to be searched for. The one thing that another thread may ask at any time:
        it reads counters only.
        """
        account = self.engine.account
        return {
            "device": self.device,
            "default_dtype": self.engine.default_dtype.name,
            "tensors": len(self.ids),
            "memory": {
                "live_bytes": account.live, "peak_bytes": account.peak, "limit_bytes": self.limits.max_session_bytes
            },
            "graph_nodes": account.nodes,
            "frames_applied": self.frames_applied,
            "ops_run": self.ops_run,
            "clients": len(self.clients) - 2,
        }  # fmt: skip

    def memory(self) -> dict[str, int]:
        """What the session's tensors occupy, in bytes.

        ``saved_bytes`` are those of ``live_bytes`` that the graph keeps for backward, each piece of memory once;
        ``pooled_bytes`` what its devices' pools hold in reserve; an engine without a pool of its own tells the
        process's.
        """
        account = self.engine.account
        tensors = [held for held in self.ids.values() if isinstance(held, Tensor)]
        return {
            "live_bytes": account.live,
            "saved_bytes": saved_bytes([*tensors, *self.engine.names.values()]),
            "pooled_bytes": sum(backend.pooled_bytes() for backend in self.engine.backends.opened()),
            "peak_bytes": account.peak,
            "limit_bytes": self.limits.max_session_bytes,
        }

    def reset_peak_memory(self) -> None:
        """Let ``peak_bytes`` be ``live_bytes``."""
        self.engine.account.reset_peak()

    def tensors(self, peek: bool = False) -> list[dict[str, Any]]:
        """One row per live tensor id.

        ``peek`` is for other threads while an op runs: the ``grad_fn`` of a view whose base was written to since is
        the one it had before.
        """
        names = {id(t): n for n, t in self.engine.names.items()}
        rows = []
        for tensor_id, held in list(self.ids.items()):
            if isinstance(held, Tensor):
                node = held._grad_fn if peek else looked_at(held)
                rows.append({
                    "id": tensor_id, "shape": list(held.shape), "dtype": held.dtype.name, "device": held.device,
                    "requires_grad": held.requires_grad, "is_leaf": node is None,
                    "grad_fn": node.name if node is not None else None, "has_grad": held.grad is not None,
                    "name": names.get(id(held)),
                })  # fmt: skip
        return rows

    def graph(self, refs: list[int] | None = None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the live autograd graph behind these tensors (all, when none are named).

        Raises:
            UnknownTensor: for an id that is not there.
            LimitExceeded: for a graph of more nodes than ``most``.
        """
        everything = {i: t for i, t in self.ids.items() if isinstance(t, Tensor)}
        try:
            chosen = {i: self.tensor(i) for i in refs} if refs else everything
        except _Poisoned as poisoned:
            cause = poisoned.problem
            raise from_code(cause.code, cause.detail, **(cause.extra | {"op": cause.op})) from None
        return describe_graph(chosen, everything, most)

    def close(self) -> None:
        """Release everything."""
        self.ids.clear()
        self.engine.names.clear()
        self.uploads.clear()
        for backend in self.engine.backends.opened():
            backend.trim()


class _Run:
    """One frame being applied."""

    def __init__(
        self,
        session: Session,
        client: Client,
        frame: Frame,
        seq: int,
        known: Known,
        buffers: Buffers,
        human: bool,
        failures: Mapping[int, Problem] | None,
    ) -> None:
        self.session = session
        self.client = client
        self.frame = frame
        self.seq = seq
        self.structure = known.structure
        self.frees = known.frees
        self.failures = failures
        self.buffers = buffers
        self.human = human
        self.made: list[Tensor | Poison | None] = []
        self.errors: list[Problem] = []
        self.error_at: dict[int, int] = {}
        self.first = frame.first or (client.number << ID_BITS | (client.counter + 1))
        self.index = 0
        self.scalars, self.payloads = iter(frame.scalars), iter(frame.payloads)
        self.counted = (0, 0, 0)
        self.halted: Problem | None = None  # the frame's time is over: no further record is run
        self.timing = Timing() if frame.timed else None
        self._check_first()

    def execute(self) -> tuple[Reply, Buffers]:
        session, engine = self.session, self.session.engine
        deadline.begin(session.limits.max_frame_seconds if self.failures is None else 0)
        take, timing, engine.timeline = self._step, self.timing, None
        if timing is not None:
            timing.started = time.perf_counter_ns()
            if self.frame.detailed:
                take, engine.timeline = self._timed_step, []
        if self.failures:
            take = self._failed_step
        engine.grad_enabled, engine.inference, engine.anomaly = True, False, False
        engine.region = None
        scalars, payloads = self.scalars, self.payloads
        begin = position_of(self.client.number, self.seq, 0)
        for index, record in enumerate(self.structure.ops):
            self.index = index
            engine.position = begin + index
            take(record, scalars, payloads)
            for slot in self.frees[index]:
                self.made[slot] = _GONE
        if engine.region is not None:
            engine.region.settle()
        session.ops_run += len(self.structure.ops)
        session.failed = tuple(self.errors)  # what is appended by reads may be of other frames
        values, out = self._read()
        self._settle()
        if self.structure.reads or self.human:
            self.client.failures_seen()
        if timing is not None:
            timing.nodes = [(step[0] - begin, *step[1:]) for step in engine.timeline or ()]
            engine.timeline = None
            timing.finished = time.perf_counter_ns()
        return Reply(
            seq=self.seq,
            values=values,
            errors=self.errors,
            made=len(self.made),
            first=self.first if self.made else 0,
            timing=timing,
        ), out

    def _check_first(self) -> None:
        if not 0 < self.first <= MAX_ID - len(self.structure.ops) or (
            self.frame.first and self.first >> ID_BITS != self.client.number
        ):
            raise MalformedFrame(
                f"first={self.frame.first} is not an id of client {self.client.number}: its ids are "
                f"{self.client.number} << {ID_BITS} plus a counter"
            )

    def replay(self) -> tuple[Reply, Buffers]:
        """Execute, with the failures that are known, and no others of their kinds."""
        account = self.session.engine.account
        limits, account.limits = account.limits, UNLIMITED
        try:
            return self.execute()
        finally:
            account.limits = limits

    def _failed_step(self, record: Any, scalars: Iterator[Any], payloads: Iterator[Payload]) -> None:
        """A record of a frame that is replayed: one that failed then fails again, with all that follows from it."""
        assert self.failures is not None
        problem = self.failures.get(self.index)
        op = TABLE.get(record[0]) if type(record[0]) is str else None
        if problem is None or op is None or op.internal or type(record[1]) is not list:
            self._step(record, scalars, payloads)
            return
        count = op.results if op.results is not None else (*record, None)[2]
        values: list[Any] = []
        if len(self.session.ids) + len(self.made) < self.session.limits.max_tensors:
            try:
                values = decode_args(op, record[1], self._resolve, scalars, payloads)
            except _Poisoned as poisoned:
                self._fail(op, values, count, poisoned.problem)
                return
            except GradwireError:
                values = []
        if id(problem) not in self.error_at:
            self.error_at[id(problem)] = len(self.errors)
            self.errors.append(problem)
        if problem.extra.get("setting") == "GRADWIRE_MAX_FRAME_SECONDS":
            self.halted = problem
        self._fail(op, values, count, problem)

    def _timed_step(self, record: Any, scalars: Iterator[Any], payloads: Iterator[Payload]) -> None:
        account, timing = self.session.engine.account, self.timing
        assert timing is not None
        before, started = account.live, time.perf_counter_ns()
        self._step(record, scalars, payloads)
        timing.ops += (started, time.perf_counter_ns())
        timing.memory.append(account.live - before)

    def _step(self, record: Any, scalars: Iterator[Any], payloads: Iterator[Payload]) -> None:
        session = self.session
        op: Op | None = None
        values: list[Any] = []
        drawn = session.engine.generator.offset
        name, args, count = (*record, None)[:3]
        if type(name) is not str or type(args) is not list or type(count) not in (int, type(None)):
            malformed = MalformedFrame(f"record {self.index} is not [name, arguments, results?]: {record!r:.80}")
            self._fail(None, [], None, self._note(malformed, ""))
            return
        try:
            op = lookup(name)
            if op.internal:
                raise UnknownOp(f"{name!r} is a primitive of derivatives, not an op that a frame may name", op=name)
            if op.results is not None:
                count = op.results
            if len(session.ids) + len(self.made) >= session.limits.max_tensors:
                raise LimitExceeded(
                    f"the session holds {len(session.ids) + len(self.made):,} tensors "
                    "(GRADWIRE_MAX_TENSORS): release some",
                    setting="GRADWIRE_MAX_TENSORS", limit=session.limits.max_tensors, value=len(session.ids),
                )  # fmt: skip
            values = decode_args(op, args, self._resolve, scalars, payloads)
            entry = row(op.name)
            if entry.payload_at is not None:
                values[entry.payload_at] = self._payload(op, values, entry.payload_at)
            if self.halted is not None:
                raise _Poisoned(self.halted)
            deadline.check(name)
            if op.control and self.client.failed_backward is not None and op.name.endswith(("_step", "grad_of")):
                raise _Poisoned(self.client.failed_backward)
            self._take(session.engine.run(entry, values), count)
        except _Poisoned as poisoned:
            self._fail(op, values, count, poisoned.problem)
        except GradwireError as error:
            if isinstance(error, OutOfMemory | LimitExceeded):  # TimeExceeded is one
                self._undo(error, drawn)
            problem = self._note(error, name)
            for tensor in error.half_done:
                self._poison(tensor, problem)
            if error.details.get("setting") == "GRADWIRE_MAX_FRAME_SECONDS":
                self.halted = problem
            self._fail(op, values, count, problem)
        except MemoryError as error:
            found = session.engine.out_of_memory(name, error)
            self._undo(found, drawn)
            self._fail(op, values, count, self._note(found, name))
        except RecursionError:
            self._fail(op, values, count, self._note(MalformedFrame("the arguments are nested too deeply"), name))
        except Exception as error:
            log.exception("op %s failed in the engine", name)
            internal = InternalError(f"{name} failed inside the engine: {type(error).__name__}: {error}")
            self._fail(op, values, count, self._note(internal, name))

    def _undo(self, error: GradwireError, drawn: int) -> None:
        """Let a record that failed for want of time or memory have drawn no random numbers: where it is replayed, it
        is not run at all."""
        generator = self.session.engine.generator
        if generator.offset != drawn:
            generator.set_state((generator.seed, drawn))

    def _take(self, result: Any, count: int | None) -> None:
        if count == 0:
            return
        results = result if type(result) is tuple else (result,)
        if count is not None and len(results) != count:
            raise MalformedFrame(f"the record announces {count} results, the op has {len(results)}")
        self.made.extend(results)

    def _fail(self, op: Op | None, values: list[Any], count: int | None, problem: Problem) -> None:
        self.made.extend(Poison(problem) for _ in range(1 if count is None else count))
        self._pass_over()
        if op is None:
            return
        if op.mutates is not None and values and isinstance(values[0], Tensor):
            self._poison(values[0], problem)
        elif op.control and op.name.endswith("_step"):
            # Some of its parameters may be changed and others not.
            for param, value in zip(op.params, values, strict=False):
                if param.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS):
                    for tensor in value or ():
                        if isinstance(tensor, Tensor):
                            self._poison(tensor, problem)
        if op.name in _BACKWARDS and self.client.failed_backward is None:
            self.client.failed_backward = problem

    def _pass_over(self) -> None:
        """Take the numbers and payloads that the failed record did not come to: they are none of the next record's."""
        counted, numbers, payloads = self.counted
        for record in self.structure.ops[counted : self.index + 1]:
            more = mentioned(record[0], record[1])
            numbers, payloads = numbers + more[0], payloads + more[1]
        self.counted = self.index + 1, numbers, payloads
        for _ in range(length_hint(self.scalars) - len(self.frame.scalars) + numbers):
            next(self.scalars, None)
        for _ in range(length_hint(self.payloads) - len(self.frame.payloads) + payloads):
            next(self.payloads, None)

    def _poison(self, tensor: Tensor, problem: Problem) -> None:
        tensor.storage.poison = problem
        self.client.failed_writes.append(tensor.storage)

    def _note(self, error: GradwireError, name: str) -> Problem:
        problem = problem_of(error, op=name, seq=self.seq, index=self.index)
        self.error_at[id(problem)] = len(self.errors)
        self.errors.append(problem)
        return problem

    def _resolve(self, ref: int) -> Tensor:
        if ref < 0:
            at = -1 - ref
            if at >= len(self.frame.external):
                raise MalformedFrame(f"reference {ref} is outside the table of {len(self.frame.external)} external ids")
            return self.session.tensor(self.frame.external[at])
        if ref >= len(self.made):
            raise MalformedFrame(f"reference {ref} is to a result that is not made yet ({len(self.made)} are)")
        found = self.made[ref]
        if isinstance(found, Poison):
            raise _Poisoned(found.problem)
        if found is None:
            raise UnknownTensor(f"result {ref} of this frame is undefined: a gradient that is not there")
        return _sound(found)

    def _payload(self, op: Op, values: list[Any], at: int) -> np.ndarray[Any, Any]:
        payload: Payload = values[at]
        dtype, shape = values[op.positions["dtype"]], values[op.positions["size"]]
        if any(n < 0 for n in shape):
            raise ShapeError(f"size {list(shape)} has a negative extent")
        nbytes = math.prod(shape) * dtype.itemsize
        self.session.engine.account.check(nbytes, f"an upload of shape {list(shape)}")
        if payload.buffer is not None:
            if not 0 <= payload.buffer < len(self.buffers):
                raise MalformedFrame(f"the frame has {len(self.buffers)} buffers, not a buffer {payload.buffer}")
            data: Any = self.buffers[payload.buffer]
        elif payload.upload is not None:
            data, filled = self.session.uploads.pop((self.client.number, payload.upload), (b"", 0))
            if filled != len(data):
                raise MalformedFrame(f"upload {payload.upload} has {filled} of {len(data)} bytes")
        else:
            return from_json(payload.values, dtype, shape)
        if len(data) != nbytes:
            raise ShapeError(f"{dtype.name} of shape {list(shape)} takes {nbytes} bytes, {len(data)} arrived")
        array = np.frombuffer(data, native(dtype)).reshape(shape)
        # An upload's memory is its own; a buffer is a slice of the message, which must not be kept alive or written to.
        return array if payload.upload is not None else array.copy()

    def _read(self) -> tuple[list[Value], Buffers]:
        values: list[Value] = []
        out: Buffers = []
        total = 0
        for ref in self.structure.reads:
            try:
                tensor = self._resolve(ref)
                total += tensor.numel * JSON_NUMBER_BYTES if self.human else tensor.meta.nbytes
                if total > self.session.limits.max_read_bytes:
                    raise LimitExceeded(
                        f"the reads of this frame pass {self.session.limits.max_read_bytes:,} bytes "
                        "(GRADWIRE_MAX_READ_BYTES)",
                        setting="GRADWIRE_MAX_READ_BYTES", limit=self.session.limits.max_read_bytes, value=total,
                    )  # fmt: skip
                values.append(self._value(tensor, out))
            except _Poisoned as poisoned:
                values.append(self._broken(poisoned.problem))
            except MemoryError as error:
                found = self.session.engine.out_of_memory("a read", error)
                values.append(self._broken(problem_of(found, op="read", seq=self.seq, index=len(self.structure.ops))))
            except GradwireError as error:
                if ref >= 0 and ref < len(self.made) and self.made[ref] is None:
                    values.append(Value())
                else:
                    values.append(
                        self._broken(problem_of(error, op="read", seq=self.seq, index=len(self.structure.ops)))
                    )
        return values, out

    def _broken(self, problem: Problem) -> Value:
        # By identity: a frame may have as many errors as ops, and each may be read.
        at = self.error_at.get(id(problem))
        if at is None:
            at = self.error_at[id(problem)] = len(self.errors)
            self.errors.append(problem)
        return Value(error=at)

    def _value(self, tensor: Tensor, out: Buffers) -> Value:
        host = self.session.engine.to_numpy(tensor)
        value = Value(dtype=tensor.dtype.name, shape=list(tensor.shape))
        if self.human:
            value.values = to_json(host, tensor.dtype)
            return value
        # A copy: the tensor may change while the reply waits to be sent or resent.
        data = np.array(host, order="C", copy=True)
        value.buffer = len(out)
        out.append(memoryview(data.reshape(-1).view(np.uint8)))  # type: ignore[arg-type]
        return value

    def _settle(self) -> None:
        """Give the results their ids, and let go of what the client has dropped."""
        ids = self.session.ids
        dropped = set(self.structure.drops)
        for i, held in enumerate(self.made):
            if i not in dropped:
                ids[self.first + i] = held
        for tensor_id in self.frame.releases:
            ids.pop(tensor_id, None)
        for payload in self.frame.payloads:  # those that no record came to take
            if payload.upload is not None:
                self.session.uploads.pop((self.client.number, payload.upload), None)
        self.client.counter = max(self.client.counter, (self.first & ((1 << ID_BITS) - 1)) + len(self.made) - 1)


def problem_of(error: GradwireError, op: str = "", seq: int = 0, index: int = 0) -> Problem:
    """An error as it travels."""
    return Problem(
        code=error.code,
        detail=error.message,
        op=op,
        seq=seq,
        index=index,
        retryable=error.retryable,
        # Shapes are unbounded, and what is said of them must travel: no encoding has larger ints.
        extra={k: v if type(v) is not int or abs(v) < 1 << 63 else str(v) for k, v in error.details.items()},
    )
