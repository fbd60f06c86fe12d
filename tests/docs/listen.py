"""Runs a program and records what each line prints: ``python listen.py PROGRAM NOTES``."""

from __future__ import annotations

import builtins
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any


def main(program: str, notes: str) -> None:
    """Run the program; the notes are a list of [line, text] in JSON."""
    heard: list[tuple[int, str]] = []
    really_print = builtins.print

    def noting_print(*values: Any, **options: Any) -> None:
        text = io.StringIO()
        really_print(*values, **{**options, "file": text})
        heard.append((sys._getframe(1).f_lineno, text.getvalue()))
        really_print(*values, **options)

    builtins.print = noting_print
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        builtins.print = really_print
        Path(notes).write_text(json.dumps(heard), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
