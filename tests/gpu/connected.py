"""NCCL on real GPUs: a communicator of one rank, ranks that share a GPU, and with two GPUs the bits of both ways."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime import nccl
from gradwire_engine.runtime.backends import Backends, DevicePool, available_devices
from gradwire_engine.runtime.groups import Group
from tests.wired_ranks import Links, queues_of, spec

LIMIT = 1 << 30
PATIENCE_S = 60.0
DTYPES = ("float32", "float64", "float16", "complex64", "int64", "bool")


def missing() -> str:
    """What is not there; empty where NCCL is."""
    return "" if nccl.version() else "NCCL, which CuPy finds as the package nvidia-nccl-cu12"


def checks(device: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(label, check) of all that this machine's GPUs allow."""
    yield "nccl: one rank sends to itself", lambda: _alone(device)
    yield "nccl: two ranks on one GPU go through host memory", lambda: _same(lambda rank: device, False)
    gpus = [each for each in available_devices() if each != "cpu"]
    if len(gpus) < 2:
        print("nccl: between GPUs: not checked, this machine has one")
        return
    for size in sorted({2, min(4, len(gpus))}):
        yield f"nccl: {size} GPUs, the bits of host memory", lambda size=size: _same(gpus.__getitem__, True, size)


def _alone(device: str) -> None:
    """Calls of a communicator that is made, used and destroyed, on a stream of its own and with the session's pool."""
    backend: Any = Backends(pool=DevicePool(LIMIT))[device]
    xp = backend.xp
    assert nccl.version_of(xp) >= nccl.OLDEST
    assert nccl.identity(backend)
    link = nccl.Link("alone", nccl.identity(backend), backend, 0, 1, nccl.unique_id(xp))
    until = time.monotonic() + PATIENCE_S
    while (reason := link.opened(1.0)) is None and time.monotonic() < until:
        pass
    assert reason == "", f"no communicator: {reason}"
    source = xp.arange(100_003, dtype=np.float32)
    target, kept = xp.zeros_like(source), source * 2

    def work(ring: nccl.Ring) -> None:
        ring.exchange([(0, source)], [(0, target)])
        ring.broadcast(kept, 0)
        xp.add(target, kept, out=target)

    group = Group(spec(0, 1))
    group.communicator = Links(group, queues_of(1), {})
    link.run(group, work)
    np.testing.assert_array_equal(xp.asnumpy(target), np.arange(100_003, dtype=np.float32) * 3)
    link.close()


def _same(device: Callable[[int], str], linked: bool, size: int = 2) -> None:
    """All reductions, and averages beside the session's thread, on GPUs that may use NCCL and on such that may not."""
    found = []
    for meets in (True, False):
        queues, failed = queues_of(size), dict[int, str]()

        def rank(number: int, meets: bool = meets, queues: Any = queues, failed: Any = failed) -> list[bytes]:
            engine = Engine(backends=Backends(pool=DevicePool(LIMIT)))
            group = engine.groups["world"] = Group(spec(number, size, PATIENCE_S), meets=meets)
            group.communicator = Links(group, queues, failed)
            given = list(_reduced(engine, number, size, device(number)))
            assert group.linked == (meets and linked), f"linked: {group.linked}, refused: {group._devices.refused}"
            group.unlink()
            return given

        with ThreadPoolExecutor(size) as pool:
            found.append(list(pool.map(rank, range(size), timeout=4 * PATIENCE_S)))
    assert found[0] == found[1], "other bits than through host memory"
    assert all(each == found[0][0] for each in found[0]), "ranks differ"


def _reduced(engine: Engine, rank: int, size: int, device: str) -> Iterator[bytes]:
    """What all ranks have after each reduction."""
    random = np.random.default_rng(rank)
    for dtype in DTYPES:
        for count in (3, 100_003):
            values = random.standard_normal(count) * 3
            x = engine.from_numpy((values > 0 if dtype == "bool" else values).astype(dtype), device=device)
            engine.call("all_reduce_", x, "world", "avg" if np.dtype(dtype).kind in "fc" else "sum")
            yield engine.to_numpy(x).tobytes()
    params = [engine.from_numpy(np.zeros((300, n), np.float32), requires_grad=True, device=device) for n in (5, 1, 7)]
    for param in params:
        grad = random.standard_normal(param.shape).astype(np.float32)
        param.grad = engine.from_numpy(grad, device=device)
    engine.call("average_gradients", params, "world", (rank % len(params),))
    engine.call("broadcast_each", params, "world", size - 1)
    for param in params:
        assert param.grad is not None
        yield engine.to_numpy(param.grad).tobytes()
        yield engine.to_numpy(param).tobytes()
