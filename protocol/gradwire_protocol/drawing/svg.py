"""A laid-out graph as SVG: no scripts, no references, colours for light and dark, every text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal
from unicodedata import combining, east_asian_width
from xml.sax.saxutils import escape

from .layout import Layout, Line, arrange

Theme = Literal["auto", "light", "dark"]
Kind = Literal["result", "parameter", "leaf", "saving", "plain", "custom", "freed", "omitted"]

FONT: Final = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
ADVANCE: Final = 0.605
"""The width of a character of these fonts, in font sizes."""
NAME_SIZE: Final = 13.0
SIZE: Final = 11.0
LEADING: Final = 16.0
PADDING: Final = (12.0, 9.0)
MARGIN: Final = 24.0
NARROWEST: Final = 72.0

KINDS: Final[dict[Kind, str]] = {
    "result": "result",
    "saving": "op that keeps memory",
    "plain": "op that keeps nothing",
    "custom": "Function of the program",
    "freed": "freed or checkpointed",
    "parameter": "parameter",
    "leaf": "other leaf",
    "omitted": "left out",
}
"""What the colours mean, in the order of the legend."""

_LIGHT: Final[dict[str, tuple[str, str]]] = {  # fill, stroke
    "result": ("#dcf3e3", "#2f8f56"),
    "saving": ("#fff0cf", "#c08a1e"),
    "plain": ("#f4f5f7", "#9aa3af"),
    "custom": ("#ece4fb", "#7d55c7"),
    "freed": ("#ffffff", "#a3a9b3"),
    "parameter": ("#dceafd", "#3a78c9"),
    "leaf": ("#d9f2f2", "#2b8c8f"),
    "omitted": ("#ffffff", "#a3a9b3"),
    "page": ("#ffffff", "#d9dde3"),
    "line": ("none", "#8a93a0"),
    "arrow": ("#8a93a0", "none"),
    "ink": ("#1c2128", "none"),
    "faint": ("#5b6572", "none"),
}
_DARK: Final[dict[str, tuple[str, str]]] = {
    "result": ("#173a26", "#4fb87b"),
    "saving": ("#42330f", "#d3a03a"),
    "plain": ("#262b33", "#717b89"),
    "custom": ("#33264f", "#a583ea"),
    "freed": ("#1a1e24", "#6b7480"),
    "parameter": ("#17304f", "#5f9ce8"),
    "leaf": ("#123a3b", "#4db7ba"),
    "omitted": ("#1a1e24", "#6b7480"),
    "page": ("#14171c", "#30363f"),
    "line": ("none", "#7d8794"),
    "arrow": ("#7d8794", "none"),
    "ink": ("#e8ebf0", "none"),
    "faint": ("#a2acb9", "none"),
}
_DASHED: Final = ("freed", "omitted")
_SUFFIX: Final = re.compile(r"Backward\d*$")
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Box:
    """A box of the drawing: its name, and smaller lines below it.

    Attributes:
        about: its tooltip.
    """

    kind: Kind
    name: str
    lines: list[str] = field(default_factory=list)
    about: str = ""


@dataclass(frozen=True)
class Joint:
    """An arrow from one box to another, with a label at its start."""

    source: int
    target: int
    word: str = ""


def render(boxes: list[Box], joints: list[Joint], heading: list[str], theme: Theme) -> str:
    """The drawing as an SVG document."""
    colours = _DARK if theme == "dark" else _LIGHT
    sizes = [_size(box) for box in boxes]
    layout = arrange(sizes, [(j.source, j.target) for j in joints])
    present = [kind for kind in KINDS if any(box.kind == kind for box in boxes)]
    key, key_width = _legend(present, colours)
    head = NAME_SIZE + LEADING * len(heading) + 12
    inner = max(layout.width, key_width, *(text_width(text, NAME_SIZE) for text in heading))
    width, height = inner + 2 * MARGIN, layout.height + head + LEADING + 30 + 2 * MARGIN
    body = [_rectangle("page", colours, 0.5, 0.5, width - 1, height - 1, 10)]
    for i, text in enumerate(heading):
        size, ink = (NAME_SIZE, "ink") if i == 0 else (SIZE, "faint")
        body.append(_text(text, MARGIN, MARGIN + NAME_SIZE + i * LEADING, size, ink, colours, bold=i == 0))
    left, top = MARGIN + (inner - layout.width) / 2, MARGIN + head
    body.append(f'<g transform="translate({_n(left)} {_n(top)})">')
    body += _lines(layout, joints, colours)
    for box, extent, corner in zip(boxes, sizes, layout.corners, strict=True):
        body += _box(box, extent, corner, colours)
    body.append("</g>")
    body.append(f'<g transform="translate({_n(MARGIN)} {_n(height - MARGIN - LEADING + 2)})">{key}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gradwire-graph" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" font-family="{FONT}" role="img">'
        f"<title>{_escaped(' '.join(heading))}</title>"
        + (_dark_rules() if theme == "auto" else "")
        + "\n".join(["", *body, "</svg>", ""])
    )


def text_width(text: str, size: float) -> float:
    """The approximate width of a text in a monospaced font of this size."""
    cells = sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
    return cells * size * ADVANCE


def shorten(text: str, most: int) -> str:
    """The text, shortened in the middle if it is longer than this."""
    if len(text) <= most:
        return text
    kept = most - 1
    return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


def _size(box: Box) -> tuple[float, float]:
    widest = max(
        text_width(box.name, NAME_SIZE) + 2, *(text_width(line, SIZE) for line in box.lines), NARROWEST - 2 * PADDING[0]
    )
    return round(widest + 2 * PADDING[0]), 2 * PADDING[1] + NAME_SIZE + LEADING * len(box.lines) + 1


def _box(
    box: Box, size: tuple[float, float], corner: tuple[float, float], colours: dict[str, tuple[str, str]]
) -> list[str]:
    (width, height), (x, y) = size, corner
    radius = {"result": height / 2, "parameter": 4, "leaf": 4}.get(box.kind, 8)
    middle = x + width / 2
    down = y + PADDING[1] + NAME_SIZE - 2.5
    parts = [
        f"<g><title>{_escaped(box.about or box.name)}</title>",
        _rectangle(box.kind, colours, x, y, width, height, min(radius, 16)),
    ]
    suffix = _SUFFIX.search(box.name) if box.kind not in ("result", "parameter", "leaf") else None
    if suffix is not None and suffix.start():
        # Both halves are anchored where they meet, so that they meet in any font.
        meet = middle + (text_width(box.name[: suffix.start()], NAME_SIZE) - text_width(suffix[0], NAME_SIZE)) / 2
        parts.append(_text(box.name[: suffix.start()], meet, down, NAME_SIZE, "ink", colours, anchor="end", bold=True))
        parts.append(_text(suffix[0], meet, down, NAME_SIZE, "faint", colours))
    else:
        parts.append(_text(box.name, middle, down, NAME_SIZE, "ink", colours, anchor="middle", bold=True))
    for i, line in enumerate(box.lines, 1):
        parts.append(_text(line, middle, down + i * LEADING, SIZE, "faint", colours, anchor="middle"))
    return [*parts, "</g>"]


def _lines(layout: Layout, joints: list[Joint], colours: dict[str, tuple[str, str]]) -> Iterable[str]:
    paths = []
    arrows = []
    for line in layout.lines:
        paths.append(_path(line))
        if line.target is not None:
            x, y = line.end
            arrows.append(f"M{_n(x)} {_n(y)}l-4 -8h8z")
    yield f'<path {_paint("line", colours)} stroke-width="1.3" d="{"".join(paths)}"/>'
    yield f'<path {_paint("arrow", colours)} d="{"".join(arrows)}"/>'
    words = {(j.source, j.target): j.word for j in joints if j.word}
    for line in layout.lines:
        word = words.get((line.source, line.toward)) if line.source is not None else None
        if word is not None:
            # Beside the start of the line, on the side that it does not turn to.
            right = line.end[0] <= line.start[0]
            x, y = line.start[0] + (5 if right else -5), line.start[1] + 13
            yield _text(word, x, y, SIZE, "faint", colours, anchor="start" if right else "end")


def _path(line: Line) -> str:
    (x0, y0), (x1, y1) = line.start, line.end
    # The arrowhead covers the end of its line.
    stop = y1 - 6 if line.target is not None else y1
    if abs(x0 - x1) < 0.5:
        way = f"M{_n(x0)} {_n(y0)}V{_n(stop)}"
    else:
        middle = (y0 + stop) / 2
        way = f"M{_n(x0)} {_n(y0)}C{_n(x0)} {_n(middle)} {_n(x1)} {_n(middle)} {_n(x1)} {_n(stop)}"
    return way if line.target is not None or line.down_to == y1 else f"{way}V{_n(line.down_to)}"


def _legend(kinds: list[Kind], colours: dict[str, tuple[str, str]]) -> tuple[str, float]:
    parts, x = [], 0.0
    for kind in kinds:
        parts.append(_rectangle(kind, colours, x + 0.5, 0.5, 16, 11, 5.5 if kind == "result" else 3))
        parts.append(_text(KINDS[kind], x + 23, 10, SIZE, "faint", colours))
        x += 23 + text_width(KINDS[kind], SIZE) + 20
    return "".join(parts), x - 20


def _rectangle(
    kind: str, colours: dict[str, tuple[str, str]], x: float, y: float, width: float, height: float, radius: float
) -> str:
    dashes = ' stroke-dasharray="4 3"' if kind in _DASHED else ""
    return (
        f'<rect {_paint(kind, colours)}{dashes} x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" '
        f'height="{_n(height)}" rx="{_n(radius)}"/>'
    )


def _text(
    text: str, x: float, y: float, size: float, ink: str, colours: dict[str, tuple[str, str]], *,
    anchor: Literal["start", "middle", "end"] = "start", bold: bool = False,
) -> str:  # fmt: skip
    anchored = f' text-anchor="{anchor}"' if anchor != "start" else ""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"{anchored}{weight} '
        f"{_paint(ink, colours)}>{_escaped(text)}</text>"
    )


def _paint(kind: str, colours: dict[str, tuple[str, str]]) -> str:
    """The class, and the colours as attributes for viewers without style sheets."""
    fill, stroke = colours[kind]
    return f'class="{kind}" fill="{fill}" stroke="{stroke}"'


def _dark_rules() -> str:
    rules = "".join(f".gradwire-graph .{kind}{{fill:{fill};stroke:{stroke}}}" for kind, (fill, stroke) in _DARK.items())
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


def _escaped(text: str) -> str:
    """The text for XML: escaped, without invalid characters."""
    return escape(_FORBIDDEN.sub("�", text), {'"': "&quot;"})


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
