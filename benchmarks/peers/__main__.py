"""``python -m benchmarks.peers``: create the environments, measure all peers in one run, write one table."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import torch
import typer
from rich.console import Console

import gradwire
from gradwire._core.session.session import Session

from .. import chain, machine, report
from ..__main__ import RESULTS
from ..report import Plan, Row, Target
from ..servers import THREAD_VARIABLES, DelayedRoute, Server, inside, session
from ..timing import interleave, seconds
from .environments import PEERS, ROOT, NotInstalled, Peer, first_line, python_of

RTT_MS: Final = 20.0
PLACES: Final = {"loopback": 0.0, f"{RTT_MS:g} ms away": RTT_MS}
ANSWER_S: Final = 120.0
FASTER: Final = Target(1.0, of="ratio")
BY: Final = "python -m benchmarks.peers"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Asked:
    """A peer's script, ready to measure at one distance.

    Raises:
        RuntimeError: with the first line of its output, if it does not start.
    """

    def __init__(self, python: str, peer: Peer, rtt_ms: float) -> None:
        command = [sys.executable, "-m", "benchmarks.delay", "--rtt-ms", str(rtt_ms)]
        relay = shlex.join(command) if rtt_ms else ""
        script = Path(__file__).parent / peer.script
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed by end()
        self._process = subprocess.Popen(
            [python, str(script), "measure", "--relay", relay], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._said, text=True, env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"), cwd=ROOT,
        )  # fmt: skip
        try:
            about = self._answer()
        except RuntimeError:
            self.end()
            raise
        self.version: str = about["version"]
        self.forms: list[str] = about["forms"]
        self.sums: list[float] = about["sums"]

    def milliseconds(self, form: int, steps: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{form} {steps}\n")
        self._process.stdin.flush()
        return float(self._answer()["ms"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        watch = Watch(self._process, ANSWER_S)
        try:
            line = self._process.stdout.readline()
        finally:
            late = watch.stop()
        if not line:
            if late:
                raise RuntimeError(f"it did not answer within {ANSWER_S:.0f} s")
            self._process.wait(10)
            self._said.seek(0)
            raise RuntimeError(first_line(self._said.read()))
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Close its standard input, which ends it, and wait."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._said.close()


class Watch:
    """Kills a process after a timeout, so that reading from it ends."""

    def __init__(self, process: subprocess.Popen[str], limit_s: float) -> None:
        self._fired = False

        def fire() -> None:
            self._fired = True
            process.kill()

        self._timer = threading.Timer(limit_s, fire)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> bool:
        """Stop watching. Returns whether the timeout had passed."""
        self._timer.cancel()
        return self._fired


@app.command()
def main(
    names: Annotated[list[str] | None, typer.Argument(help="Some of the peers, by a part of their names.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which everybody measures once.")] = 9,
    quick: Annotated[bool, typer.Option(help="One round of few steps: shows that it runs, measures nothing.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Where to write, without suffix. Default: benchmarks/results/peers.")
    ] = None,
) -> None:
    """Measure the chain of small ops on gradwire, on local torch and on the peers."""
    chosen = [peer for peer in PEERS if not names or any(name.lower() in peer.name.lower() for name in names)]
    if not chosen:
        raise typer.BadParameter(f"there is no such peer: there are {', '.join(peer.name for peer in PEERS)}")
    plan = Plan(1 if quick else rounds, quick)
    console = Console()
    pythons: dict[Peer, str] = {}
    missing: dict[Peer, str] = {}
    for peer in chosen:
        with console.status(f"installing {peer.name} ..."):
            try:
                pythons[peer] = python_of(peer)
            except NotInstalled as error:
                missing[peer] = f"not installed: {error}"
    facts = machine.facts() | {"rounds": plan.rounds}
    rows: list[Row] = []
    versions: dict[str, str] = {}
    for place, rtt_ms in PLACES.items():
        with console.status(f"{place} ..."):
            rows += _at(place, rtt_ms, pythons, missing, versions, plan)
    facts["peers"] = versions
    Console(width=max(console.width, 150)).print(report.table(rows, report.PEERS))
    for row in rows:
        if row.note:
            console.print(f"{row.benchmark}, {row.case}: {row.note}", style="dim", highlight=False)
    if out is not None or not quick:
        report.write(rows, facts, out or RESULTS / "peers", report.PEERS, BY)


def _at(
    place: str, rtt_ms: float, pythons: dict[Peer, str], missing: dict[Peer, str], versions: dict[str, str], plan: Plan
) -> Iterator[Row]:
    """Rows for one distance."""
    torch.set_num_threads(1)
    notes = dict(missing)
    with ExitStack() as stack:
        server = stack.enter_context(Server())
        route = stack.enter_context(DelayedRoute(server, rtt_ms)) if rtt_ms else server
        opened = stack.enter_context(session(route))
        remote, local = chain.build(gradwire), chain.build(torch)
        wanted = float(np.abs(local()).sum())
        sides: dict[tuple[str, str], Callable[[], float]] = {
            ("gradwire", "op by op"): partial(_ours, opened, remote, plan.of(10, 2)),
            ("torch, local", "op by op"): partial(_milliseconds, local, plan.of(10, 2)),
        }
        for _ in range(3):
            remote()
        for peer, python in pythons.items():
            try:
                asked = Asked(python, peer, rtt_ms)
            except RuntimeError as error:
                notes[peer] = f"not measured: {error}"
                continue
            stack.callback(asked.end)
            versions[peer.name] = asked.version
            for number, (form, total) in enumerate(zip(asked.forms, asked.sums, strict=True)):
                np.testing.assert_allclose(total, wanted, rtol=1e-3, err_msg=f"{peer.name} computes something else")
                sides[peer.name, form] = partial(asked.milliseconds, number, plan.of(5, 1))
        found = interleave(sides, plan.rounds)
    ours = found.pop(("gradwire", "op by op"))
    for (name, form), theirs in found.items():
        target = FASTER if form == "op by op" and name != "torch, local" and not plan.quick else None
        yield Row(f"chain, {place}", f"{name}, {form}", "ms", ours, theirs, target)
    for peer, note in notes.items():
        yield Row(f"chain, {place}", f"{peer.name}: none", "ms", ours, None, None, note)


def _ours(opened: Session, step: Callable[[], Any], steps: int) -> float:
    with inside(opened):
        return _milliseconds(step, steps)


def _milliseconds(step: Callable[[], Any], steps: int) -> float:
    """The average time of a step, after an uncounted one."""
    step()

    def several() -> None:
        for _ in range(steps):
            step()

    return seconds(several) / steps * 1e3


if __name__ == "__main__":
    app()
