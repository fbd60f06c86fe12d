"""The session: applies frames and owns the tensor ids, each client's frame order and the kept replies."""

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

from ..autograd.engine import Engine
from ..autograd.failures import Poison, Poisoned, problem_of
from ..autograd.inplace import looked_at
from ..autograd.tensor import Tensor
from ..runtime import deadline
from ..runtime.backends import Backends
from ..runtime.deadline import Clock
from ..runtime.memory import Limits
from . import names
from .clients import Client
from .frame_executor import FrameExecution
from .graph import describe_graph, saved_bytes
from .plan_cache import Plans
from .repeating import Repetition
from .structures import Known, Structures
from .uploads import Uploads

CLIENTS_KEPT: Final = 4096
LARGE_FRAME_BYTES: Final = 1 << 20
"""The memory of smaller frames themselves does not count towards the session's limit."""
ENTRY_BYTES: Final = 48
"""The memory of an id or a number in a table."""

Buffers = list[memoryview]


class Session:
    """Tensors and graphs shared by several clients. Not thread-safe: one frame at a time.

    Raises:
        DeviceError: when the default device does not exist.
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
        from .. import ops  # noqa: F401  (imported here, because the server's main process may not need it)
        from ..kernels import cuda  # noqa: F401  (loads its kernels with the first GPU)

        self.engine = Engine(self.limits, backends, seed or 0, dtypes.BY_NAME[default_dtype])
        self.device = device
        _ = self.engine.backends[device]
        self.ids: dict[int, Tensor | Poison | None] = {}
        self.clients: dict[int, Client] = {0: Client(0), 1: Client(1)}
        self.uploads = Uploads()
        self.structures = Structures()
        self.plans = Plans() if self.limits.plans else None
        self.frames_applied = 0
        self.ops_run = 0
        self.failed: tuple[Problem, ...] = ()
        """The errors of the last frame's own records. A replay needs them."""
        self.dropped: list[int] = []
        """The uploads that the last frame dropped because it was repeated. A replay needs them."""
        self.ran: Structure | None = None
        """The structure of the last frame, unless it was refused or repeated, for the metrics."""

    # Clients

    def new_client(self) -> int:
        """Register a client and return its number. 0 is for REST users without a client, 1 for the server."""
        if len(self.clients) >= CLIENTS_KEPT:
            raise TooManyRequests(
                f"the session has had {CLIENTS_KEPT} clients, the maximum; create a new session", limit=CLIENTS_KEPT
            )
        number = max(self.clients) + 1
        self.clients[number] = Client(number)
        return number

    def join(self, number: int, instance: str = "", epoch: int = 0) -> tuple[int, int, int]:
        """Register a new client (0) or resume one. Returns its number, the number of its next frame and its new epoch.

        Another program takes a client over with epoch 0; the session then refuses the previous program.

        Raises:
            MalformedFrame: when the session has no such client.
            Superseded: when another program has taken the client over.
        """
        client = self._client(number or self.new_client())
        if client.epoch and epoch and instance != client.instance:
            raise Superseded(
                f"client {number} was resumed by another program; epoch {epoch} is outdated", epoch=client.epoch
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
        """Add a chunk of an upload. Chunks may be repeated, but must not leave gaps.

        Raises:
            LimitExceeded: when the upload exceeds the limit of a tensor; nothing is allocated then.
            OutOfMemory: when memory is exhausted.
            MalformedFrame: when the chunk does not fit.
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
        """Drop unused uploads; returns those that existed."""
        return [each for each in transfers if self.uploads.forget((client, each))]

    # Frames

    def run_compiled(self, compiled: bool) -> None:
        """Use compiled kernels, which must be loaded, or only NumPy for the next frames.

        Rounding differs, so a replay must switch at the same frame.
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
        """Apply a frame at most once and return its reply. Errors of the client are in the reply, never raised.

        A refused frame changes nothing.

        Args:
            human: whether the structure is JSON and values are nested lists.
            failures: for a replay, possibly empty: the records at these indexes fail with these problems without
                running, as they did for lack of memory or time. Limits of memory and time do not apply then.
            clock: lets another thread cancel the frame.
        """
        self.ran, self.failed, self.dropped = None, (), []
        try:
            client = self._client(frame.client)
            if frame.epoch and frame.epoch != client.epoch:
                raise Superseded(
                    f"client {client.number} was resumed by another program; the frame has epoch {frame.epoch}, the "
                    f"current one is {client.epoch}",
                    epoch=client.epoch,
                )
            seq = frame.seq or client.expected
            if seq < client.expected:
                return self._again(client, seq, frame)
            if seq > client.expected:
                raise FrameOutOfOrder(f"got frame {seq} instead of frame {client.expected}", expected=client.expected)
            try:
                known = self.structures.find(frame, human, self.limits)
            except MemoryError as error:
                raise self.engine.out_of_memory("the structure of the frame", error) from None
            if frame.named or known.structure.keeps:
                names.check(self.engine.names, frame, known.structure, self.limits.max_tensors)
            if failures is None:
                self._check_values(frame, known)
            kind = Repetition if frame.repeat > 1 or frame.stacked else FrameExecution
            run = kind(self, client, frame, seq, known, buffers or [], human, failures, clock or Clock())
            # The session is unchanged up to here. From here on, the frame cannot be refused.
            self.structures.remember(frame.hash, known)
            client.acknowledge(frame.ack)
            try:
                reply, out = run.execute() if failures is None else run.replay()
            finally:
                deadline.end()
        except GradwireError as error:
            op, index = error.details.get("op", ""), error.details.get("index", 0)
            return Reply(seq=frame.seq, refused=problem_of(error, op, frame.seq, index)), []
        client.expected = seq + 1
        if frame.seq:  # a frame without a number cannot be repeated
            client.keep(reply, out)
        self.frames_applied += 1
        self.ran = known.structure
        return reply, out

    def _check_values(self, frame: Frame, known: Known) -> None:
        """Check the memory of a large frame's records, ids and numbers against the session's limit."""
        nbytes = known.nbytes + ENTRY_BYTES * (
            len(frame.external) + len(frame.named) + len(frame.scalars) + len(frame.releases)
        )
        most = self.limits.max_session_bytes
        if nbytes > LARGE_FRAME_BYTES and self.engine.account.live + nbytes > most:
            raise LimitExceeded(
                f"the records, ids and numbers of the frame need {nbytes:,} bytes, but the session holds "
                f"{self.engine.account.live:,} of {most:,} (GRADWIRE_MAX_SESSION_BYTES); send less at once",
                setting="GRADWIRE_MAX_SESSION_BYTES", limit=most, value=self.engine.account.live + nbytes,
            )  # fmt: skip

    def _again(self, client: Client, seq: int, frame: Frame) -> tuple[Reply, Buffers]:
        # These uploads were repeated with the frame, and no record will use them.
        self.dropped = self.drop_uploads(client.number, [p.upload for p in frame.payloads if p.upload is not None])
        kept = client.replies.get(seq)
        if kept is None:
            raise ReplyForgotten(
                f"frame {seq} was already applied, and its reply is no longer kept", expected=client.expected
            )
        return kept

    def tensor(self, tensor_id: int) -> Tensor:
        """The tensor with this id.

        Raises:
            UnknownTensor: when it does not exist.
        """
        found = self.ids.get(tensor_id)
        if isinstance(found, Tensor):
            if found.storage.poison is not None:
                raise Poisoned(found.storage.poison)
            return found
        if isinstance(found, Poison):
            raise Poisoned(found.problem)
        raise UnknownTensor(
            f"tensor {tensor_id} does not exist: it was never created, or was released"
            if tensor_id not in self.ids
            else f"tensor {tensor_id} is undefined: it is a missing gradient"
        )

    # Inspection

    def describe(self) -> dict[str, Any]:
        """Counts and sizes of the session's contents."""
        return self.glance() | {"memory": self.memory()}

    def glance(self) -> dict[str, Any]:
        """The part of :meth:`describe` that reads only counters. Any thread may call this at any time."""
        account = self.engine.account
        return {
            "device": self.device,
            "default_dtype": self.engine.default_dtype.name,
            "tensors": len(self.ids),
            "names": len(self.engine.names),
            "memory": {
                "live_bytes": account.live, "peak_bytes": account.peak, "limit_bytes": self.limits.max_session_bytes
            },
            "graph_nodes": account.nodes,
            "frames_applied": self.frames_applied,
            "ops_run": self.ops_run,
            "clients": len(self.clients) - 2,
        }  # fmt: skip

    def memory(self) -> dict[str, int]:
        """The memory of the session in bytes.

        ``saved_bytes`` is the part of ``live_bytes`` that the graph saves for backward; shared memory counts once.
        ``pooled_bytes`` is the unused memory of the devices' pools, or of the process's pools if the engine has none.
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
        """How many frames ran by a plan or were captured, and why frames ran on the tape. Thread-safe."""
        return {"on": False} if self.plans is None else {"on": True} | self.plans.describe()

    @property
    def planned(self) -> bool:
        """Whether a plan ran the last frame."""
        return self.plans is not None and self.plans.planned

    def reset_peak_memory(self) -> None:
        """Set ``peak_bytes`` to ``live_bytes``."""
        self.engine.account.reset_peak()

    def tensors(
        self, after: int = 0, most: int | None = None, among: list[int] | None = None, peek: bool = False
    ) -> list[dict[str, Any]]:
        """At most ``most`` rows of live tensors with ids above ``after``, in ascending order; ``among`` restricts the
        ids.

        ``peek`` is for other threads while an op runs: a view whose base was modified keeps its previous ``grad_fn``.
        """
        # Sorting and copying are atomic for other threads.
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
        return [{"id": number, **_facts(held, peek), "name": names.get(id(held))} for number, held in found.items()]

    def names(
        self, after: str = "", most: int | None = None, among: list[str] | None = None, peek: bool = False
    ) -> list[dict[str, Any]]:
        """At most ``most`` rows of named tensors with names above ``after``, in ascending order; ``among`` restricts
        the names, and ``peek`` is as in :meth:`tensors`."""
        held = self.engine.names
        order = sorted(held if among is None else set(among))
        chosen = order[bisect_right(order, after) :][:most]
        found = [(name, held.get(name)) for name in chosen]
        return [{"name": name, **_facts(tensor, peek)} for name, tensor in found if tensor is not None]

    def graph(self, refs: list[int] | None = None, most: int | None = None) -> dict[str, Any]:
        """Nodes and edges of the live autograd graph of these tensors, or of all.

        Raises:
            UnknownTensor: for an unknown id.
            LimitExceeded: when the graph has more than ``most`` nodes.
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


def _facts(held: Tensor, peek: bool) -> dict[str, Any]:
    """What a row of a list tells of a tensor, without its values."""
    node = held.history_name if peek else getattr(looked_at(held), "name", None)
    return {
        "shape": list(held.shape), "dtype": held.dtype.name, "device": held.device,
        "requires_grad": held.requires_grad, "is_leaf": node is None, "grad_fn": node,
        "has_grad": held.grad is not None,
    }  # fmt: skip
