"""``python -m benchmarks.profile NAME``: where a step's time goes, on both sides of the wire.

It runs two loops of the same step on loopback. The first reads a value every step, and the times in each reply split
the step: recording in the client, wire and wake-ups, the server before, in and after the frame. The second reads
nothing until the end, and both processes are sampled; the slower one decides, and its samples are listed by room, by
kernel and by line. Plans time their own instructions.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Final

import torch
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import gradwire
from gradwire._core.session.round_trips import Waits

from . import servers
from .models import MODELS
from .sampling import Alarm
from .training import BATCHES, Training

if TYPE_CHECKING:
    from gradwire._core.session.session import Session

NAMES: Final = ("chain", "mlp", "gpt", "cnn", "lstm", "hvp", "scalars", *MODELS)
WARM: Final = 12
WIDTH: Final = 115
ROOT: Final = Path(__file__).parents[1]

ROOMS: Final = (
    ("gradwire_engine/kernels/cpu", "compiled kernels"), ("gradwire_engine/ops", "kernels and derivatives"),
    ("gradwire_engine/plans", "plans"), ("gradwire_engine", "engine: pipeline, tape, frames"),
    ("gradwire_protocol", "protocol: rules, records, codec"), ("gradwire_server", "server: frame's way, journal"),
    ("client/gradwire/nn", "client: modules"), ("client/gradwire/optim", "client: optimizers"),
    ("client/gradwire", "client: recording, sending"), ("benchmarks", "the program itself"),
)  # fmt: skip
"""The first that a place's path contains is its room."""

WAYS: Final = ("kernels/cpu/threads.py",)
"""What is between a kernel and its caller."""

Stacks = Counter[tuple[tuple[str, str, int], ...]]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Sampled(servers.Server):
    """A server that samples itself on request."""

    def __init__(self, threads: int, folder: str) -> None:
        self._file = Path(folder) / "stacks.json"
        super().__init__(threads, module=("benchmarks.sampled_server", str(self._file)))

    @contextmanager
    def sampling(self) -> Iterator[dict[str, Any]]:
        """Sample until the end of the ``with``. The yielded object then has the stacks and the seconds per sample."""
        found: dict[str, Any] = {}
        os.kill(self.pid, signal.SIGUSR1)
        yield found
        os.kill(self.pid, signal.SIGUSR2)
        until = time.monotonic() + 10
        while not self._file.exists() and time.monotonic() < until:
            time.sleep(0.01)
        found |= json.loads(self._file.read_text())
        self._file.unlink()

    def processor_s(self) -> float:
        """Seconds of processor time so far, over all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@app.command()
def main(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(NAMES)}.")],
    threads: Annotated[int, typer.Option(min=1, help="The server's (and torch's).")] = 1,
    seconds: Annotated[float, typer.Option(min=0.1, help="About how long each of the two loops runs.")] = 4.0,
    top: Annotated[int, typer.Option(min=1, help="Lines of the longer lists.")] = 20,
) -> None:
    """Print where the time of a benchmark's step goes."""
    if name not in NAMES:
        raise typer.BadParameter(f"unknown step {name!r}; choose from {', '.join(NAMES)}")
    console = Console(width=140)
    torch.set_num_threads(threads)
    local, read_local = _steps(name, torch)
    with tempfile.TemporaryDirectory(prefix="gradwire-profile-") as folder, Sampled(threads, folder) as server:
        with servers.session(server) as opened:
            step, read = _steps(name, gradwire)
            for _ in range(WARM):
                read_local(), read()
            count = max(5, int(seconds / _mean(read, 5)))
            console.print(f"[bold]{name}[/bold], {threads} thread(s), {count} steps in each loop")
            torch_s = sorted(_mean(read_local, 1) for _ in range(count))
            console.print(
                f"torch: {median(torch_s) * 1e3:.3f} ms a step, {torch_s[0] * 1e3:.3f} at best, read every step\n"
            )
            _taken_apart(opened, read, count, console)
            for _ in range(WARM):
                step()
            opened.synchronize()
            _sampled(server, opened, step, count, top, console)


def _steps(name: str, torch: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The step without its read (if it can be omitted), and with it."""
    made = MODELS[name](torch) if name in MODELS else import_module(f"benchmarks.{name}").build(torch)
    if not isinstance(made, Training):
        return made, made
    training, number = made, iter(range(1 << 62))

    def step() -> Any:
        return training.step(next(number) % BATCHES)

    return step, lambda: step().item()


def _mean(step: Callable[[], Any], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - began) / count


# A step that reads


class Noting(Waits):
    """The waits of a session, with their answers."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[tuple[int, int, Any]] = []

    def note(self, began: int, answer: Any = None, what: str | None = None) -> None:
        """Count a wait that ends now."""
        self.waits.append((began, time.perf_counter_ns(), answer))
        super().note(began, answer, what)


def _taken_apart(opened: Session, step: Callable[[], Any], count: int, console: Console) -> None:
    noting = opened.reader.waits = Noting()
    parts: list[dict[str, float]] = []
    before = opened.stats()
    for _ in range(count):
        noting.waits.clear()
        began, processor = time.perf_counter_ns(), time.thread_time_ns()
        step()
        ended, processor = time.perf_counter_ns(), time.thread_time_ns() - processor
        parts.append(_parts(began, ended, processor, noting.waits))
    after = opened.stats()
    table = Table(title="a step that reads a value, by part (medians; the fastest step)", title_justify="left")
    for heading in ("part", "ms", "share", "fastest"):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    fastest = min(parts, key=lambda part: part["step"])
    whole = median(part["step"] for part in parts)
    for part in parts[0]:
        value = median(found[part] for found in parts)
        table.add_row(part, f"{value:.3f}", f"{value / whole:.0%}", f"{fastest[part]:.3f}")
    console.print(table)
    per_step = {key: (after[key] - before[key]) / count for key in ("frames", "ops", "round_trips", "bytes_sent")}
    console.print(", ".join(f"{value:.1f} {key.replace('_', ' ')} a step" for key, value in per_step.items()) + "\n")


def _parts(began: int, ended: int, processor: int, waits: list[tuple[int, int, Any]]) -> dict[str, float]:
    """The parts of a step in ms. The server's times are differences by its own clock."""
    waited = sum(w[1] - w[0] for w in waits)
    timings = [w[2].reply.timing for w in waits if w[2] is not None and w[2].reply.timing is not None]
    queue = sum(t.started - t.received for t in timings)
    applied = sum(t.finished - t.started for t in timings)
    committed = sum((t.committed or t.finished) - t.finished for t in timings)
    found = {
        "step": ended - began,
        "client: recording and sending, before it waits": ended - began - waited,
        "waiting for the server, of which": waited,
        "  server: before the frame (earlier frames, hand-over)": queue,
        "  server: the frame is applied": applied,
        "  server: journal": committed,
        "  wire, wake-ups, codec on both sides": waited - queue - applied - committed,
        "client's processor time": processor,
    }
    return {name: value * 1e-6 for name, value in found.items()}


# A step without a wait


def _sampled(server: Sampled, opened: Session, step: Callable[[], Any], count: int, top: int, console: Console) -> None:
    own = Alarm()
    far, near = server.processor_s(), time.thread_time()
    began = time.perf_counter()
    with server.sampling() as there:
        own.start()
        for _ in range(count):
            step()
        near = time.thread_time() - near
        recorded = time.perf_counter() - began
        look = own.stop()
        opened.synchronize()
        took = time.perf_counter() - began
    far = server.processor_s() - far
    console.print(
        f"a step without a wait: {took / count * 1e3:.3f} ms; the client had recorded it after "
        f"{recorded / count * 1e3:.3f} ms a step, with {near / count * 1e3:.3f} ms of its processor; the server took "
        f"{far / count * 1e3:.3f} ms of its own (both with the sampler's)\n"
    )
    stacks: Stacks = Counter({tuple(tuple(p) for p in stack): seen for seen, stack in there["stacks"]})
    console.print(_instructions(there["instructions"], count, top))
    sides = {"server": (stacks, there["look_s"]), "client": (own.stacks, look)}
    for side, (found, look_s) in sides.items():
        scale = look_s / count * 1e3
        console.print(_table(f"{side}: by room", _by_room(found), scale, 12))
        console.print(_table(f"{side}: by kernel or function", _by_function(found), scale, top))
        console.print(_table(f"{side}: by place", _by_place(found), scale, top))


def _instructions(found: list[tuple[str, str, int, int, int]], count: int, top: int) -> Table:
    """The plans' own timings. On a busy machine the best times say more than the means."""
    table = Table(title="server: plans by instruction", title_justify="left", box=None, padding=(0, 1))
    for heading in ("ms a step", "ms at best", "share", "times a step", "us each", "us at best"):
        table.add_column(heading, justify="right")
    table.add_column("instruction and shapes", no_wrap=True)
    took = sum(row[3] for row in found)
    best = sum(row[2] * row[4] for row in found)
    for name, shapes, times, whole, least in sorted(found, key=lambda row: -row[2] * row[4])[:top]:
        cells = [whole / count * 1e-6, times * least / count * 1e-6]
        table.add_row(
            *(f"{cell:.3f}" for cell in cells), f"{times * least / best:.0%}", f"{times / count:.1f}",
            f"{whole / times * 1e-3:.1f}", f"{least * 1e-3:.1f}", Text(f"{name}: {shapes}"[: WIDTH - 35]),
        )  # fmt: skip
    ran = sum(row[2] for row in found) / count
    table.add_row(f"{took / count * 1e-6:.3f}", f"{best / count * 1e-6:.3f}", "100%", f"{ran:.1f}", "", "", "all")
    return table


def _room(file: str) -> str:
    return next((room for part, room in ROOMS if part in file), "libraries")


def _near(file: str) -> str:
    return file.removeprefix(f"{ROOT}/").removeprefix(f"{sys.prefix}/")


def _ours(stack: tuple[tuple[str, str, int], ...]) -> tuple[str, str, int]:
    """The innermost line in a file of the project that is not a mere dispatch of a kernel."""
    ours = (place for place in stack if str(ROOT) in place[0] and "site-packages" not in place[0])
    return next((place for place in ours if not place[0].endswith(WAYS)), stack[0])


def _by_room(stacks: Stacks) -> Counter[str]:
    found: Counter[str] = Counter()
    for stack, seen in stacks.items():
        found[_room(_ours(stack)[0])] += seen
    return found


def _by_function(stacks: Stacks) -> Counter[str]:
    found: Counter[str] = Counter()
    for stack, seen in stacks.items():
        file, function, _ = _ours(stack)
        found[f"{function}  {_near(file)}"[:WIDTH]] += seen
    return found


def _by_place(stacks: Stacks) -> Counter[str]:
    import linecache

    found: Counter[str] = Counter()
    for stack, seen in stacks.items():
        file, function, line = _ours(stack)
        source = linecache.getline(file, line).strip()
        found[f"{_near(file)}:{line} {function}: {source}"[:WIDTH]] += seen
    return found


def _table(title: str, counted: Counter[str], scale: float, top: int) -> Table:
    """Sample counts as milliseconds per step."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1))
    table.add_column("ms a step", justify="right")
    table.add_column("share", justify="right")
    table.add_column("where", no_wrap=True)
    total = sum(counted.values())
    for where, seen in counted.most_common(top):
        table.add_row(f"{seen * scale:.3f}", f"{seen / total:.0%}", Text(where))
    return table


if __name__ == "__main__":
    app()
