"""The layout: totals, devices, queue and quotas above the sessions, a line of keys below."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ..printing import plain
from ..sizes import age_text, bytes_text, count_text
from .feed import Activity
from .rows import ID_CHARS, ORDERS, Order, error_text, ordered, table

QUOTAS_SHOWN: Final = 3
DEVICES_SHOWN: Final = 4
TIGHT: Final = 0.8
"""A share of a quota from which it is shown in yellow; from 1 on in red."""
KEYS: Final = "q quit   s sort   r reverse   up/down scroll   space pause   ? keys"
SHORT_KEYS: Final = "q quit  s sort  ? keys"
HELP: Final = (
    ("q, Esc, Ctrl-C", "quit"),
    *((key, f"sort by {name}") for name, (key, _, _) in ORDERS.items()),
    ("s", "the next order"),
    ("r", "reverse the order"),
    ("up, down, PgUp, PgDn, Home", "scroll"),
    ("space", "pause"),
    ("?", "close this page"),
)


@dataclass
class View:
    """What the user chose.

    Attributes:
        top: the first row shown.
        helping: the keys are shown instead of the sessions.
    """

    order: Order = Order.MEMORY
    backwards: bool = False
    top: int = 0
    paused: bool = False
    helping: bool = False


def whole(activity: Activity, url: str, view: View, width: int) -> list[Text]:
    """Everything, however long, for a pipe."""
    sessions = ordered(activity["sessions"], view.order, view.backwards)
    return [*summary(activity, url, width), Text(), *table(sessions, width, not activity["caller"]["all"])]


def screen(activity: Activity | None, trouble: str, url: str, view: View, width: int, height: int) -> list[Text]:
    """The lines of a terminal of this size; no more than ``height``, none wider than ``width``."""
    above = [Text(f"{plain(url)}: waiting for the server")] if activity is None else summary(activity, url, width)
    if trouble:
        above.insert(1, Text(plain(trouble), "bold red"))
    foot = _foot(view, width)
    room = height - len(foot)
    if view.helping:
        middle = [Text(f"{keys:<28}{what}") for keys, what in HELP]
    elif activity is None:
        middle = []
    else:
        room_for_rows = room - len(above) - 1
        if room_for_rows < 2:  # a very low terminal: the sessions matter more than the totals
            above = above[: max(1, room - 4)]
            room_for_rows = room - len(above)
        middle = _sessions(activity, view, width, room_for_rows)
    blank = [Text()] if len(above) + len(middle) < room else []
    lines = [*above, *blank, *middle][:room]
    lines += [Text()] * (room - len(lines))
    return [_cut(line, width) for line in (*lines, *foot)][:height]


def _sessions(activity: Activity, view: View, width: int, height: int) -> list[Text]:
    """The head and the rows from the first one shown. Only these are laid out: there may be thousands."""
    found = ordered(activity["sessions"], view.order, view.backwards)
    shown = max(0, height - 1)
    if len(found) > shown:
        shown = max(0, shown - 1)  # a line says how many there are
    view.top = max(0, min(view.top, len(found) - shown))
    lines = table(found[view.top : view.top + shown], width, not activity["caller"]["all"])
    if len(found) > shown:
        last = min(view.top + shown, len(found))
        lines.append(Text(f"{view.top + 1} to {last} of {len(found)} sessions", "dim"))
    return lines


def summary(activity: Activity, url: str, width: int) -> list[Text]:
    """The lines above the sessions."""
    totals, queue = activity["totals"], activity["queue"]
    frames = sum(session["frames"] for session in activity["sessions"])
    planned = sum(session["planned_frames"] for session in activity["sessions"])
    pieces = [f"gradwire {activity['version']}", url, f"up {age_text(activity['uptime_s'])}", _clock(activity["at"])]
    if activity["draining"]:
        pieces.append("STOPPING")
    lines = _wrapped("", pieces, width, "bold red" if activity["draining"] else "bold")
    scope = "" if activity["caller"]["all"] else f" of tenant {activity['caller']['tenant']}"
    lines += _wrapped(
        "sessions  ",
        [f"{totals['sessions']}{scope}", f"{totals['loaded']} loaded", f"{totals['busy']} busy",
         f"{totals['streams']} streams", f"{count_text(totals['errors'])} errors"],
        width,
    )  # fmt: skip
    lines += _wrapped(
        "rates     ",
        [f"{count_text(totals['frames_per_second'])} frames/s", f"{count_text(totals['ops_per_second'])} ops/s",
         f"plan hits {100 * planned / frames:.0f}%" if frames else "no frames yet"],
        width,
    )  # fmt: skip
    lines += _wrapped(
        "memory    ",
        [f"live {bytes_text(totals['live_bytes'])}", f"for backward {bytes_text(totals['saved_bytes'])}",
         f"pooled {bytes_text(totals['pooled_bytes'])}"],
        width,
    )  # fmt: skip
    lines += _wrapped("queue     ", _queue(queue), width, "yellow" if queue["waiting"] else "")
    if activity["workers"]:
        states: dict[str, int] = {}
        for worker in activity["workers"]:
            states[worker["state"]] = states.get(worker["state"], 0) + 1
        pieces = [f"{count} {state}" for state, count in sorted(states.items())]
        lines += _wrapped("workers   ", [str(len(activity["workers"])), *pieces], width)
    devices = [_device(each) for each in activity["devices"][:DEVICES_SHOWN]]
    if more := len(activity["devices"]) - DEVICES_SHOWN:
        devices += [f"{more} more"] if more > 0 else []
    lines += _wrapped("devices   ", devices, width)
    return [*lines, *_quotas(activity["quotas"], width), *_last_error(activity["sessions"], width)]


def _queue(queue: dict[str, Any]) -> list[str]:
    slots = f" of {queue['slots']}" if queue["slots"] is not None else ""
    pieces = [f"{queue['computing']}{slots} computing"]
    if queue["waiting"] is not None:
        pieces.append(f"{queue['waiting']} waiting")
    return [*pieces, f"{queue['pending_frames']} frames queued"]


def _device(row: dict[str, Any]) -> str:
    memory = f" {bytes_text(row['free_bytes'])} of {bytes_text(row['total_bytes'])} free" if row["total_bytes"] else ""
    model = "" if row["name"] == "cpu" else f" {str(row['model'])[:24]}"
    return f"{row['name']}{model}{memory}"


def _quotas(rows: list[dict[str, Any]], width: int) -> list[Text]:
    """The quotas that are used most."""
    limited = [row for row in rows if row["limit"]]
    limited.sort(key=lambda row: row["used"] / row["limit"], reverse=True)
    lines = []
    for at, row in enumerate(limited[:QUOTAS_SHOWN]):
        share = row["used"] / row["limit"]
        form = bytes_text if "bytes" in row["quota"] or "memory" in row["quota"] else count_text
        text = f"{row['name'] or row['key']} {row['quota']} {form(row['used'])} of {form(row['limit'])} ({share:.0%})"
        style = "red" if share >= 1 else "yellow" if share >= TIGHT else ""
        lines += _wrapped("quotas    " if not at else "          ", [text], width, style)
    return lines


def _last_error(sessions: list[dict[str, Any]], width: int) -> list[Text]:
    """The newest error of all sessions. A narrow table has no room for errors."""
    failed = [each for each in sessions if each.get("last_error")]
    if not failed:
        return []
    newest = max(failed, key=lambda each: str(each["last_error"].get("at", "")))
    when = _clock(str(newest["last_error"].get("at", "")))
    text = " ".join(part for part in (when, str(newest["id"])[:ID_CHARS], error_text(newest)) if part)
    return [_cut(Text(plain(f"error     {text}").replace("\n", " "), "yellow"), width)]


def _clock(text: str) -> str:
    """The time of a report, by the clock of this machine's zone."""
    try:
        return f"{datetime.fromisoformat(text.replace('Z', '+00:00')).astimezone():%H:%M:%S}"
    except ValueError:
        return ""


def _wrapped(label: str, pieces: list[str], width: int, style: str = "") -> list[Text]:
    """Pieces after a label, in as many lines as they need; no piece is broken unless it is wider than a line."""
    lines, line = [], label
    for piece in pieces:
        text = plain(piece).replace("\n", " ")
        if not text:
            continue
        joined = line + text if line.strip() in ("", label.strip()) else f"{line}, {text}"
        if cell_len(joined) > width and line.strip() not in ("", label.strip()):
            lines.append(line)
            joined = " " * len(label) + text
        line = joined
    return [_cut(Text(each, style), width) for each in (*lines, line)]


def _foot(view: View, width: int) -> list[Text]:
    order = f"by {view.order}{', reversed' if view.backwards else ''}{', PAUSED' if view.paused else ''}"
    keys = KEYS if len(KEYS) + len(order) + 3 <= width else SHORT_KEYS
    text = f"{keys}   {order}"
    return [Text(set_cell_size(text, width) if width > 0 else "", "reverse")]


def _cut(line: Text, width: int) -> Text:
    if cell_len(line.plain) <= width:
        return line
    return Text(set_cell_size(line.plain, max(0, width)), line.style)
