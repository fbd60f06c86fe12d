"""How the tensors of one collective travel: as flat arrays in host memory, or from GPU to GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from gradwire_protocol.dtypes import DType

from ..autograd.engine_context import EngineContext
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, Namespace, native
from ..runtime.backends import Backend, CupyBackend
from ..runtime.groups import Group
from ..runtime.lane import Lane
from . import device_rings, host_rings


class Exchange(NamedTuple):
    """The same exchange on both ways: ``host`` is called with a :class:`.Lane`, ``device`` with a :class:`.Ring`."""

    host: Callable[..., None]
    device: Callable[..., None]


ALL_REDUCED: Final = Exchange(host_rings.all_reduced, device_rings.all_reduced)
SCATTER_REDUCED: Final = Exchange(host_rings.scatter_reduced, device_rings.scatter_reduced)
GATHER_ROUND: Final = Exchange(host_rings.gather_round, device_rings.gather_round)
REDUCED_TO: Final = Exchange(host_rings.reduced_to, device_rings.reduced_to)
PASSED_ON: Final = Exchange(host_rings.passed_on, device_rings.passed_on)
EXCHANGED: Final = Exchange(host_rings.exchanged, device_rings.exchanged)


def gpu_of(backend: Backend) -> CupyBackend | None:
    """The backend if its arrays lie on a GPU."""
    return None if backend.device == "cpu" else backend  # type: ignore[return-value]


class Transport:
    """What one collective of all ranks uses. Its beginning: if the ranks choose their way each time, they do so now.

    Args:
        device: where this rank's tensor is.
        counts: what this rank sends to each rank, where that is not the same for all.

    Attributes:
        counts: what each rank has told so; ``None`` if the ranks do not tell each other.
        on_gpu: the arrays lie on the GPU.
    """

    def __init__(self, engine: EngineContext, group: Group, device: str, counts: Sequence[int] = ()) -> None:
        if engine.tracer is not None:
            engine.tracer.stop("ranks exchange values")
        backend = engine.backends[device]
        self._engine, self._group = engine, group
        self._meeting = group.meet(group, gpu_of(backend), counts)
        self.counts = None if self._meeting is None else self._meeting.counts
        self.on_gpu = self._meeting is not None and self._meeting.link is not None
        self.xp: Namespace = backend.xp if self.on_gpu else np

    def flat(self, tensor: Tensor) -> Array:
        """A flat copy of a tensor's values."""
        if self.on_gpu:
            return self.xp.array(tensor.array, order="C").reshape(-1)
        return np.array(self._engine.to_numpy(tensor), order="C").reshape(-1)

    def empty(self, shape: int | tuple[int, ...], dtype: DType) -> Array:
        """An array to receive into."""
        found: Array = self.xp.empty(shape, native(dtype))
        return found

    def run(self, exchange: Exchange, *arguments: Any) -> None:
        """Exchange arrays of this transport with the other ranks."""
        if self.on_gpu:
            assert self._meeting is not None
            self._meeting.run(exchange.device, *arguments)
        else:
            exchange.host(self._group, *arguments)


def to_device(backend: Backend, values: Array) -> Array:
    """What was exchanged, as an array of the backend."""
    found: Array = backend.from_host(values) if type(values) is np.ndarray else values
    return found


def average_beside(backend: Backend, group: Group, values: Array) -> Callable[[Lane], None]:
    """What averages ``values`` of all ranks in a thread of its own. Arrays on a GPU are those of the moment at which
    this is called, as far as the calling thread has issued what computes them."""
    gpu = None if type(values) is np.ndarray else gpu_of(backend)
    issued = None if gpu is None else gpu.mark()

    def average(lane: Lane) -> None:
        meeting = group.meet(lane, gpu)
        if gpu is None:
            host_rings.all_reduced(lane, values, "avg")
        elif meeting is not None and meeting.link is not None:
            meeting.run(device_rings.all_reduced, values, "avg", after=issued)
        else:
            with gpu.beside() as stream:
                stream.wait_event(issued)
                host = gpu.xp.asnumpy(values)
                host_rings.all_reduced(lane, host, "avg")
                values[...] = gpu.xp.asarray(host)
                gpu.finish(stream)

    return average
