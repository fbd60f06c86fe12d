"""One key sends invalid frames while another tenant trains: no defect, probes answered, memory bounded.

Every field of every message of the schema gets wrong kinds, huge counts, negative sizes and deep nesting, over
streams in both formats and over REST. Every op gets invalid numbers and attributes. Messages of the maximum size
consist of empty lists, three at a time. Meanwhile a tenant trains to the same weights as alone, and a probe in a
separate process requests ``/livez``. Senders and tenant stand for other machines: they use the time that the server
and the probe leave.
"""

from __future__ import annotations

import math
import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, Final

import httpx
import msgspec

from tests.hostile_messages import NAMES, Fields, attacks, hostile_ops
from tests.live_server import API_KEY, OTHER_KEY, LiveServer, server_process
from tests.server.hostile import Hostile

from . import Figures, enough, progress, yield_processor
from .hostile import Neighbour
from .probes import Prober, resident, resident_alone

SECONDS = 300.0
SLICE_S: Final = 20.0
SENDERS: Final = 3
SAMPLE_S: Final = 0.2
LEAST_MESSAGES: Final = 5.0
"""A second."""
MOST_GROWTH: Final = 1 << 30
"""Bytes by which the server's own process may grow: what Compose leaves it beside a worker."""
MOST_TOGETHER: Final = 4 << 30
"""Of the server and its workers: what Compose gives the container."""
SETTINGS: Final = {
    "session_host": "process", "max_session_bytes": 2 << 30, "max_worker_bytes": 3 << 30, "log_level": "error",
    "max_sessions": 200,
}  # fmt: skip
"""As in docker/compose.yaml."""
LIMITS: Final = {"max_tensor_bytes": 256 << 20, "max_op_work": 1_000_000_000, "max_frame_seconds": 5}
LARGEST: Final = 31_000_000
LARGEST_JSON: Final = 14_000_000
EMPTY: Final = {"lists": b"\x90", "maps": b"\x80", "numbers": b"\x01", "nulls": b"\xc0", "texts": b"\xa0"}


def huge(rng: random.Random, size: int) -> bytes:
    """A message of so many values of one byte each, somewhere in a frame."""
    values = b"\xdd" + size.to_bytes(4, "big") + EMPTY[rng.choice(sorted(EMPTY))] * size
    at = {
        "scalars": values, "external": values, "releases": values, "stacked": values, "nonsense": values,
        "payloads": rng.choice((values, b"\x91\x81\xa6values" + values)),
        "structure": b"\x81\xa3ops" + rng.choice((values, b"\x91\x92\xa5zeros" + values)),
    }  # fmt: skip
    name = rng.choice(sorted(at))
    pack = msgspec.msgpack.encode
    fields = {"type": pack("frame"), "seq": pack(1), "near": pack(rng.random() < 0.5), name: at[name]}
    header = bytes([0x80 + len(fields)]) + b"".join(pack(field) + value for field, value in fields.items())
    return len(header).to_bytes(4, "little") + header


def large(rng: random.Random, size: int) -> Fields:
    """A frame that is large, and not wrong in itself."""
    ops = size // 10
    return {
        "type": "frame", "seq": 1, "structure": {"ops": [["ones", [[2]]]] * ops, "drops": list(range(ops))},
        "scalars": [rng.random()] * size, "releases": list(range(1 << 20, (1 << 20) + size)),
    }  # fmt: skip


class Sender:
    """One of those who send, for one slice of the time."""

    def __init__(self, url: str, number: int, end: float) -> None:
        self.rng = random.Random(number)
        self.end = min(end, time.time() + SLICE_S)
        self.server = LiveServer(url, OTHER_KEY, API_KEY)
        self.fields = list(attacks(1))
        self.http = self.server.http()
        self.hostile = Hostile(self.server, self.http, self.opened())

    def opened(self) -> str:
        """The path of a session. All who send share a key, and with it what the server takes of one key at a time.

        Raises:
            AssertionError: when it is refused for another reason, or for a minute.
        """
        until = time.time() + 60
        while True:
            response = self.http.post("/v1/sessions", json={"limits": LIMITS})
            if response.status_code == 201:
                return response.headers["location"]
            if response.status_code not in (429, 503) or time.time() > until:
                raise AssertionError(f"a session was refused: {response.status_code} {response.text[:300]}")
            time.sleep(1)

    def keep_on(self) -> None:
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.field, 60), (self.ops, 25), (self.huge, 6), (self.large, 3), (self.bodies, 6),
        ]  # fmt: skip
        acts, weights = zip(*kinds, strict=True)
        while time.time() < self.end:
            try:
                self.rng.choices(acts, weights)[0]()
            except httpx.TransportError:
                self.hostile.counts["requests cut off by the server"] += 1
        self.hostile.close()
        self.http.delete(self.hostile.path)
        self.http.close()

    def field(self) -> None:
        many = int(10 ** self.rng.uniform(1, 5.5))
        tag, path, name, _ = self.rng.choice(self.fields)
        make = next(make for t, p, n, make in attacks(many) if (t, p, n) == (tag, path, name))
        self.hostile.send(make(), f"{tag} {path} = {name}, {many}")

    def ops(self) -> None:
        names = self.rng.sample(NAMES, 20)
        parts = hostile_ops(self.rng, names)
        fields = {"type": "frame", "seq": 1, **parts}
        self.hostile.send(fields, f"{parts['structure']['ops'][-20:]} {parts['scalars']}", ("json",))

    def huge(self) -> None:
        size = int(10 ** self.rng.uniform(5.5, math.log10(LARGEST)))
        self.hostile.counts["huge messages"] += 1
        self.hostile.stream(huge(self.rng, size), f"{size} values")

    def large(self) -> None:
        self.hostile.counts["large frames"] += 1
        self.hostile.send(large(self.rng, self.rng.randrange(10_000, 700_000)), "large", ("stream", "msgpack"))

    def bodies(self) -> None:
        size = int(10 ** self.rng.uniform(4, math.log10(LARGEST_JSON)))
        values = self.rng.choice(("[],", "{},", "1,", '"",', "0.5,", "null,")) * (size // 3)
        text = self.rng.choice(('{"values":[%s0]}', "[%s0]", '{"scalars":[%s0],"structure":{"ops":[]}}')) % values
        path = self.hostile.path
        method, route = self.rng.choice((
            ("POST", "/v1/sessions"), ("POST", f"{path}/frames"), ("PUT", f"{path}/tensors/5"),
            ("POST", f"{path}/backward"), ("POST", f"{path}/grad"), ("POST", "/v1/tickets"),
        ))  # fmt: skip
        response = self.http.request(method, route, content=text, headers={"Content-Type": "application/json"})
        self.hostile.counts["bodies"] += 1
        if response.status_code >= 500 and response.status_code not in (503, 507):
            self.hostile.faults.append(f"{response.status_code} {response.text[:300]} <- {route} {text[:40]}")


def send(url: str, number: int, end: float) -> tuple[Counter[str], list[str]]:
    """A slice, in a process of its own: what came of it, and the server's faults."""
    try:
        sender = Sender(url, number, end)
    except AssertionError as error:
        return Counter(), [str(error)]
    sender.keep_on()
    return sender.hostile.counts, sender.hostile.faults


def run(most_seconds: float = SECONDS) -> Figures:
    """Send until the time is over."""
    spawning = multiprocessing.get_context("spawn")
    with server_process(**SETTINGS) as server, ProcessPoolExecutor(SENDERS, spawning, yield_processor) as pool:
        neighbour, done = Neighbour(server.url), threading.Event()
        before = resident_alone(server.pid)
        began = time.time()
        end = began + max(most_seconds - 30, 5)
        prober = Prober(server.url, server.pid, end)
        slices: list[Future[tuple[Counter[str], list[str]]]] = []
        alone: list[int] = []
        together: list[int] = []
        training = threading.Thread(target=neighbour.keep_on, args=(done,))
        training.start()
        try:
            while time.time() < end or not all(each.done() for each in slices):
                running = sum(not each.done() for each in slices)
                if running < SENDERS and time.time() < end:
                    slices.append(pool.submit(send, server.url, len(slices), end))
                alone.append(resident_alone(server.pid))
                together.append(resident(server.pid))
                progress(f"{len(slices)} slices, {alone[-1] >> 20} MB, with workers {together[-1] >> 20} MB")
                time.sleep(SAMPLE_S)
        finally:
            done.set()
            training.join(60)
            probed = prober.told()
        counts, faults = Counter[str](), list[str]()
        for each in slices:
            more, wrong = each.result()
            counts += more
            faults += wrong
        with server.http() as http:
            assert http.get("/readyz").status_code == 200
        assert server.alive, "the server died"
    sent = sum(n for what, n in counts.items() if what.startswith("over ")) + counts["huge messages"] + counts["bodies"]
    figures: dict[str, Any] = {
        **dict(sorted(counts.items())), "messages": sent, "training runs of the neighbour": len(neighbour.ends),
        **probed.figures,
        "the server itself, before (MB)": before >> 20, "at most (MB)": max(alone) >> 20,
        "with workers, at most (MB)": max(together) >> 20,
    }  # fmt: skip
    assert not faults, f"{len(faults)} faults, the first: {' | '.join(faults[:10])}; {figures}"
    assert not neighbour.failure, f"the neighbour failed: {neighbour.failure}; {figures}"
    ends = len(set(neighbour.ends) - {neighbour.alone})
    assert not ends, f"the neighbour ended with {ends} weights that a run alone does not have: {figures}"
    assert max(alone) - before < MOST_GROWTH, f"the server itself grew to {max(alone):,} bytes: {figures}"
    assert max(together) < MOST_TOGETHER, f"the server and its workers grew to {max(together):,} bytes: {figures}"
    probed.check(figures)
    enough(sent, LEAST_MESSAGES * (end - began), "messages")
    return figures
