"""Ranks of tests: sessions of one server that open a group and run frames at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from tests.live_server import LiveServer

from .exchange import frame

T = TypeVar("T")
WAIT_S = 120.0


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait until it is so."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {WAIT_S} s in vain: {what}")


@dataclass
class Rank:
    """One rank: a session of its own."""

    http: httpx.Client
    session: str
    rank: int
    client: int = 0
    seq: int = 0

    def numbered(self) -> None:
        """Number the frames from now on, so that they are applied once whatever happens."""
        self.client = self.http.post(f"{self.session}/clients").json()["client"]

    @property
    def id(self) -> str:
        return self.session.rsplit("/", 1)[-1]

    def open(self, world_size: int, group: str = "world", **facts: Any) -> httpx.Response:
        """Open a group."""
        body = {"group": group, "rank": self.rank, "world_size": world_size, **facts}
        return self.http.post(f"{self.session}/groups", json=body)

    def apply(self, ops: list[Any], reads: list[int] | None = None, **facts: Any) -> dict[str, Any]:
        """Apply a frame; its reply may have errors."""
        if self.client:
            self.seq += 1
            facts |= {"client": self.client, "seq": self.seq}
        response = self.http.post(f"{self.session}/frames", json=frame(ops, reads, **facts))
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def run(self, op: str, values: Any, *args: Any, dtype: str = "float32", shape: Sequence[int] | None = None) -> Any:
        """Apply an op to uploaded values, and read its result, or what it has written."""
        size = list(shape if shape is not None else [len(values)])
        ops = [["upload", ["payload", dtype, size]], [op, [0, *args]]]
        written = op.endswith("_") or op == "send"
        if not written:
            ops[1].append(1)
        return self.apply(ops, [0 if written else 1], payloads=[{"values": values}])

    def counts(self, group: str = "world") -> dict[str, Any]:
        """What the server tells of a group."""
        response = self.http.get(f"{self.session}/groups")
        assert response.status_code == 200, response.text
        return next(row for row in response.json()["groups"] if row["group"] == group)


class Ranks:
    """As many sessions of one server as a group has ranks."""

    def __init__(self, server: LiveServer, world_size: int, **wanted: Any) -> None:
        self.pool = ThreadPoolExecutor(world_size)
        self.http = server.http()
        self.http.timeout = httpx.Timeout(WAIT_S)
        self.each = []
        for rank in range(world_size):
            response = self.http.post("/v1/sessions", json=wanted)
            assert response.status_code == 201, response.text
            self.each.append(Rank(self.http, response.headers["location"], rank))

    def __iter__(self) -> Iterator[Rank]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, rank: int) -> Rank:
        return self.each[rank]

    def do(self, work: Callable[[Rank], T], *ranks: int) -> list[T]:
        """Let all ranks, or these, do something at the same time."""
        return list(self.pool.map(work, [self.each[r] for r in ranks] if ranks else self.each, timeout=WAIT_S))

    def open(self, group: str = "world", timeout_s: float = 60.0) -> None:
        """Open a group of all."""
        for response in self.do(lambda rank: rank.open(len(self), group, timeout_s=timeout_s)):
            assert response.status_code == 201, response.text


@contextmanager
def ranks(server: LiveServer, world_size: int, **wanted: Any) -> Iterator[Ranks]:
    """Sessions that are deleted afterwards."""
    found = Ranks(server, world_size, **wanted)
    try:
        yield found
    finally:
        for rank in found:
            found.http.delete(rank.session)
        found.http.close()
        found.pool.shutdown(wait=False)
