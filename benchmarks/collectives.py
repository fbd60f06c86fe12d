"""all_reduce between processes of this machine: gradwire's ranks beside those of torch's gloo, and bytes on the wire.

Each rank is a process; this module is its program, too. What is measured is the op in the engine with the server's
connections, without frames: what the choice of a transport decides.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from .report import Plan, Row, Target
from .timing import Figures

SIZES: Final = (4, 1 << 16, 1 << 20, 1 << 23)
"""Elements of float32."""
WAYS: Final = ("gradwire", "gloo")
OVERHEAD: Final = 1.1
"""The most bytes on the wire, relative to a ring's minimum."""


def run(plan: Plan) -> Iterator[Row]:
    """Rows for 2 and 4 ranks."""
    sizes = SIZES[: plan.of(len(SIZES), 2)]
    for ranks in (2, 4):
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(plan.of(3, 1)):
            for way in WAYS:
                found[way].append(measured(way, ranks, sizes, plan.of(15, 1)))
        for at, size in enumerate(sizes):
            ours, theirs = (Figures(tuple([each for once in found[way] for each in once["ms"][at]])) for way in WAYS)
            yield Row(
                "collectives", f"all_reduce of {size * 4:,} bytes, {ranks} ranks", "ms", ours, theirs,
                note="beside gloo, over the loopback interface; a process for each rank",
            )  # fmt: skip
        wire = Figures(tuple([once["wire"] for once in found["gradwire"]]))
        yield Row(
            "collectives", f"bytes on the wire over the least of a ring, {ranks} ranks", "x", wire,
            target=Target(OVERHEAD), note=f"of {sizes[-1] * 4:,} bytes, headers included",
        )  # fmt: skip


def measured(way: str, ranks: int, sizes: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Let so many processes reduce together; what rank 0 tells."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.collectives", way]
        options = [str(ranks), str(rounds), folder, *map(str, sizes)]
        processes = [
            subprocess.Popen([*command, str(rank), *options], stdout=subprocess.PIPE, text=True)
            for rank in range(ranks)
        ]
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"a rank of {way} failed")
    found: dict[str, Any] = json.loads(outputs[0].splitlines()[-1])  # gloo says something before
    return found


def _main(way: str, rank: int, ranks: int, rounds: int, folder: Path, sizes: list[int]) -> None:
    reduce, wire, finish = (_gradwire if way == "gradwire" else _gloo)(rank, ranks, folder)
    found: list[list[float]] = []
    for size in sizes:
        values = np.full(size, rank + 1, np.float32)
        reduce(values)
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            reduce(values)
            times.append((time.perf_counter() - began) * 1e3)
        found.append(times)
    before = wire()
    reduce(np.ones(sizes[-1], np.float32))
    least = 2 * (ranks - 1) / ranks * sizes[-1] * 4
    print(json.dumps({"ms": found, "wire": (wire() - before) / least}), flush=True)
    finish()


def _gradwire(rank: int, ranks: int, folder: Path) -> tuple[Any, Any, Any]:
    from gradwire_engine import ops  # noqa: F401  (registers kernels)
    from gradwire_engine.autograd.engine import Engine
    from gradwire_engine.runtime.groups import Group, GroupSpec, Member
    from gradwire_server.groups.links import GroupLinks
    from gradwire_server.groups.listener import Listener

    listener = Listener()
    part = folder / f"{rank}.part"
    part.write_text(json.dumps(listener.address))
    part.rename(folder / f"{rank}.json")
    addresses = []
    for each in range(ranks):
        while not (folder / f"{each}.json").exists():
            time.sleep(0.01)
        host, port = json.loads((folder / f"{each}.json").read_text())
        addresses.append((host, port))
    engine = Engine()
    members = tuple([Member(f"rank {each}", "here") for each in range(ranks)])
    group = engine.groups["world"] = Group(GroupSpec("world", rank, ranks, "token", 60.0, members))
    links = group.communicator = GroupLinks(group, "secret", addresses, listener)

    def reduce(values: np.ndarray[Any, Any]) -> None:
        engine.call("all_reduce_", engine.from_numpy(values), "world", "sum")

    def finish() -> None:
        end = time.monotonic() + 10
        while group.needed and time.monotonic() < end:  # another rank has not everything yet
            time.sleep(0.01)

    return reduce, lambda: links.describe()["wire_bytes_sent"], finish


def _gloo(rank: int, ranks: int, folder: Path) -> tuple[Any, Any, Any]:
    import torch
    from torch import distributed

    store = distributed.FileStore(str(folder / "store"), ranks)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=ranks)

    def reduce(values: np.ndarray[Any, Any]) -> None:
        distributed.all_reduce(torch.from_numpy(values.copy()))

    return reduce, lambda: 0, distributed.destroy_process_group


if __name__ == "__main__":
    _main(
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
        Path(sys.argv[5]),
        list(map(int, sys.argv[6:])),
    )
