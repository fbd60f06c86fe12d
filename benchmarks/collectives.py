"""all_reduce between processes of this machine: gradwire's ranks beside those of torch's gloo and beside Ray's object
store, bytes on the wire, and a step of training with averages beside its backward.

Each rank is a process; this module is its program, too. What is measured is the op in the engine with the server's
connections, without frames: what the choice of a transport decides. Ray's actors put their array into the store and
take the others' from there, which for two ranks moves what a ring moves.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from .report import Plan, Row, Target
from .timing import Figures

SIZES: Final = (4, 1 << 14, 1 << 18, 1 << 20, 1 << 23)
"""Elements of float32."""
WAYS: Final = ("gradwire", "gloo")
LAYERS, WIDTH, BATCH = 8, 512, 256
"""The model of the step: each layer's weight is a bucket."""
WIRE: Final = 125e6
"""Bytes a second."""
OVERHEAD: Final = 1.1
"""The most bytes on the wire, relative to a ring's minimum."""


def run(plan: Plan) -> Iterator[Row]:
    """Rows for 2 and 4 ranks."""
    sizes = SIZES[: plan.of(len(SIZES), 2)]
    yield from _beside_backward(plan)
    if not plan.quick:
        yield from _beside_ray(plan)
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


def _beside_ray(plan: Plan) -> Iterator[Row]:
    found = {way: [measured(way, 2, SIZES, plan.rounds) for _ in range(3)] for way in ("gradwire", "ray")}
    for at, size in enumerate(SIZES):
        ours, theirs = (Figures(tuple([each for once in found[way] for each in once["ms"][at]])) for way in found)
        yield Row(
            "collectives", f"all_reduce of {size * 4:,} bytes, 2 ranks, beside Ray's object store", "ms", ours, theirs,
            note="two actors that put and get arrays on one machine",
        )  # fmt: skip


def _beside_backward(plan: Plan) -> Iterator[Row]:
    for way, link in (
        ("step", "the loopback interface"),
        ("step over a wire", "a wire of 1 Gbit/s, which waits stand for"),
    ):
        found = measured(way, 2, (plan.of(WIDTH, 32),), plan.rounds)["ms"]
        yield Row(
            "collectives", f"a step of 2 ranks over {link}: buckets beside backward, and after it", "ms",
            Figures(tuple(found[0])), Figures(tuple(found[1])),
            note=f"{LAYERS} layers of {WIDTH} x {WIDTH}, batches of {BATCH}; both figures are gradwire's",
        )  # fmt: skip


def measured(way: str, ranks: int, sizes: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """Let so many processes reduce together; what rank 0 tells."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.collectives", way]
        options = [str(ranks), str(rounds), folder, *map(str, sizes)]
        processes = [
            subprocess.Popen([*command, str(rank), *options], stdout=subprocess.PIPE, text=True)
            for rank in range(1 if way == "ray" else ranks)
        ]
        outputs = [process.communicate(timeout=300)[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"a rank of {way} failed")
    told = next(line for line in outputs[0].splitlines() if line.startswith('{"ms"'))  # among what gloo and Ray say
    found: dict[str, Any] = json.loads(told)
    return found


def _main(way: str, rank: int, ranks: int, rounds: int, folder: Path, sizes: list[int]) -> None:
    if way == "ray":
        print(json.dumps({"ms": _ray(ranks, rounds, sizes), "wire": 0}), flush=True)
        return
    if way.startswith("step"):
        found = _steps(rank, ranks, folder, rounds, sizes[0], way != "step")
        print(json.dumps({"ms": found, "wire": 0}), flush=True)
        return
    reduce, wire, finish = (_gradwire if way == "gradwire" else _gloo)(rank, ranks, folder)
    taken: list[list[float]] = []
    for size in sizes:
        values = np.full(size, rank + 1, np.float32)
        reduce(values)
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            reduce(values)
            times.append((time.perf_counter() - began) * 1e3)
        taken.append(times)
    before = wire()
    reduce(np.ones(sizes[-1], np.float32))
    least = 2 * (ranks - 1) / ranks * sizes[-1] * 4
    print(json.dumps({"ms": taken, "wire": (wire() - before) / least}), flush=True)
    finish()


def _gradwire(rank: int, ranks: int, folder: Path) -> tuple[Any, Any, Any]:
    from gradwire_engine import ops  # noqa: F401  (registers kernels)
    from gradwire_engine.autograd.engine import Engine

    engine = Engine()
    links, finish = _joined(engine, rank, ranks, folder)

    def reduce(values: np.ndarray[Any, Any]) -> None:
        engine.call("all_reduce_", engine.from_numpy(values), "world", "sum")

    return reduce, lambda: links.describe()["wire_bytes_sent"], finish


def _joined(engine: Any, rank: int, ranks: int, folder: Path) -> tuple[Any, Any]:
    """Let an engine be a rank. Returns its connections and what to call at the end."""
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
    members = tuple([Member(f"rank {each}", "here") for each in range(ranks)])
    group = engine.groups["world"] = Group(GroupSpec("world", rank, ranks, "token", 60.0, members))
    links = group.communicator = GroupLinks(group, "secret", addresses, listener)

    def finish() -> None:
        end = time.monotonic() + 10
        while group.needed and time.monotonic() < end:  # another rank has not everything yet
            time.sleep(0.01)

    return links, finish


class _Wire:
    """Connections whose messages take as long as a slow wire would, without computing."""

    def __init__(self, links: Any) -> None:
        self._links = links

    def __getattr__(self, name: str) -> Any:
        return getattr(self._links, name)

    def take(self, peer: int, timeout_s: float) -> Any:
        found = self._links.take(peer, timeout_s)
        if found is not None:
            time.sleep(len(found[1]) / WIRE)
        return found


def _steps(rank: int, ranks: int, folder: Path, rounds: int, width: int, slow: bool) -> list[list[float]]:
    """Milliseconds of a forward and backward with averages: in the frame of the backward, and in one after it."""
    from gradwire_engine.session.session import Session
    from gradwire_protocol import envelope
    from gradwire_protocol.frames import Frame, Structure

    session = Session()
    links, finish = _joined(session.engine, rank, ranks, folder)
    if slow:
        session.engine.groups["world"].communicator = _Wire(links)

    def apply(*records: Any, **fields: Any) -> Any:
        structure = msgspec.Raw(envelope.encode_part(Structure(ops=list(records))))
        reply, _ = session.apply(Frame(structure=structure, **fields))
        if reply.errors or reply.refused:
            raise RuntimeError(f"the frame failed: {reply}")
        return reply

    made = apply(*[op for i in range(LAYERS) for op in (["randn", [[width, width]]], ["requires_grad_", [i]])])
    params = [made.first + i for i in range(LAYERS)]
    forward: list[Any] = [["randn", [[BATCH, width]]]]
    for i in range(LAYERS):
        forward += [["matmul", [len(forward) - 1, -1 - i]], ["tanh", [len(forward)]]]
    forward += [["sum", [len(forward) - 1]]]
    backward = [*[["set_grad", [-1 - i, None]] for i in range(LAYERS)], ["backward", [[len(forward) - 1], [None]]]]
    averages = [["average_gradients", [[-1 - i], "world"]] for i in reversed(range(LAYERS))]

    def beside() -> None:
        apply(*forward, *backward, *averages, external=params)

    def after() -> None:
        apply(*forward, *backward, external=params)
        apply(*averages, external=params)

    found: list[list[float]] = [[], []]
    for _ in range(rounds + 2):
        for times, step in zip(found, (beside, after), strict=True):
            session.engine.call("barrier", "world")
            began = time.perf_counter()
            step()
            times.append((time.perf_counter() - began) * 1e3)
    finish()
    return [times[2:] for times in found]


def _ray(ranks: int, rounds: int, sizes: list[int]) -> list[list[float]]:
    """Milliseconds by size, of actors that exchange arrays by the object store."""
    import ray

    class Actor:
        def __init__(self) -> None:
            self.come: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def give(self, refs: list[Any]) -> None:
            self.come.put(refs[0])

        def measure(self, others: list[Any], values: int) -> list[float]:
            mine, times = np.ones(values, np.float32), []
            for _ in range(rounds + 1):
                began = time.perf_counter()
                ref = ray.put(mine)
                for other in others:
                    other.give.remote([ref])
                total = mine.copy()
                for _ in others:
                    np.add(ray.get(self.come.get()), total, out=total)
                times.append((time.perf_counter() - began) * 1e3)
            return times[1:]

    ray.init("local", num_cpus=ranks, include_dashboard=False, logging_level="error", log_to_driver=False)
    try:
        made = [ray.remote(Actor).options(max_concurrency=2).remote() for _ in range(ranks)]  # type: ignore[attr-defined]
        found = []
        for size in sizes:
            calls = [actor.measure.remote([other for other in made if other is not actor], size) for actor in made]
            found.append(ray.get(calls)[0])
        return found
    finally:
        ray.shutdown()


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
