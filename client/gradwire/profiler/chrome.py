"""A profile as a Chrome trace: opens in Perfetto (ui.perfetto.dev) and in chrome://tracing.

The lanes, from above: the **client** (named ranges, frames being recorded with their ops, lines that wait: ranges and
waits have a lane for each thread of the program, since those of several threads do not nest), the
**network** (frames on their way up, replies on their way down), the **server** (frames that wait for the engine, are
applied, are written to the journal) and its **kernels** (each op, and inside backward each node). The server's times
are shifted to the client's clock; how exact that is stands in the trace's ``clock_uncertainty_us``.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from .._core.context.call_sites import place_of, spell_line, spell_place
from .._core.session.profile_recorder import ProfileRecorder
from .._core.session.round_trips import BACKPRESSURE, SPELLED
from .._core.wire.frame_travel import FrameTravel

if TYPE_CHECKING:
    from .events import EventList

CLIENT, NETWORK, SERVER, KERNEL = 1, 2, 3, 4
PROCESSES: Final = {CLIENT: "client", NETWORK: "network", SERVER: "server", KERNEL: "kernel"}
RANGES, RECORDING, WAITING = 1, 2, 3
UP, DOWN = 1, 2
QUEUE, FRAMES, COMMIT = 1, 2, 3
OPS = 1
THREADS: Final = {
    CLIENT: {RANGES: "program", RECORDING: "recording", WAITING: "waiting"},
    NETWORK: {UP: "frames up", DOWN: "replies down"},
    SERVER: {QUEUE: "queue", FRAMES: "frames", COMMIT: "commit"},
    KERNEL: {OPS: "ops"},
}
SESSION_STEP: Final = 10
"""Lanes of a second session have numbers so much higher."""
THREAD_STEP: Final = 10_000
"""Lanes of a second thread of the program have numbers so much higher."""

Event = dict[str, Any]


def write(path: str | os.PathLike[str], trace: dict[str, Any]) -> None:
    """Write a trace as JSON; compressed where the name ends in ``.gz``."""
    name = os.fspath(path)
    with gzip.open(name, "wt", encoding="utf-8") if name.endswith(".gz") else open(name, "w", encoding="utf-8") as file:
        json.dump(trace, file)


def of_recording(recorder: ProfileRecorder, metadata: dict[str, Any]) -> dict[str, Any]:
    """The trace of a recording that has been settled."""
    return _document(list(_Trace(recorder).events()), metadata | {"clock_uncertainty_us": _uncertainty(recorder)})


def of_events(events: EventList) -> dict[str, Any]:
    """The trace of events alone: ranges and waits of the program, ops of the server."""
    lanes = {"range": (CLIENT, RANGES), "wait": (CLIENT, WAITING), "op": (KERNEL, OPS), "node": (KERNEL, OPS)}
    threads: dict[int, int] = {}
    for event in events:
        if event.kind in ("range", "wait"):
            threads.setdefault(event.thread, len(threads))
    found = list(_names(1, len(threads)))
    for event in events:
        process, thread = lanes[event.kind]
        lane = thread + THREAD_STEP * threads[event.thread] if process == CLIENT else thread
        found.append(_complete(
            process, lane, event.name, event.kind, event.time_range.start, event.time_range.end,
            {"shapes": event.input_shapes, "line": event.stack[0] if event.stack else ""},
        ))  # fmt: skip
    return _document(found, {})


def _document(events: list[Event], metadata: dict[str, Any]) -> dict[str, Any]:
    return {"schemaVersion": 1, "displayTimeUnit": "ms", **metadata, "traceEvents": events}


def _uncertainty(recorder: ProfileRecorder) -> float:
    return max((frame.session.link.clock.uncertainty / 1e3 for frame in recorder.frames), default=0.0)


def _names(sessions: int, program_threads: int) -> Iterator[Event]:
    def named(process: int, tid: int, name: str) -> Iterator[Event]:
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": tid, "ts": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": tid, "ts": 0, "args": {"sort_index": tid}}

    for process, name in PROCESSES.items():
        yield {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "ts": 0, "args": {"name": name}}
        yield {
            "ph": "M", "name": "process_sort_index", "pid": process, "tid": 0, "ts": 0, "args": {"sort_index": process}
        }  # fmt: skip
        for thread, lane in THREADS[process].items():
            of_threads = process == CLIENT and thread != RECORDING
            for at in range(1 if process == CLIENT and thread == RANGES else sessions):
                for number in range(max(program_threads, 1) if of_threads else 1):
                    about = [f"thread {number + 1}"] * (number > 0) + [f"session {at + 1}"] * (sessions > 1)
                    if process == CLIENT and thread == RANGES:
                        about = about[: number > 0]  # ranges belong to no session
                    shown = f"{lane} ({', '.join(about)})" if about else lane
                    yield from named(process, thread + SESSION_STEP * at + THREAD_STEP * number, shown)


def _complete(
    process: int, thread: int, name: str, category: str, start: float, end: float, args: dict[str, Any]
) -> Event:
    return {
        "ph": "X", "pid": process, "tid": thread, "name": name, "cat": category, "ts": start,
        "dur": max(end - start, 0),
        "args": {key: value for key, value in args.items() if value not in (None, "", [])},
    }  # fmt: skip


class _Trace:
    """Builds the events of one recording."""

    def __init__(self, recorder: ProfileRecorder) -> None:
        self.recorder = recorder
        self.zero = recorder.began
        self.sessions: dict[str, int] = {}
        for session in [*(f.session for f in recorder.frames), *(w.session for w in recorder.waits)]:
            self.sessions.setdefault(session.id, len(self.sessions))
        self.threads: dict[int, int] = {}
        begun = [(one.began, one.thread) for one in recorder.ranges] + [(w.began, w.thread) for w in recorder.waits]
        for _, thread in sorted(begun):
            self.threads.setdefault(thread, len(self.threads))

    def us(self, ns: int) -> float:
        return (ns - self.zero) / 1e3

    def events(self) -> Iterator[Event]:
        yield from _names(max(len(self.sessions), 1), len(self.threads))
        end = self.recorder.ended
        for opened in self.recorder.ranges:
            lane = RANGES + self._of_thread(opened.thread)
            yield _complete(
                CLIENT, lane, opened.name, "range", self.us(opened.began), self.us(opened.ended or end),
                {"args": opened.args},
            )  # fmt: skip
        for number, frame in enumerate(self.recorder.frames, 1):
            yield from self._frame(frame, number)
        for wait in self.recorder.waits:
            code, instruction, what = wait.key
            file, line, source = ("", 0, "") if code is None else place_of((code, instruction))
            name = "pause: the server is behind" if what == BACKPRESSURE else SPELLED.get(what, what)
            lane = WAITING + self._lanes(wait.session.id) + self._of_thread(wait.thread)
            yield _complete(
                CLIENT, lane, name, "wait", self.us(wait.began), self.us(wait.ended),
                {"line": spell_place(file, line), "source": source, "frame": wait.seq},
            )  # fmt: skip

    def _of_thread(self, thread: int) -> int:
        return THREAD_STEP * self.threads[thread]

    def _lanes(self, session: str) -> int:
        return SESSION_STEP * self.sessions[session]

    def _frame(self, frame: FrameTravel, number: int) -> Iterator[Event]:
        lane = self._lanes(frame.session.id)
        name = f"frame {frame.seq}"
        about = {"frame": frame.seq, "ops": frame.total, "bytes": frame.sent_bytes}
        cut = self.us(frame.cut or self.recorder.ended)
        yield _complete(CLIENT, RECORDING + lane, name, "recording", self.us(frame.began), cut, about)
        for op in frame.ops:
            yield _complete(
                CLIENT, RECORDING + lane, op.name, "record", self.us(op.began), self.us(op.ended),
                {"shapes": op.shapes, "line": None if op.line is None else spell_line(op.line)},
            )  # fmt: skip
        times = frame.timing
        if times is None:
            return
        received, started, finished, committed = (
            self.us(ns - frame.offset)
            for ns in (times.received, times.started, times.finished, times.committed or times.finished)
        )
        arrived = self.us(frame.arrived)
        yield from self._flight(NETWORK, UP + lane, name, "up", cut, received, about, number)
        down = {"frame": frame.seq, "bytes": frame.received_bytes}
        yield from self._flight(NETWORK, DOWN + lane, f"reply {frame.seq}", "down", committed, arrived, down, number)
        yield from self._flight(SERVER, QUEUE + lane, name, "queue", received, started, {"frame": frame.seq}, number)
        yield _complete(SERVER, FRAMES + lane, name, "frame", started, finished, about)
        if times.committed:
            yield from self._flight(SERVER, COMMIT + lane, name, "commit", finished, committed, {}, number)
        yield {
            "ph": "s",
            "id": number,
            "pid": CLIENT,
            "tid": RECORDING + lane,
            "name": "frame",
            "cat": "flow",
            "ts": cut,
        }
        yield {
            "ph": "f", "bp": "e", "id": number, "pid": SERVER, "tid": FRAMES + lane, "name": "frame", "cat": "flow",
            "ts": started,
        }  # fmt: skip
        yield from self._kernels(frame, lane)

    def _kernels(self, frame: FrameTravel, lane: int) -> Iterator[Event]:
        times = frame.timing
        assert times is not None
        for op in frame.ops:
            at = 2 * op.index
            if at + 1 >= len(times.ops):
                break
            start, end = (self.us(times.ops[at + i] - frame.offset) for i in (0, 1))
            memory = times.memory[op.index] if op.index < len(times.memory) else None
            line = None if op.line is None else spell_line(op.line)
            yield _complete(
                KERNEL, OPS + lane, op.name, "op", start, end,
                {"shapes": op.shapes, "line": line, "bytes": memory, "frame": frame.seq, "stack": op.stack},
            )  # fmt: skip
        for _, name, position, start_ns, end_ns in times.nodes:
            made = frame.session.line_of(position)
            yield _complete(
                KERNEL, OPS + lane, name, "node", self.us(start_ns - frame.offset), self.us(end_ns - frame.offset),
                {"line": made, "frame": frame.seq},
            )  # fmt: skip

    @staticmethod
    def _flight(
        process: int, thread: int, name: str, category: str, start: float, end: float, args: Event, number: int
    ) -> Iterator[Event]:
        """A stretch that may overlap with others of its lane, as an asynchronous event, drawn side by side."""
        shared = {"pid": process, "tid": thread, "name": name, "cat": category, "id": f"{category}{number}"}
        yield {"ph": "b", "ts": start, "args": args, **shared}
        yield {"ph": "e", "ts": max(start, end), "args": {}, **shared}
