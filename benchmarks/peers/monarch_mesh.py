"""Monarch's distributed tensors on a mesh of one process, op by op. It cannot run a whole step in one call."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import torch
from monarch import fetch_shard, no_mesh, remote
from monarch.actor import this_host
from talk import LINKS, SIZE, answer, arguments, data


def _there(values: bytes) -> Any:
    # It is sent by value, so it must not refer to this file.
    return torch.frombuffer(bytearray(values), dtype=torch.float32).reshape(64, 64)


def measure(relay: str) -> None:
    if relay:
        raise RuntimeError("Monarch chooses the addresses between its processes itself: no relay can be put there")
    mesh = this_host().spawn_procs({"gpus": 1})
    make = remote(_there, propagate=lambda values: torch.empty(SIZE, SIZE))
    with mesh.activate():
        x, w = (make(array.tobytes()).requires_grad_() for array in data())

        def step() -> Any:
            h = x
            for _ in range(LINKS):
                h = torch.relu(h @ w)
            (gradient,) = torch.autograd.grad(h.mean(), [x])
            waiting = fetch_shard(gradient)
            with no_mesh.activate():
                return waiting.result().numpy()

        answer(f"torchmonarch {version('torchmonarch')}, torch {torch.__version__}", {"op by op": step})
    mesh.stop().get()


if __name__ == "__main__":
    torch.set_num_threads(1)
    measure(arguments().relay)
