"""NCCL through CuPy: one rank's communicator with the GPUs of its peers.

All calls of a communicator are made in a thread of its own. A call may wait for a peer (the first between two GPUs
connects them) and a kernel waits for its other side, so whoever needs the result asks that thread again and again, and
looks meanwhile whether the peers are still there (:meth:`.Lane.wait`). If they are not, :meth:`Link.abort`
ends calls and kernels.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from .arrays import DeviceArray, Namespace
from .backends import CupyBackend, cuda_device_count, expect_any_float
from .lane import Lane

OLDEST: Final = 20900
"""NCCL 2.9: it sends from one rank to another, and numbers its versions as all do since."""

ABORT_PATIENCE_S: Final = 1.0
"""How long an abort waits for a call that is being made, which usually takes microseconds."""

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@cache
def version() -> int:
    """NCCL's version if this process has GPUs and can use it, else 0."""
    if not cuda_device_count():
        return 0
    import cupy

    return version_of(cupy)


def version_of(cupy: Namespace) -> int:
    """The version of the NCCL that CuPy has loaded; 0 without one that is recent enough."""
    nccl = _nccl(cupy)
    if nccl is None:
        return 0
    found = int(nccl.get_version())
    return found if found >= OLDEST else 0


def _nccl(cupy: Namespace) -> Any:
    """``cupy.cuda.nccl``, a module that CuPy does not import by itself; ``None`` without NCCL's library."""
    nccl = getattr(cupy.cuda, "nccl", None)
    if nccl is None:
        try:
            nccl = import_module(f"{cupy.cuda.__name__}.nccl")
        except ImportError:
            return None
    return nccl if getattr(nccl, "available", False) else None


@cache
def _machine() -> str:
    """What containers of one machine have in common."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return socket.gethostname()


def identity(backend: CupyBackend) -> str:
    """Names a GPU among those of all machines. NCCL takes each only once, parts of one GPU included."""
    return f"{_machine()}/{backend.xp.cuda.runtime.deviceGetPCIBusId(backend.index)}"


def unique_id(cupy: Namespace) -> bytes:
    """What the ranks of a new communicator find each other by.

    Raises:
        Exception: CuPy's own, when NCCL cannot listen.
    """
    found: bytes = _nccl(cupy).get_unique_id()
    return found


class Ring:
    """What work on the GPU has of the other ranks: copies between arrays, in the order of one stream.

    Attributes:
        xp: CuPy.
    """

    def __init__(self, link: Link, stream: Any) -> None:
        self.rank, self.world_size = link.rank, link.world_size
        self.xp: Namespace = link.backend.xp
        self._link, self._stream = link, stream
        self._nccl = _nccl(self.xp)

    def exchange(self, sends: Sequence[tuple[int, DeviceArray]], receives: Sequence[tuple[int, DeviceArray]]) -> None:
        """Send arrays to ranks and receive others, all at the same time. Arrays lie without gaps; each that is sent
        is received with its size."""
        nccl, kind, stream = self._nccl, self._nccl.NCCL_UINT8, self._stream.ptr

        def call(comm: Any) -> None:
            nccl.groupStart()
            try:
                for peer, array in sends:
                    if array.nbytes:
                        comm.send(array.data.ptr, array.nbytes, kind, peer, stream)
                for peer, array in receives:
                    if array.nbytes:
                        comm.recv(array.data.ptr, array.nbytes, kind, peer, stream)
            finally:
                nccl.groupEnd()

        self._link.call(call)

    def broadcast(self, array: DeviceArray, src: int) -> None:
        """Copy the array of a rank over those of all."""
        kind, at = self._nccl.NCCL_UINT8, array.data.ptr
        if array.nbytes:
            self._link.call(lambda comm: comm.broadcast(at, at, array.nbytes, kind, src, self._stream.ptr))


class _Job:
    """Work of a link. ``ended``: it is done, or :attr:`error` tells why not."""

    def __init__(self, work: Callable[[Ring], None] | None, after: Any) -> None:
        self.work, self.after = work, after
        self.ended = threading.Event()
        self.error: BaseException | None = None


class Link:
    """A communicator of one rank on one GPU.

    Args:
        name: the same on all ranks, and no other communicator's.
        device: the GPU's :func:`identity`.
        unique: the first rank's :func:`unique_id`.
    """

    def __init__(self, name: str, device: str, backend: CupyBackend, rank: int, world_size: int, unique: bytes) -> None:
        self.name, self.device, self.backend = name, device, backend
        self.rank, self.world_size = rank, world_size
        self._unique = unique
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._calling = threading.Lock()
        self._comm: Any = None
        self._aborted = self._closed = False
        self._opening = _Job(None, None)
        threading.Thread(target=self._serve, name=f"rank-{rank}-nccl", daemon=True).start()

    # Any thread

    def opened(self, seconds: float) -> str | None:
        """Why there is no communicator, or empty if there is one; ``None`` if that is open after so many seconds."""
        if not self._opening.ended.wait(seconds):
            return None
        error = self._opening.error
        return "" if error is None else (str(error) or type(error).__name__)

    def run(self, lane: Lane, work: Callable[[Ring], None], after: Any = None) -> None:
        """Have work done, and wait for it. All ranks do the same.

        Args:
            after: the event that it begins after; by default, all that this thread has issued.

        Raises:
            CollectiveError: when it fails, here or because of a peer. The link is aborted then.
        """
        job = _Job(work, self.backend.mark() if after is None else after)
        self._jobs.put(job)
        try:
            lane.wait(lambda seconds: True if job.ended.wait(seconds) else self._look(lane))
            if job.error is not None:
                raise self._failed(lane, job.error)
        except BaseException:
            self.abort()
            raise

    def _look(self, lane: Lane) -> None:
        """Raise what NCCL has noticed by itself."""
        if self._aborted:
            raise self._failed(lane, RuntimeError("the communicator was aborted"))
        if not self._calling.acquire(blocking=False):
            return  # a call is being made, which tells by itself
        try:
            if self._comm is not None:
                self._comm.check_async_error()
        except Exception as error:
            raise self._failed(lane, error) from None
        finally:
            self._calling.release()

    def _failed(self, lane: Lane, error: BaseException) -> Exception:
        return lane.error(lane.rank, f"NCCL failed on {lane.named(lane.rank)}: {error or type(error).__name__}")

    def close(self) -> None:
        """Release the communicator, once no peer needs what was sent."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)

    def abort(self) -> None:
        """End what runs, at once; returns without waiting for it."""
        if not self._aborted:
            self._aborted = True
            self.close()
            threading.Thread(target=self._abort, name=f"rank-{self.rank}-nccl-abort", daemon=True).start()

    def _abort(self) -> None:
        # A call that waits for a lost peer is ended by this; one that is about to return does not lose its memory.
        held = self._calling.acquire(timeout=ABORT_PATIENCE_S)
        try:
            comm, self._comm = self._comm, None
            if comm is not None:
                with suppress(Exception):
                    comm.abort()
        finally:
            if held:
                self._calling.release()

    # The communicator's thread

    def call(self, function: Callable[[Any], None]) -> None:
        """Make one call of NCCL.

        Raises:
            RuntimeError: when the communicator is gone.
            Exception: CuPy's own.
        """
        with self._calling:
            comm = self._comm
            if comm is None or self._aborted:
                raise RuntimeError("the communicator was aborted")
            function(comm)

    def _serve(self) -> None:
        expect_any_float()
        opening = self._opening
        try:
            with self.backend.beside() as stream:
                # Not under the lock: this waits until all ranks are here, and there is nothing to abort yet.
                comm = _nccl(self.backend.xp).NcclCommunicator(self.world_size, self._unique, self.rank)
                with self._calling:
                    self._comm = comm
                if self._aborted:
                    self._abort()
                opening.ended.set()
                ring = Ring(self, stream)
                while (job := self._jobs.get()) is not None:
                    self._do(job, ring, stream)
                    del job
                with self._calling:
                    comm, self._comm = (None, self._comm) if self._aborted else (self._comm, None)
                if comm is not None:
                    comm.destroy()
        except BaseException as error:  # whoever waits for the link raises it
            opening.error = opening.error or error
        finally:
            opening.ended.set()

    def _do(self, job: _Job, ring: Ring, stream: Any) -> None:
        """Do a job. It holds its arrays until nothing on the GPU uses them any more."""
        try:
            stream.wait_event(job.after)
            assert job.work is not None
            job.work(ring)
        except BaseException as error:
            job.error = error
        try:
            self.backend.finish(stream)
        except BaseException as error:
            job.error = job.error or error
        job.work = None
        job.ended.set()
