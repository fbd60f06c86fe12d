"""The lines that waited, as a table for notebooks."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.quantities import counted, spell_seconds

from ..context import html
from ..context.call_sites import near_file, spell_place


def report_html(report: Any, most: int = 50) -> str:
    """The lines that waited longest."""
    rows = [
        (
            f"{html.code(spell_place(near_file(line.file), line.line))}<br>{html.code(line.source, 200)}<br>"
            f"{html.faint(line.what)}",
            f"{line.count:,}", spell_seconds(line.waited), spell_seconds(line.mean),
            f"{100 * line.server / line.waited:.0f} %" if line.waited else "", f"{line.received:,}",
            html.text(line.hint),
        )
        for line in report.lines[:most]
    ]  # fmt: skip
    head = ("line", "waits", "total", "mean", "server", "bytes", "instead")
    about = [html.text(f"{report.waited:.3f} s of waiting")]
    if len(report) > most:
        about.append(html.text(f"the {most} longest of {len(report):,} lines"))
    title = counted(report.count, "round trip")
    return html.card(title, about, html.table(head, rows, numbers=(1, 2, 3, 4, 5), wide=6))
