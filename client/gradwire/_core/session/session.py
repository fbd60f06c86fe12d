"""A session as the program sees it: it makes tensors, notices when the program is quiet, and ends."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gradwire_protocol import dtypes
from gradwire_protocol.awake import SPIN_S
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import ArgumentError, GradwireError, NotFound, Superseded, UnknownTensor
from gradwire_protocol.frames import ID_BITS, MAX_ID
from gradwire_protocol.meta import meta
from gradwire_protocol.ops.control import GRAD_MODE
from gradwire_protocol.table import TABLE

from ..context.biased_lock import BiasedLock
from ..context.call_sites import user_depth
from ..context.modes import MODES
from ..context.numpy_dtypes import NUMPY_DTYPES
from ..tensor.tensor import UNKNOWN_GRAD, Tensor
from ..wire.connection import HEARTBEAT_S
from ..wire.link import Link
from ..wire.rest import RestClient
from ..wire.retry import PATIENCE_S
from .session_info import SessionInfo
from .upload_cache import KEPT_BYTES, LEAST_BYTES, SHARE, UploadCache

if TYPE_CHECKING:
    from ..tensor.tensor import Tensor

QUIET_S: Final = 0.004
LOOKS_IN_VAIN: Final = 100
"""So often in a row nothing new was recorded when the one who looks goes to sleep."""
PAYLOAD_BYTES_PER_FRAME: Final = 8 << 20


DETACHED_KEPT: Final = 4096
"""Tensors that were detached in place and are remembered."""


class Session(SessionInfo):
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
        kept_uploads: bytes of uploads that may be kept on the server, and here, since they come again and again.
    """

    def __init__(
        self, url: str, session: str, api_key: str | None, *, patience: float = PATIENCE_S,
        heartbeat: float = HEARTBEAT_S, owned: bool = False, device: str = "cpu", client: int = 0,
        spin: float = SPIN_S, kept_uploads: float = KEPT_BYTES,
    ) -> None:  # fmt: skip
        rest = RestClient(url, api_key, patience=patience)
        link = Link(url, session, api_key, patience, heartbeat, client, spin)
        most = link.limits.get("max_session_bytes", KEPT_BYTES * SHARE) // SHARE
        super().__init__(session, link, bool(client), UploadCache(min(int(kept_uploads), most)), rest)
        self.url = url
        self.device = device
        self.matmul_precision = "highest"
        self.max_tensor_bytes = link.limits.get("max_tensor_bytes", MAX_ID)
        self.names: dict[str, int] = {}
        self.detached: dict[int, float] = {}  # ids of results that were detached in place, and since which node
        link.cancelling, link.recorded = self._cancel, lambda: bool(self._ops)
        self._owned = owned
        threading.Thread(target=self._watch, name="gradwire-quiet", daemon=True).start()

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
                return self.record(TABLE["clone"], [kept], 1)
        return self._upload(data, dtype, tuple(array.shape), device)

    def _keep(self, data: np.ndarray[Any, Any], dtype: DType, shape: tuple[int, ...], device: str) -> Tensor:
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
        probe._meta = meta(tuple(row["shape"]), dtypes.BY_NAME[row["dtype"]], row["device"])
        probe._requires = bool(row["requires_grad"])
        probe._grad_state = UNKNOWN_GRAD
        return probe

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
            self.begin()
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
        self.lock = BiasedLock()
        self.closed = True

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
