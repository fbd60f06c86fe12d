"""Pieces of HTML that notebooks show: cards, tables and what folds.

They take the notebook's colours, so that they can be read in light and dark ones, and need nothing from elsewhere:
no script, no font, no style sheet. Every text is escaped here, once; arguments named ``inner`` are HTML already.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

_FAINT: Final = "opacity:.72"
_LINE: Final = "rgba(128,128,128,.4)"
STYLE: Final = (
    "<style>"
    f".gradwire-card{{display:inline-block;max-width:100%;box-sizing:border-box;padding:.55em .8em;margin:.2em 0;"
    f"border:1px solid {_LINE};border-radius:6px;font-size:13px;line-height:1.45;overflow-x:auto;color:inherit}}"
    ".gradwire-card pre,.gradwire-card .gradwire-code{"
    "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "font-size:12px;color:inherit;background:none;padding:0;margin:0;border:0}"
    ".gradwire-card pre{line-height:1.35;white-space:pre;overflow:auto;max-height:26em}"
    f".gradwire-faint{{{_FAINT}}}"
    ".gradwire-card table.gradwire-table{border-collapse:collapse;margin:.35em 0 0;font-size:12px;border:0}"
    f".gradwire-card .gradwire-table th,.gradwire-card .gradwire-table td{{padding:.15em .7em .15em 0;border:0;"
    f"border-bottom:1px solid rgba(128,128,128,.22);text-align:left;vertical-align:top;background:none;color:inherit;"
    "white-space:nowrap}"
    ".gradwire-card .gradwire-table th{font-weight:600}"
    ".gradwire-card .gradwire-table tbody tr:nth-child(n){background:none}"
    ".gradwire-card .gradwire-table .gradwire-number{text-align:right;font-variant-numeric:tabular-nums}"
    ".gradwire-card .gradwire-table .gradwire-wide{white-space:normal;min-width:14em}"
    ".gradwire-card details{margin:.1em 0 .1em .2em}.gradwire-card details details{margin-left:1.2em}"
    ".gradwire-card summary{cursor:pointer}"
    ".gradwire-leaf{margin:.1em 0 .1em 1.25em}.gradwire-leaf .gradwire-leaf{margin-left:2.1em}"
    ".gradwire-tag{display:inline-block;padding:0 .45em;margin-left:.4em;border:1px solid rgba(128,128,128,.45);"
    "border-radius:9px;font-size:11px}"
    ".gradwire-words{margin-top:.45em}"
    ".gradwire-alarm{background:rgba(226,76,62,.24);border-radius:3px;padding:0 .3em;font-weight:600}"
    ".gradwire-row{display:flex;flex-wrap:wrap;gap:.4em 1.6em;align-items:flex-start;margin-top:.4em}"
    f".gradwire-bar{{position:relative;width:16em;height:.75em;border:1px solid {_LINE};border-radius:3px;"
    "overflow:hidden;margin-top:.25em}"
    ".gradwire-bar i{position:absolute;left:0;top:0;bottom:0;background:rgba(66,133,214,.75)}"
    ".gradwire-card img,.gradwire-card svg{max-width:100%}"
    "</style>"
)
"""The classes of every piece. Each output carries them, since each may be shown alone."""

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(value: object, most: int = 0) -> str:
    """A text as HTML, cut to so many characters where ``most`` says so."""
    written = str(value)
    if most and len(written) > most:
        written = written[: most - 1] + "…"
    return html.escape(_FORBIDDEN.sub("\ufffd", written))


def code(value: object, most: int = 0) -> str:
    """A text in the font of programs."""
    return f'<code class="gradwire-code">{text(value, most)}</code>'


def faint(value: object) -> str:
    """A text that stands back."""
    return f'<span class="gradwire-faint">{text(value)}</span>'


def alarm(value: object) -> str:
    """A text that stands out."""
    return f'<span class="gradwire-alarm">{text(value)}</span>'


def tag(value: object) -> str:
    """A short word in a frame of its own."""
    return f'<span class="gradwire-tag">{text(value)}</span>'


def preformatted(value: object) -> str:
    """A text with its line ends and blanks."""
    return f"<pre>{text(value)}</pre>"


def card(title: str, about: Sequence[str], *inner: str) -> str:
    """A whole output: a line of a title and facts, and pieces below it."""
    facts = "".join(f" · {fact}" for fact in about)
    head = f"<div><b>{text(title)}</b>{facts}</div>" if title or facts else ""
    return f'<div class="gradwire-card">{STYLE}{head}{"".join(inner)}</div>'


def row(*inner: str) -> str:
    """Pieces beside each other, and below each other where that is too wide."""
    return f'<div class="gradwire-row">{"".join(f"<div>{piece}</div>" for piece in inner)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = (), wide: int = -1) -> str:
    """A table of cells that are HTML.

    Args:
        head: the titles of the columns, as text; without any, the table has no head.
        rows: its rows.
        numbers: the columns that are numbers, which stand to the right.
        wide: the column whose text may have several lines.
    """

    def kind(at: int) -> str:
        return ' class="gradwire-number"' if at in numbers else ' class="gradwire-wide"' if at == wide else ""

    titles = "".join(f"<th{kind(at)}>{text(title)}</th>" for at, title in enumerate(head))
    body = "".join(
        f"<tr>{''.join(f'<td{kind(at)}>{cell}</td>' for at, cell in enumerate(cells))}</tr>" for cells in rows
    )
    top = f"<thead><tr>{titles}</tr></thead>" if head else ""
    return f'<table class="gradwire-table">{top}<tbody>{body}</tbody></table>'


def fold(summary: str, inner: str, opened: bool = False) -> str:
    """A line of HTML that more of it folds out of."""
    return f"<details{' open' * opened}><summary>{summary}</summary>{inner}</details>"


def leaf(inner: str) -> str:
    """A line below one that folds."""
    return f'<div class="gradwire-leaf">{inner}</div>'


def bar(part: float, label: str) -> str:
    """How much of something is used: a bar that is filled to a part between 0 and 1, and what it says."""
    filled = 100 * min(max(part, 0.0), 1.0)
    return (
        f'<div class="gradwire-bar" role="img" aria-label="{text(label)}" title="{text(label)}">'
        f'<i style="width:{filled:.1f}%"></i></div>'
    )


def definitions(facts: Iterable[tuple[str, Any]]) -> str:
    """Names and values, a row each."""
    return table((), ((faint(name), text(value)) for name, value in facts))
