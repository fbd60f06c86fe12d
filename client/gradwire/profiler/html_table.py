"""A profile's events as a table for notebooks, with the columns of the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.quantities import counted

from .._core.context import html
from .table import share, spell_bytes, spell_time

if TYPE_CHECKING:
    from .events import EventList

MOST_ROWS: Final = 100


def events_html(events: EventList) -> str:
    """The events or averages that took the engine longest, with the share of each as a bar."""
    if not events:
        return html.card("profile", ["no events"])
    whole = events.self_cpu_time_total
    waited = sum(event.client_time_total for event in events if event.kind == "wait")
    rows = sorted(events, key=lambda event: (-event.self_cpu_time_total, -event.client_time_total))
    head = ["name", "self CPU", "", "CPU total", "client total", "calls"]
    numbers = [1, 3, 4, 5]
    memory = events.profile_memory
    shapes = any(event.input_shapes for event in rows)
    lines = any(event.stack for event in rows)
    if memory:
        numbers.append(len(head))
        head.append("self CPU memory")
    head += ["input shapes"] * shapes + ["line"] * lines

    def cells(event: Any) -> list[str]:
        found = [
            html.code(event.key, 120), spell_time(event.self_cpu_time_total),
            html.bar(event.self_cpu_time_total / whole if whole else 0, share(event.self_cpu_time_total, whole)),
            spell_time(event.cpu_time_total), spell_time(event.client_time_total), f"{event.count:,}",
        ]  # fmt: skip
        if memory:
            found.append(spell_bytes(event.self_cpu_memory_usage))
        if shapes:
            found.append(html.code(event.input_shapes or "", 80))
        if lines:
            found.append(html.code(event.stack[0] if event.stack else "", 100))
        return found

    about = [html.text(f"{spell_time(whole)} in the engine"), html.text(f"{spell_time(waited)} waiting for the server")]
    if len(rows) > MOST_ROWS:
        about.append(html.text(f"the first {MOST_ROWS} of {counted(len(rows), 'row')}"))
    return html.card("profile", about, html.table(head, [cells(event) for event in rows[:MOST_ROWS]], numbers))
