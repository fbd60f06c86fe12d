"""How commands print: tables that fit the terminal, and JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

READABLE: Final = 12
"""The narrowest column in which folded text can be read."""
GAP: Final = 2
FRAME: Final = 3
"""What a column takes beside its text, without and with a frame."""


def plain(text: str) -> str:
    """A server's text without characters that would move the cursor or change colours."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in text)


def print_json(data: Any) -> None:
    """Print JSON, with colours on a terminal."""
    if sys.stdout.isatty():
        Console().print_json(data=data)
    else:
        typer.echo(json.dumps(data, indent=2))


def print_text(text: str) -> None:
    """Print a sentence, in lines that fit the terminal."""
    Console().print(Text(plain(text)))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], whole: Sequence[str] = ()) -> None:
    """Print a table that fits the terminal: cells fold. The frame goes first where there is little room; where columns
    would be too narrow to read, each row becomes a paragraph, under its first cell.

    Args:
        whole: columns that are never folded, such as ids, which are copied.
    """
    console = Console()
    cells = [[plain(str(cell)) for cell in row] for row in rows]
    least = 0
    for at, name in enumerate(columns):
        longest = max((cell_len(row[at]) for row in cells), default=0)
        least += max(cell_len(name), longest if name in whole else min(longest, READABLE))
    framed = least + FRAME * len(columns) + 1 <= console.width
    if not framed and least + GAP * (len(columns) - 1) > console.width:
        for row in cells:
            console.print(_paragraph(columns, row))
        return
    table = Table(
        *(Column(name, overflow="fold", no_wrap=name in whole) for name in columns),
        box=box.HEAVY_HEAD if framed else None, pad_edge=framed, padding=(0, 1) if framed else (0, GAP, 0, 0),
        header_style="bold",
    )  # fmt: skip
    for row in cells:
        table.add_row(*map(Text, row))
    console.print(table)


def _paragraph(columns: Sequence[str], row: Sequence[str]) -> Group:
    lines = Table.grid(padding=(0, GAP, 0, 0))
    lines.add_column(no_wrap=True)
    lines.add_column(overflow="fold")
    for name, cell in zip(columns[1:], row[1:], strict=True):
        if cell:
            lines.add_row(Text(f"  {name}"), Text(cell))
    return Group(Text(row[0], "bold"), lines)
