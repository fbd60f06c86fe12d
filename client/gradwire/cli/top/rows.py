"""The table of sessions: columns, their order of importance, and the orders of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ..printing import plain
from ..sizes import age_text, bytes_text, count_text

Session = dict[str, Any]

GAP: Final = "  "
ID_CHARS: Final = 20
TEXT_CHARS: Final = 24
"""Names and tenants are cut to this; errors take the room that is left."""
SMALLEST_ERROR: Final = 12
STYLES: Final = {"busy": "green", "damaged": "bold red", "dormant": "dim"}


def _memory(session: Session, kind: str) -> float:
    return float((session.get("memory") or {}).get(kind) or 0)


def _bytes(session: Session, kind: str) -> str:
    return bytes_text(_memory(session, kind)) if session.get("memory") else "-"


def _planned(session: Session) -> float:
    return float(session["planned_frames"]) / session["frames"] if session.get("frames") else 0.0


def error_text(session: Session) -> str:
    """The session's last error in a line; empty if there was none."""
    last = session.get("last_error")
    if not last:
        return ""
    op, detail = str(last.get("op") or ""), str(last.get("detail") or "")
    where = f" in {op}" if op else ""
    return f"{last['code']}{where}" + (f": {detail.removeprefix(f'{op}: ')}" if detail else "")


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        head: its title.
        text: its cell for a session.
        rank: the higher, the earlier it is left out of a narrow terminal; 0 is never left out.
        right: whether numbers are aligned at the right.
    """

    head: str
    text: Callable[[Session], str]
    rank: int
    right: bool = True


COLUMNS: Final = (
    Column("session", lambda s: str(s["id"])[:ID_CHARS], 0, right=False),
    Column("name", lambda s: str(s.get("name") or "")[:TEXT_CHARS], 7, right=False),
    Column("tenant", lambda s: str(s["tenant"])[:TEXT_CHARS], 8, right=False),
    Column("state", lambda s: str(s["state"]), 1, right=False),
    Column("device", lambda s: str(s["device"]), 12, right=False),
    Column("age", lambda s: age_text(s["age_s"]), 6),
    Column("live", lambda s: _bytes(s, "live_bytes"), 2),
    Column("backward", lambda s: _bytes(s, "saved_bytes"), 9),
    Column("pooled", lambda s: _bytes(s, "pooled_bytes"), 11),
    Column("frames/s", lambda s: count_text(s["frames_per_second"]), 5),
    Column("ops/s", lambda s: count_text(s["ops_per_second"]), 3),
    Column("busy", lambda s: f"{100 * s['busy']:.0f}%", 4),
    Column("plans", lambda s: f"{100 * _planned(s):.0f}%" if s.get("frames") else "-", 10),
    Column("queued", lambda s: count_text(s["pending_frames"]), 13),
    Column("errors", lambda s: count_text(s["errors"]), 14),
    Column("last error", error_text, 15, right=False),
)


class Order(StrEnum):
    """What sessions are sorted by."""

    MEMORY = "memory"
    BACKWARD = "backward"
    OPS = "ops"
    FRAMES = "frames"
    PLANS = "plans"
    AGE = "age"
    ERRORS = "errors"
    NAME = "name"


ORDERS: Final[dict[Order, tuple[str, Callable[[Session], Any], bool]]] = {
    Order.MEMORY: ("m", lambda s: _memory(s, "live_bytes"), True),
    Order.BACKWARD: ("b", lambda s: _memory(s, "saved_bytes"), True),
    Order.OPS: ("o", lambda s: s["ops_per_second"], True),
    Order.FRAMES: ("f", lambda s: s["frames_per_second"], True),
    Order.PLANS: ("p", _planned, True),
    Order.AGE: ("a", lambda s: s["age_s"], True),
    Order.ERRORS: ("e", lambda s: s["errors"], True),
    Order.NAME: ("n", lambda s: (s.get("name") or "", s["id"]), False),
}
"""The orders of rows: their key, what is compared, and whether the largest comes first."""


def ordered(sessions: Sequence[Session], order: Order, backwards: bool) -> list[Session]:
    """The sessions in an order; sessions that are equal in it stay where they are from second to second."""
    _, key, largest_first = ORDERS[order]
    by_id = sorted(sessions, key=lambda session: str(session["id"]))
    return sorted(by_id, key=key, reverse=largest_first != backwards)


def table(sessions: Sequence[Session], width: int, mine_only: bool) -> list[Text]:
    """The head and a line for each session, no wider than the terminal. ``mine_only``: all are of one tenant, whose
    name would be the same in each row."""
    columns = [each for each in COLUMNS if not (mine_only and each.head == "tenant")]
    cells = {each.head: [plain(each.text(session)).replace("\n", " ") for session in sessions] for each in columns}
    # A column in which nobody has anything says nothing.
    columns = [each for each in columns if each.rank == 0 or not sessions or any(cells[each.head])]
    widths = {each.head: max(map(cell_len, [each.head, *cells[each.head]])) for each in columns}
    if "last error" in widths:
        widths["last error"] = min(widths["last error"], max(SMALLEST_ERROR, len("last error")))
    while len(columns) > 1 and _total(columns, widths) > width:
        columns.remove(max(columns, key=lambda each: each.rank))
    if columns[-1].head == "last error":  # takes the rest
        widths["last error"] = width - _total(columns[:-1], widths) - len(GAP)
    head = Text(_line(columns, widths, [each.head for each in columns])[:width].rstrip(), "bold")
    lines = [head]
    for row, session in enumerate(sessions):
        text = _line(columns, widths, [cells[each.head][row] for each in columns])
        lines.append(Text(set_cell_size(text, width).rstrip(), STYLES.get(str(session["state"]), "")))
    return lines


def _total(columns: Sequence[Column], widths: dict[str, int]) -> int:
    return sum(widths[each.head] for each in columns) + len(GAP) * (len(columns) - 1)


def _line(columns: Sequence[Column], widths: dict[str, int], cells: Sequence[str]) -> str:
    parts = []
    for column, cell in zip(columns, cells, strict=True):
        room = widths[column.head] - cell_len(cell)
        fits = cell if room >= 0 else set_cell_size(cell, widths[column.head])
        parts.append(" " * room + fits if column.right else fits + " " * room)
    return GAP.join(parts)
