"""A profile's events as a text table with PyTorch's columns, plus the program's own time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

UNITS: Final = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
GAP: Final = "  "
LEAST_WIDTH: Final = 12


def spell_time(us: float, unit: str | None = None) -> str:
    """A time in the given unit, or in a suitable one."""
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    elif unit not in UNITS:
        raise ValueError(f"time unit {unit!r} is none of {', '.join(UNITS)}")
    return f"{us / UNITS[unit]:.3f}{unit}"


def spell_bytes(count: int) -> str:
    """A number of bytes; negative if memory was released."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count} B"


def share(part: float, whole: float) -> str:
    """A part in percent."""
    return f"{100 * part / whole:.2f}%" if whole else "0.00%"


def shorten(text: str, most: int | None, front: bool = False) -> str:
    """A text of limited length, cut at the end or the front."""
    if most is None or len(text) <= most or most < 4:
        return text
    return "..." + text[len(text) - most + 3 :] if front else text[: most - 3] + "..."


def attribute(sort_by: str) -> str:
    """The attribute of a sort key of PyTorch's tables."""
    return sort_by.replace("cuda", "device").replace("xpu", "device")


def table(
    events: Any, sort_by: str | None, row_limit: int, source_width: int | None, name_width: int | None,
    shapes_width: int | None, header: str | None, top_level_only: bool, unit: str | None, memory: bool,
) -> str:  # fmt: skip
    """See :meth:`gradwire.profiler.events.EventList.table`."""
    if not events:
        return ""
    rows = list(events)
    if sort_by is not None:
        by = attribute(sort_by)
        rows.sort(key=lambda event: getattr(event, by), reverse=True)
    whole = sum(event.self_cpu_time_total for event in rows)
    program = sum(event.client_time_total for event in rows if event.kind == "wait")
    if top_level_only:
        rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
    shown = rows if row_limit < 0 else rows[:row_limit]

    def time(name: str) -> Callable[[Any], str]:
        return lambda event: spell_time(getattr(event, name), unit)

    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda event: shorten(event.key, name_width)),
        ("Self CPU %", lambda event: share(event.self_cpu_time_total, whole)),
        ("Self CPU", time("self_cpu_time_total")),
        ("CPU total %", lambda event: share(event.cpu_time_total, whole)),
        ("CPU total", time("cpu_time_total")),
        ("CPU time avg", time("cpu_time")),
        ("Client total", time("client_time_total")),
    ]
    if memory:
        columns += [
            ("CPU Mem", lambda event: spell_bytes(event.cpu_memory_usage)),
            ("Self CPU Mem", lambda event: spell_bytes(event.self_cpu_memory_usage)),
        ]
    columns.append(("# of Calls", lambda event: str(event.count)))
    if any(event.input_shapes for event in rows):
        columns.append(("Input Shapes", lambda event: shorten(str(event.input_shapes or "[]"), shapes_width)))
    if any(event.stack for event in rows):
        columns.append(
            ("Source Location", lambda event: shorten(event.stack[0] if event.stack else "", source_width, front=True))
        )
    cells = [[title for title, _ in columns], *([spell(event) for _, spell in columns] for event in shown)]
    widths = [max(LEAST_WIDTH, *(len(row[i]) for row in cells)) for i in range(len(columns))]
    rule = GAP.join("-" * width for width in widths)
    lines = [] if header is None else ["=" * len(rule), header]
    if top_level_only:
        lines.append("Only what happened outside of other events")
    lines.append(rule)
    for at, row in enumerate(cells):
        lines.append(GAP.join(cell.rjust(width) for cell, width in zip(row, widths)))
        if at == 0:
            lines.append(rule)
    lines += [rule, f"Self CPU time total: {spell_time(whole, unit)}"]
    if program:
        lines.append(f"Waiting for the server: {spell_time(program, unit)}")
    return "\n".join(lines) + "\n"
