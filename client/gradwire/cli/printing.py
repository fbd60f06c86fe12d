"""How commands print: tables that fit the terminal, and JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

NARROW: Final = 100
"""Below this width tables have no frame, which takes three characters a column."""


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
    """Print a table that fits the terminal: cells fold. ``whole`` names columns that are never folded while there is
    room, such as ids, which are copied."""
    console = Console()
    narrow = console.width < NARROW
    table = Table(
        *(Column(name, overflow="fold", no_wrap=name in whole) for name in columns),
        box=None if narrow else box.HEAVY_HEAD, pad_edge=not narrow, padding=(0, 2, 0, 0) if narrow else (0, 1),
        header_style="bold",
    )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(plain(str(cell))) for cell in row))
    console.print(table)
