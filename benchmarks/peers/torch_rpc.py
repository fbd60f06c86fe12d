"""torch.distributed.rpc: one call per op, whose result stays on the worker, or one call for the whole step.

The two processes find each other through a store that holds the worker's address. To add latency, this side reads the
address of a relay instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed.rpc as rpc
from talk import LINKS, Beside, answer, arguments, data, free_port
from torch.distributed import Store, TCPStore
from torch.distributed.rendezvous import register_rendezvous_handler

PATIENCE = timedelta(seconds=60)


# Functions of the worker; references stand for its tensors


def leaf(values: Any) -> Any:
    return values.requires_grad_()


def matmul(a: Any, b: Any) -> Any:
    return a.local_value() @ b.local_value()


def relu(a: Any) -> Any:
    return torch.relu(a.local_value())


def mean(a: Any) -> Any:
    return a.local_value().mean()


def backward(a: Any) -> None:
    a.local_value().backward()


def forget(*leaves: Any) -> None:
    for found in leaves:
        found.local_value().grad = None


def gradient(a: Any) -> Any:
    return a.local_value().grad


def whole(a: Any, b: Any) -> Any:
    x, w = a.local_value(), b.local_value()
    x.grad = w.grad = None
    h = x
    for _ in range(LINKS):
        h = torch.relu(h @ w)
    h.mean().backward()
    return x.grad


class Redirected(Store):  # type: ignore[misc]
    """A store in which a relay's address replaces the worker's."""

    def __init__(self, inner: Store, beside: Beside, relay: str) -> None:
        super().__init__()
        self._inner = inner
        self._beside = beside
        self._relay = relay
        self.redirected = False

    def get(self, key: str) -> bytes:
        value: bytes = self._inner.get(key)
        scheme, _, place = value.decode(errors="replace").partition("://")
        if scheme == "uv" and key.endswith("worker"):
            host, _, port = place.rpartition(":")
            value = f"uv://{host}:{self._beside.relay(self._relay, int(port))}".encode()
            self.redirected = True
        return value

    def set(self, key: str, value: Any) -> None:
        self._inner.set(key, value)

    def add(self, key: str, amount: int) -> int:
        return int(self._inner.add(key, amount))

    def wait(self, keys: list[str], timeout: timedelta = PATIENCE) -> None:
        self._inner.wait(keys, timeout)

    def check(self, keys: list[str]) -> bool:
        return bool(self._inner.check(keys))

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        found: bytes = self._inner.compare_set(key, expected, desired)
        return found

    def delete_key(self, key: str) -> bool:
        return bool(self._inner.delete_key(key))


def join(name: str, rank: int, store: Store) -> None:
    """Join over plain TCP, because shared memory would bypass the relay."""

    def handed(_: str, **__: Any) -> Iterator[tuple[Store, int, int]]:
        yield store, rank, 2

    register_rendezvous_handler("handed", handed)
    options = rpc.TensorPipeRpcBackendOptions(
        init_method="handed://", num_worker_threads=4, _transports=["uv"], _channels=["basic"]
    )
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=options)


def measure(relay: str) -> None:
    beside = Beside()
    port = free_port()
    store: Any = TCPStore("127.0.0.1", port, 2, is_master=True, wait_for_workers=False, timeout=PATIENCE)
    worker = subprocess.Popen([sys.executable, sys.argv[0], "serve", str(port)], stdin=subprocess.DEVNULL)
    try:
        if relay:
            store = Redirected(store, beside, relay)
        join("client", 1, store)
        if relay and not store.redirected:
            raise RuntimeError("the worker's address was not read from the store, so no relay is in between")
        _measure()
    except BaseException:
        traceback.print_exc()
    finally:
        worker.kill()
        beside.end()
        os._exit(0)  # the other side is gone, and shutdown would wait for it


def _measure() -> None:
    x, w = (rpc.remote("worker", leaf, (torch.from_numpy(array),)) for array in data())

    def step() -> Any:
        forgotten = rpc.rpc_async("worker", forget, (x, w))
        h = x
        for _ in range(LINKS):
            h = rpc.remote("worker", relu, (rpc.remote("worker", matmul, (h, w)),))
        forgotten.wait()  # wait here, because the worker has several threads and could do it after backward
        rpc.rpc_async("worker", backward, (rpc.remote("worker", mean, (h,)),)).wait()
        return rpc.rpc_sync("worker", gradient, (x,)).numpy()

    def one_call() -> Any:
        return rpc.rpc_sync("worker", whole, (x, w)).numpy()

    answer(f"torch {torch.__version__}", {"op by op": step, "one function": one_call})


if __name__ == "__main__":
    torch.set_num_threads(1)
    given = arguments()
    if given.role == "serve":
        join("worker", 0, TCPStore("127.0.0.1", given.port, 2, is_master=False, timeout=PATIENCE))
        rpc.shutdown()
    else:
        measure(given.relay)
