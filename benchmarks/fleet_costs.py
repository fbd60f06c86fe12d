"""What the parts of a fleet cost on this machine: the measured inputs of ``benchmarks.fleet_simulation``.

``python -m benchmarks.fleet_costs`` measures and writes ``benchmarks/results/fleet_costs.json``. Ray runs on loopback
without a dashboard, the shared storage is a folder on the local disk, so a network adds to both.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer

RESULTS: Final = Path(__file__).parent / "results" / "fleet_costs.json"
SESSIONS_A_WORKER: Final = 20
RECORD_BYTES: Final = 4096

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def fast_s(work: Callable[[], Any], times: int) -> float:
    """The duration of some work: the fastest tenth, because other programs may run beside it."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return sorted(took)[len(took) // 10]


def storage(times: int) -> dict[str, float]:
    """A claim, a renewal and a commit on a directory, with the system calls of ``durable/shared`` and the journal."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numbers = iter(range(1 << 30))

        def written() -> Path:
            part = folder / f".part-{next(numbers)}"
            with open(part, "wb") as file:
                file.write(b"x" * 100)
                file.flush()
                os.fsync(file.fileno())
            return part

        def sync() -> None:
            descriptor = os.open(folder, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

        def claim() -> None:
            part = written()
            os.link(part, folder / f"claim-{next(numbers)}")
            sync()
            part.unlink()

        def renew() -> None:
            written().replace(folder / "owner")
            sync()

        with open(folder / "journal", "wb", buffering=0) as journal:
            record = b"x" * RECORD_BYTES

            def commit() -> None:
                journal.write(record)
                os.fdatasync(journal.fileno())

            return {
                "claim_s": fast_s(claim, times),
                "renewal_s": fast_s(renew, times),
                "commit_applied_s": fast_s(lambda: journal.write(record), times),
                "commit_durable_s": fast_s(commit, times),
            }


class _Registry:
    """An actor that does what the Directory does with a report and a question."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}

    async def report(self, worker: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        for row in rows:
            self.sessions[row["id"]] = row | {"worker": worker}
        return {"shares": {}, "known": True}

    async def used(self) -> float:
        return time.process_time()

    async def locate(self, session: str) -> dict[str, Any]:
        return self.sessions.get(session, {})


def directory(times: int) -> dict[str, float]:
    """A Ray actor's round trip, and its time for a report of 20 sessions and for a question under load."""
    ray: Any = import_module("ray")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray.init("local", num_cpus=1, include_dashboard=False, logging_level="error", log_to_driver=False)
    try:
        actor = ray.remote(_Registry).options(max_concurrency=1000, num_cpus=0).remote()
        rows = [
            {"id": f"s_{n}", "tenant": "t", "durability": "applied", "streams": 1, "bytes": 1 << 20, "frames": n}
            for n in range(SESSIONS_A_WORKER)
        ]
        ray.get(actor.report.remote("w", rows))
        trip = fast_s(lambda: ray.get(actor.locate.remote("s_1")), times)

        def loaded(call: Callable[[], Any]) -> float:
            """The actor's processor time for a call, when many are under way."""
            rounds = max(1, times // 50)
            began = ray.get(actor.used.remote())
            for _ in range(rounds):
                ray.get([call() for _ in range(100)])
            return float(ray.get(actor.used.remote()) - began) / (rounds * 100)

        return {
            "actor_call_s": trip,
            "report_service_s": loaded(lambda: actor.report.remote("w", rows)),
            "locate_service_s": loaded(lambda: actor.locate.remote("s_1")),
        }
    finally:
        ray.shutdown()


def creation(times: int) -> dict[str, float]:
    """A session's creation and deletion over HTTP, on a server that is warm."""
    import httpx

    from .servers import Server

    with (
        Server(1, compiled_kernels="off") as server,
        httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}, timeout=30) as client,
    ):

        def create() -> None:
            made = client.post("/v1/sessions", json={})
            made.raise_for_status()
            client.delete(f"/v1/sessions/{made.json()['id']}").raise_for_status()

        create()
        return {"create_s": fast_s(create, times)}


def relay(messages: int) -> dict[str, float]:
    """The processor time of a gateway for a message that it relays both ways (WebSocket, 8 KiB there, 100 B back)."""
    return {"relayed_message_s": asyncio.run(_relay(messages))}


async def _relay(messages: int) -> float:
    from websockets.asyncio.client import connect
    from websockets.asyncio.server import ServerConnection, serve

    payload, answer = b"x" * 8192, b"y" * 100

    async def echo(socket: ServerConnection) -> None:
        async for _ in socket:
            await socket.send(answer)

    async def pass_on(socket: ServerConnection) -> None:
        async with connect(url, compression=None) as worker:
            async for message in socket:
                await worker.send(message)
                await socket.send(await worker.recv())

    async def measured(address: str) -> float:
        async with connect(address, compression=None) as socket:
            began = time.process_time()
            for _ in range(messages):
                await socket.send(payload)
                await socket.recv()
            return (time.process_time() - began) / messages

    async with serve(echo, "127.0.0.1", 0, compression=None) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with serve(pass_on, "127.0.0.1", 0, compression=None) as middle:
            relayed = f"ws://127.0.0.1:{middle.sockets[0].getsockname()[1]}"
            # One process has all parts, so the difference is the relay's.
            return max(await measured(relayed) - await measured(url), 1e-6)


def measure(times: int = 300) -> dict[str, float]:
    """All costs, in seconds."""
    return storage(times) | relay(times * 5) | creation(max(times // 10, 3)) | directory(times)


@app.command()
def main(times: int = 300, out: Path = RESULTS) -> None:
    """Measure, print and write."""
    from . import machine

    found = measure(times)
    for name, seconds in found.items():
        print(f"{name:20} {seconds * 1e6:10.1f} us")
    out.write_text(json.dumps({"machine": machine.facts(), "seconds": found}, indent=1) + "\n")


if __name__ == "__main__":
    app()
