"""The events of a profile, with PyTorch's API: a tree of events, and averages of similar ones.

``cpu_time`` is the time of the server's engine, as if the op had run here. ``client_time`` is the program's own time:
recording an op, inside a named range, or waiting for the server.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

from .._core.context import displayed
from .._core.context.call_sites import place_of, spell_call
from .._core.session.profile_recorder import ProfileRecorder, Range
from .._core.session.round_trips import BACKPRESSURE, SPELLED
from .._core.wire.frame_travel import FrameTravel
from .chrome import of_events, write
from .table import spell_time, table

OP, NODE, RANGE, WAIT = "op", "node", "range", "wait"


class Interval(NamedTuple):
    """A time interval, in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Its duration."""
        return self.end - self.start


class DeviceType(Enum):
    """The device type of an event: always the CPU, whose time is the engine's."""

    CPU = 0
    CUDA = 1


CPU_TIMES = ("cpu_time", "cpu_time_total", "self_cpu_time_total")
DEVICE_TIMES = ("device_time", "device_time_total", "self_device_time_total")


def _as_text(name: str) -> Any:
    """A property that formats a time with its unit."""
    return property(lambda self: spell_time(getattr(self, name)), doc=f"``{name}`` with its unit.")


class Times:
    """Times (in microseconds) and bytes of an event or a group of events."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    client_time_total: float
    self_client_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    device_type: DeviceType = DeviceType.CPU
    use_device: str | None = None
    flops = 0
    overload_name = ""
    is_async = is_remote = is_legacy = False
    node_id = -1
    cpu_parent: FunctionEvent | None = None
    cpu_time_str, cpu_time_total_str, self_cpu_time_total_str = map(_as_text, CPU_TIMES)
    device_time_str, device_time_total_str, self_device_time_total_str = map(_as_text, DEVICE_TIMES)

    @property
    def cpu_time(self) -> float:
        """The engine's average time."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def client_time(self) -> float:
        """The program's average time."""
        return self.client_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """0: GPU time is not separated from the engine's."""
        return 0.0


class FunctionEvent(Times):
    """One event: an op, a backward node, a named range, or a wait.

    Attributes:
        id: its number in the profile.
        name, key: the op, the node, the range; ``wait: item`` for a wait.
        kind: ``op``, ``node``, ``range`` or ``wait``.
        time_range: when: for ops and nodes on the server (by this clock), for ranges and waits in the program.
        cpu_children, cpu_parent: the tree: ranges have ops, backward has nodes.
        input_shapes: of the operands, where ``record_shapes`` asked for them.
        stack: the line it comes from, and with ``with_stack`` the lines that led to it, innermost first.
    """

    name: str
    key: str
    trace_name: str

    def __init__(self, number: int, name: str, kind: str, time_range: Interval, thread: int) -> None:
        self.id: int = number
        self.name = self.key = self.trace_name = name
        self.kind: str = kind
        self.time_range: Interval = time_range
        self.thread: int = thread
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.input_shapes: list[Any] = []
        self.stack: list[str] = []
        self.args: str | None = None
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.client_time_total = self.self_client_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def adopt(self, child: FunctionEvent) -> None:
        """Add a child event."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    @property
    def is_user_annotation(self) -> bool:
        """Whether it is a range that the program named."""
        return self.kind == RANGE

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_total:.3f}us "
            f"client_time={self.client_time_total:.3f}us start_us={self.time_range.start:.3f} "
            f"end_us={self.time_range.end:.3f} cpu_children={[child.id for child in self.cpu_children]} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class FunctionEventAvg(Times):
    """A group of similar events."""

    kind: str
    key: str
    is_user_annotation: bool
    stack: list[str]

    def __init__(self, first: FunctionEvent | FunctionEventAvg, shapes: bool, frames: int) -> None:
        self.key = first.key
        self.kind = first.kind
        self.is_user_annotation = first.is_user_annotation
        self.input_shapes: Any = str(first.input_shapes) if shapes else ""
        self.stack = first.stack[:frames]
        self.cpu_parent = first.cpu_parent
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.client_time_total = self.self_client_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def add(self, other: Times) -> FunctionEventAvg:
        """Add another event or group."""
        self.count += other.count
        for name in ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total:.3f}us "
            f"cpu_time={self.cpu_time:.3f}us client_time={self.client_time:.3f}us count={self.count} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


ADDED = (
    "cpu_time_total", "self_cpu_time_total", "client_time_total", "self_client_time_total", "cpu_memory_usage",
    "self_cpu_memory_usage",
)  # fmt: skip


class EventList(list[Any]):
    """Events, or their averages, with a readable table."""

    def __init__(self, found: Iterable[Any] = (), profile_memory: bool = False) -> None:
        super().__init__(found)
        self.profile_memory: bool = profile_memory

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from .html_table import events_html

        return events_html(self)

    @property
    def self_cpu_time_total(self) -> float:
        """The engine's total time."""
        return float(sum(event.self_cpu_time_total for event in self))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, one row each.

        Args:
            sort_by: a number of theirs: ``cpu_time_total``, ``self_cpu_time_total``, ``client_time_total``, ``count``,
                ``cpu_memory_usage``, ...; names with ``cuda`` mean the ones with ``device``.
            row_limit: at most so many rows; -1 for all.
            header: a line above.
            top_level_events_only: leave out what happened inside another event.
            time_unit: ``s``, ``ms``, ``us`` or ``ns`` for all times; else each has one that suits it.

        Raises:
            AttributeError: for something that cannot be sorted by.
        """
        text = table(
            self, sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only, time_unit, self.profile_memory,
        )  # fmt: skip
        return displayed.DisplayedText(text)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """One average for all events of a name, in a group of their own by shapes and by their last lines if asked."""
        found: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            key = (event.kind, event.key, shapes, *event.stack[:group_by_stack_n])
            if key not in found:
                found[key] = FunctionEventAvg(event, group_by_input_shapes, group_by_stack_n)
            found[key].add(event)
        return EventList(found.values(), self.profile_memory)

    def total_average(self) -> FunctionEventAvg:
        """The total of all events."""
        if not self:
            raise ValueError("there are no events: nothing was recorded")
        total = FunctionEventAvg(self[0], False, 0)
        total.key, total.kind = "Total", ""
        for event in self:
            total.add(event)
            total.cpu_time_total += event.self_cpu_time_total - event.cpu_time_total
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write them as a Chrome trace, one lane per kind. The profile's own method adds the network's lanes."""
        write(path, of_events(self))

    def export_stacks(self, path: str, metric: str) -> None:
        """Write stacks and times for a flame graph, as lines of ``outer;inner time``. Needs ``with_stack``.

        Raises:
            ValueError: for an unknown metric.
        """
        if metric not in STACK_METRICS:
            raise ValueError(f"metric {metric!r} is none of {', '.join(STACK_METRICS)}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                amount = int(getattr(event, metric.replace("cuda", "device")))
                if event.stack and amount > 0:
                    frames = ";".join(line.translate(_SAFE) for line in reversed(event.stack))
                    file.write(f"{frames} {amount}\n")


STACK_METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_client_time_total")
_SAFE = str.maketrans(" ;\t\n", "____")


def build(recorder: ProfileRecorder, profile_memory: bool) -> EventList:
    """The events of a recording that has been settled."""
    return _Builder(recorder).build(profile_memory)


class _Builder:
    def __init__(self, recorder: ProfileRecorder) -> None:
        self.recorder = recorder
        self.events: list[FunctionEvent] = []
        self.of_range: dict[int, FunctionEvent] = {}

    def build(self, profile_memory: bool) -> EventList:
        for opened in self.recorder.ranges:
            self._range(opened)
        for frame in self.recorder.frames:
            self._frame(frame)
        for wait in self.recorder.waits:
            code, instruction, what = wait.key
            name = "wait: " + ("room to record on" if what == BACKPRESSURE else SPELLED.get(what, what))
            event = self._new(name, WAIT, wait.began, wait.ended, wait.thread)
            event.client_time_total = event.self_client_time_total = event.time_range.elapsed_us()
            if code is not None:
                event.stack = [_spell(code, instruction)]
        for opened in self.recorder.ranges:
            if opened.parent is not None and id(opened.parent) in self.of_range:
                self.of_range[id(opened.parent)].adopt(self.of_range[id(opened)])
        for opened in reversed(self.recorder.ranges):  # the inner ones first
            self._add_up(self.of_range[id(opened)])
        self.events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        for number, event in enumerate(self.events, 1):
            event.id = number
        return EventList(self.events, profile_memory)

    def _new(self, name: str, kind: str, began: int, ended: int, thread: int) -> FunctionEvent:
        zero = self.recorder.began
        made = FunctionEvent(0, name, kind, Interval((began - zero) / 1e3, (ended - zero) / 1e3), thread)
        self.events.append(made)
        return made

    def _range(self, opened: Range) -> None:
        ended = opened.ended or self.recorder.ended or opened.began
        event = self._new(opened.name, RANGE, opened.began, ended, opened.thread)
        event.args = opened.args
        event.client_time_total = event.self_client_time_total = event.time_range.elapsed_us()
        self.of_range[id(opened)] = event

    def _frame(self, frame: FrameTravel) -> None:
        times = frame.timing
        told = [] if times is None else times.ops
        by_index: dict[int, FunctionEvent] = {}
        for op in frame.ops:
            at = 2 * op.index
            began, ended = (told[at] - frame.offset, told[at + 1] - frame.offset) if at + 1 < len(told) else (
                op.began, op.began
            )  # fmt: skip
            event = by_index[op.index] = self._new(op.name, OP, began, ended, op.thread)
            event.input_shapes = op.shapes
            event.stack = op.stack or ([] if op.line is None else [_spell(*op.line)])
            event.cpu_time_total = event.self_cpu_time_total = event.time_range.elapsed_us()
            event.client_time_total = event.self_client_time_total = (op.ended - op.began) / 1e3
            if times is not None and op.index < len(times.memory):
                event.cpu_memory_usage = event.self_cpu_memory_usage = times.memory[op.index]
            if op.inside is not None:
                self.of_range[id(op.inside)].adopt(event)
        for index, name, position, start, end in [] if times is None else times.nodes:
            parent = by_index.get(index)
            if parent is None:
                continue
            event = self._new(name, NODE, start - frame.offset, end - frame.offset, parent.thread)
            line = frame.session.builder.recent_lines.at(position)
            event.stack = [] if line is None else [_spell(*line)]
            event.cpu_time_total = event.self_cpu_time_total = event.time_range.elapsed_us()
            parent.adopt(event)
            parent.self_cpu_time_total -= event.cpu_time_total

    def _add_up(self, event: FunctionEvent) -> None:
        """The engine's time of a range is that of its ops; the program's time is the range's own."""
        for child in event.cpu_children:
            event.cpu_time_total += child.cpu_time_total
            event.cpu_memory_usage += child.cpu_memory_usage
            event.self_client_time_total -= child.client_time_total


def _spell(code: Any, instruction: int) -> str:
    file, number, _ = place_of((code, instruction))
    return spell_call(file, number, code.co_name)
