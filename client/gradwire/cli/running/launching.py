"""``gradwire run --nproc N``: starts a program several times, as ranks that train together, and watches over them.

The ranks find in their environment what torchrun puts there. Each line that they print gets the rank before it. The
first one that fails ends the others.
"""

from __future__ import annotations

import os
import queue
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final, NamedTuple

GRACE_S: Final = 15.0
"""How long a rank that is to end may take before it is killed."""
SETTLING_S: Final = 2.0
"""How long after the first failure the others may take to end with an error of their own, which then is shown, too."""
LAST_LINES: Final = 20
"""How many of its last lines the report on a failed rank repeats."""


@dataclass(frozen=True)
class Job:
    """What is to be started.

    Attributes:
        nproc: how many ranks this machine has.
        nnodes, node_rank: how many machines there are, and which one this is.
        address, port: what the ranks find as MASTER_ADDR and MASTER_PORT; an empty address and 0 are chosen.
        run_id: names the job; an empty one is chosen.
        max_restarts: how often all ranks are started again after one failed.
    """

    nproc: int
    nnodes: int = 1
    node_rank: int = 0
    address: str = ""
    port: int = 0
    run_id: str = ""
    max_restarts: int = 0

    @property
    def world_size(self) -> int:
        return self.nproc * self.nnodes

    def environment(self, local_rank: int, attempt: int) -> dict[str, str]:
        """The variables of one rank."""
        return {
            "RANK": str(self.node_rank * self.nproc + local_rank),
            "LOCAL_RANK": str(local_rank),
            "GROUP_RANK": str(self.node_rank),
            "ROLE_RANK": str(self.node_rank * self.nproc + local_rank),
            "ROLE_NAME": "default",
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_WORLD_SIZE": str(self.nproc),
            "GROUP_WORLD_SIZE": str(self.nnodes),
            "ROLE_WORLD_SIZE": str(self.world_size),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
            "TORCHELASTIC_RUN_ID": self.run_id,
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(self.max_restarts),
            "PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1"),
        }


@dataclass
class Rank:
    """A rank that was started.

    Attributes:
        last: the last lines of its error output.
        raised: when the last traceback began there; 0 for never.
    """

    number: int
    process: subprocess.Popen[bytes]
    readers: list[threading.Thread] = field(default_factory=list)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    raised: float = 0.0


class Ended(NamedTuple):
    """A rank that has ended, how, and when."""

    rank: Rank
    code: int
    at: float


def launch(job: Job, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Start the ranks and wait for them. Returns the exit code: 0, or that of the rank that failed first.

    Without ``GRADWIRE_URL`` in ``environment``, one embedded server serves all ranks.
    """
    server = None
    given = dict(environment)
    if not given.get("GRADWIRE_URL"):
        from ..._core.wire.embedded_server import embedded_server

        server = embedded_server()
        given |= {"GRADWIRE_URL": server.url, "GRADWIRE_API_KEY": server.api_key}
    job = _completed(job)
    former = signal.signal(signal.SIGTERM, _interrupt)
    try:
        for attempt in range(job.max_restarts + 1):
            code = _attempt(job, command, given, attempt)
            if code == 0 or code == 128 + signal.SIGINT or attempt == job.max_restarts:
                return code
            print(f"gradwire run: restart {attempt + 1} of {job.max_restarts}", file=sys.stderr, flush=True)
        return code
    finally:
        signal.signal(signal.SIGTERM, former)
        if server is not None:
            server.stop()


def _completed(job: Job) -> Job:
    """The job with an address, a port and a name that nobody gave."""
    port = job.port
    if not port:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    address = job.address or "127.0.0.1"
    run_id = job.run_id or (secrets.token_hex(8) if job.nnodes == 1 else f"{address}:{port}")
    return Job(job.nproc, job.nnodes, job.node_rank, address, port, run_id, job.max_restarts)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """An interrupt inside of the ``with`` is raised at its end."""
    came: list[int] = []
    former = {
        number: signal.signal(number, lambda number, frame: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def _attempt(job: Job, command: Sequence[str], environment: Mapping[str, str], attempt: int) -> int:
    """Start all ranks once, and wait until all have ended. Returns the exit code."""
    ended: queue.Queue[Ended] = queue.Queue()
    output = threading.Lock()
    ranks: list[Rank] = []
    failed: list[Ended] = []
    try:
        with _interrupted_afterwards():  # a rank that is started and not among them would go on alone
            for local in range(job.nproc):
                variables = job.environment(local, attempt)
                ranks.append(_start(int(variables["RANK"]), command, {**environment, **variables}, ended, output))
        for _ in ranks:
            if (last := ended.get()).code:
                failed.append(last)
                break
        if not failed:
            return 0
        _wait(ranks, SETTLING_S)  # for the error that the collectives of the others meet
        while not ended.empty():
            if (last := ended.get()).code:
                failed.append(last)
        _end(ranks)
        return _report(failed)
    except KeyboardInterrupt:
        _signal(ranks, signal.SIGINT)
        _wait(ranks, GRACE_S)
        return 128 + signal.SIGINT
    finally:
        _end(ranks)
        for rank in ranks:
            for reader in rank.readers:
                reader.join(GRACE_S)


def _start(
    number: int, command: Sequence[str], environment: Mapping[str, str], ended: queue.Queue[Ended],
    output: threading.Lock,
) -> Rank:  # fmt: skip
    # A process group of its own: an interrupt at the terminal comes once, from here.
    process = subprocess.Popen(
        list(command), env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        process_group=0 if os.name == "posix" else None,
    )  # fmt: skip
    rank = Rank(number, process)
    assert process.stdout is not None
    assert process.stderr is not None
    for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
        reader = threading.Thread(target=_copy, args=(rank, source, target, output), daemon=True)
        reader.start()
        rank.readers.append(reader)

    def watch() -> None:
        code = process.wait()
        ended.put(Ended(rank, code, time.monotonic()))

    threading.Thread(target=watch, daemon=True).start()
    return rank


def _copy(rank: Rank, source: IO[bytes], target: IO[str], output: threading.Lock) -> None:
    """Print the lines of a rank, with the rank before each."""
    with source:
        for raw in source:
            line = raw.decode(errors="replace").rstrip("\r\n")
            if target is sys.stderr:
                rank.last.append(line)
                if line.startswith("Traceback (most recent call last)"):
                    rank.raised = time.monotonic()
            with output:
                print(f"[rank {rank.number}] {line}", file=target, flush=True)


def _end(ranks: Sequence[Rank]) -> None:
    """End what still runs."""
    if any(rank.process.poll() is None for rank in ranks):
        _signal(ranks, signal.SIGTERM)
        _wait(ranks, GRACE_S)
        for rank in ranks:
            if rank.process.poll() is None:
                rank.process.kill()
    for rank in ranks:
        rank.process.wait()


def _signal(ranks: Sequence[Rank], number: int) -> None:
    for rank in ranks:
        if rank.process.poll() is None:
            rank.process.send_signal(number)


def _wait(ranks: Sequence[Rank], seconds: float) -> None:
    end = time.monotonic() + seconds
    while any(rank.process.poll() is None for rank in ranks) and time.monotonic() < end:
        time.sleep(0.02)


def _report(failed: Sequence[Ended]) -> int:
    """Tell which rank failed first. Returns its exit code.

    A rank that raises ends its session, and the others meet that in their collectives: they may be gone before it is.
    So the one counts whose traceback began first.
    """
    for ended in failed:
        for reader in ended.rank.readers:
            reader.join(GRACE_S)
    rank, code, _ = min(failed, key=lambda ended: ended.rank.raised or ended.at)
    how = f"with exit code {code}" if code > 0 else f"by signal {signal.Signals(-code).name}"
    lines = [f"gradwire run: rank {rank.number} failed first, {how}; the others were ended"]
    lines += [f"    {line}" for line in rank.last]
    print("\n".join(lines), file=sys.stderr, flush=True)
    return code if code > 0 else 128 - code
