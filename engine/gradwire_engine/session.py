"""A session eats frames: it owns the tensor ids, the order of each client's frames, and the replies it keeps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.errors import (
    FrameOutOfOrder,
    GradwireError,
    LimitExceeded,
    MalformedFrame,
    OutOfMemory,
    ReplyForgotten,
    Superseded,
    TooManyRequests,
    UnknownTensor,
    from_code,
)
from gradwire_protocol.frames import Frame, Problem, Reply, Structure

from . import deadline
from .applying import Run
from .backends import Backends
from .clients import Client
from .deadline import Clock
from .engine import Engine
from .failures import Poison, Poisoned, problem_of, sound
from .graph import describe_graph, saved_bytes
from .inplace import looked_at
from .memory import Limits
from .plans import plans_of
from .repeating import Repetition
from .structures import Known, Structures
from .tensor import Tensor
from .uploads import Uploads

CLIENTS_KEPT: Final = 4096
LARGE_FRAME_BYTES: Final = 1 << 20
"""A frame whose records, ids and numbers take less is not counted among what the session holds."""
ENTRY_BYTES: Final = 48
"""An id or a number in a table."""

Buffers = list[memoryview]


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
        self.uploads = Uploads()
        self.structures = Structures()
        self.plans = plans_of(self.limits.plans)
        self.frames_applied = 0
        self.ops_run = 0
        self.failed: tuple[Problem, ...] = ()
        """What records of the last frame failed with, of themselves: what a replay has to be told."""
        self.dropped: list[int] = []
        """Uploads that the last frame let go of, being a repetition: a replay has to be told of these, too."""
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
            OutOfMemory: when there is no memory for it.
            MalformedFrame: for a piece that does not fit.
        """
        try:
            try:
                self.uploads.add(self.limits, client, transfer, offset, total, data)
            except MemoryError as error:
                raise self.engine.out_of_memory(f"an upload of {total:,} bytes", error) from None
        except (LimitExceeded, OutOfMemory) as error:
            self.uploads.refuse((client, transfer), error)
            raise

    def drop_uploads(self, client: int, transfers: Sequence[int]) -> list[int]:
        """Let go of uploads that nothing will take; those of them that were there."""
        return [each for each in transfers if self.uploads.forget((client, each))]

    # Frames

    def run_compiled(self, compiled: bool) -> None:
        """Let the next frames be computed by compiled kernels, which must be loaded by then, or by NumPy's alone.

        Rounding differs, so this is an event in the session's life: a replay has to be told of it at the same place.
        """
        self.engine.compiled = compiled

    def apply(
        self,
        frame: Frame,
        buffers: Buffers | None = None,
        human: bool = False,
        failures: Mapping[int, Problem] | None = None,
        clock: Clock | None = None,
    ) -> tuple[Reply, Buffers]:
        """Apply a frame once and answer it. What a client did wrong is in the reply, never raised.

        ``human`` takes the structure as JSON and gives values as nested lists. ``failures`` is given, be it empty, to a
        frame that was applied before and is replayed: the records at these indexes are not run but fail with that
        problem, as they did then for want of memory or time, and no limit of memory or time stops the others.
        A refused frame changes nothing. ``clock`` is what another thread cancels the frame by.
        """
        self.ran, self.failed, self.dropped = None, (), []
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
                known = self.structures.find(frame, human, self.limits)
            except MemoryError as error:
                raise self.engine.out_of_memory("the structure of the frame", error) from None
            if failures is None:
                self._check_values(frame, known)
            kind = Repetition if frame.repeat > 1 or frame.stacked else Run
            run = kind(self, client, frame, seq, known, buffers or [], human, failures, clock or Clock())
            # Nothing has changed until here, and nothing from here on refuses the frame.
            self.structures.remember(frame.hash, known)
            client.acknowledge(frame.ack)
            try:
                reply, out = run.execute() if failures is None else run.replay()
            finally:
                deadline.end()
        except GradwireError as error:
            return Reply(seq=frame.seq, refused=problem_of(error)), []
        client.expected = seq + 1
        if frame.seq:  # what has no number cannot be sent again
            client.keep(reply, out)
        self.frames_applied += 1
        self.ran = known.structure
        return reply, out

    def _check_values(self, frame: Frame, known: Known) -> None:
        """Count what a large frame itself takes among the memory of the session: records, ids and numbers."""
        nbytes = known.nbytes + ENTRY_BYTES * (len(frame.external) + len(frame.scalars) + len(frame.releases))
        most = self.limits.max_session_bytes
        if nbytes > LARGE_FRAME_BYTES and self.engine.account.live + nbytes > most:
            raise LimitExceeded(
                f"the records, ids and numbers of the frame take {nbytes:,} bytes, but the session holds "
                f"{self.engine.account.live:,} of {most:,} (GRADWIRE_MAX_SESSION_BYTES): send less at once",
                setting="GRADWIRE_MAX_SESSION_BYTES", limit=most, value=self.engine.account.live + nbytes,
            )  # fmt: skip

    def _again(self, client: Client, seq: int, frame: Frame) -> tuple[Reply, Buffers]:
        # They came again with the frame, and nothing will take them.
        self.dropped = self.drop_uploads(client.number, [p.upload for p in frame.payloads if p.upload is not None])
        kept = client.replies.get(seq)
        if kept is None:
            raise ReplyForgotten(
                f"frame {seq} was applied before, and its reply is no longer kept", expected=client.expected
            )
        return kept

    def tensor(self, tensor_id: int) -> Tensor:
        """The tensor of this id.

        Raises:
            UnknownTensor: when there is none.
        """
        found = self.ids.get(tensor_id)
        if isinstance(found, Tensor):
            return sound(found)
        if isinstance(found, Poison):
            raise Poisoned(found.problem)
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

    def plan_stats(self) -> dict[str, Any]:
        """How many frames ran by a plan, how many were captured for one, and why frames ran on the tape. Another thread
        may ask for it."""
        return {"on": False} if self.plans is None else {"on": True} | self.plans.describe()

    @property
    def planned(self) -> bool:
        """Whether a plan ran the last frame."""
        return self.plans is not None and self.plans.planned

    def reset_peak_memory(self) -> None:
        """Let ``peak_bytes`` be ``live_bytes``."""
        self.engine.account.reset_peak()

    def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None, peek: bool = False
    ) -> list[dict[str, Any]]:
        """One row per live tensor id, by rising id: of the ids above ``after`` and, where given, ``among`` these; no
        more than ``most`` rows.

        ``peek`` is for other threads while an op runs: the ``grad_fn`` of a view whose base was written to since is
        the one it had before.
        """
        # Sorting, and copying the names, are one step each for other threads.
        order = sorted(self.ids if among is None else set(among))
        found: dict[int, Tensor] = {}
        for tensor_id in islice(order, bisect_right(order, after), None):
            if most is not None and len(found) == most:
                break
            held = self.ids.get(tensor_id)
            if isinstance(held, Tensor):
                found[tensor_id] = held
        shown = {id(held) for held in found.values()}
        names = {id(held): name for name, held in list(self.engine.names.items()) if id(held) in shown}
        rows = []
        for tensor_id, held in found.items():
            node = held.history_name if peek else getattr(looked_at(held), "name", None)
            rows.append({
                "id": tensor_id, "shape": list(held.shape), "dtype": held.dtype.name, "device": held.device,
                "requires_grad": held.requires_grad, "is_leaf": node is None, "grad_fn": node,
                "has_grad": held.grad is not None, "name": names.get(id(held)),
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
        except Poisoned as poisoned:
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
