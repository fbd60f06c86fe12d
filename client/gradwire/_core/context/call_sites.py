"""Which line of the program an operation comes from."""

from __future__ import annotations

import linecache
import re
import sys
from collections import OrderedDict, deque
from pathlib import Path
from types import FrameType
from typing import Any, Final

from gradwire_protocol.frames import SEQS, place_of_position

PACKAGE: Final = str(Path(__file__).parents[2])


class _Inside(dict[str, bool]):
    """Whether a file is one of gradwire's. By name: the hash of a code object is worked out anew each time."""

    beginnings: tuple[str, ...] = (PACKAGE,)

    def __missing__(self, name: str) -> bool:
        found = self[name] = name.startswith(self.beginnings)
        return found


INSIDE: Final = _Inside()


def count_as_inside(*beginnings: str) -> None:
    """Take files whose names begin so for gradwire's own: those of a library that records for the program."""
    INSIDE.beginnings += beginnings
    INSIDE.clear()


def count_notebook_as_inside() -> None:
    """Take the frames of a notebook's kernel, if there is one, for gradwire's own: what a display reads is read by the
    cell's line."""
    if "IPython" not in sys.modules or _notebook:
        return
    files = [Path(str(sys.modules[name].__file__)) for name in _KERNEL if name in sys.modules]
    _notebook.extend(str(file.parent if file.stem == "__init__" else file) for file in files)
    count_as_inside(*_notebook)


_KERNEL: Final = ("IPython", "ipykernel", "traitlets", "decorator")
_notebook: list[str] = []

Line = tuple[Any, int]
"""A code object and an instruction in it: cheap to note, and spelled out when it is needed."""

LINES_KEPT: Final = 100_000
"""Records whose lines a session remembers after it sent them: those of graphs that are alive, as a rule."""
FRAMES_KEPT: Final = 4096
LIKE_BEFORE: Final = 8
"""In a loop a frame is like one of the last few; the same list then serves both."""


class RecentLines:
    """The lines of the frames that a client sent last, for nodes of the graph, which know their records' positions."""

    def __init__(self, client: int) -> None:
        self._client = client
        self._frames: OrderedDict[int, list[Line | None]] = OrderedDict()
        self._count = 0
        self._latest: deque[list[Line | None]] = deque(maxlen=LIKE_BEFORE)

    def keep(self, seq: int, lines: list[Line | None]) -> None:
        """Remember the lines of a frame, and forget those of the oldest frames where they are too many."""
        if not lines:
            return
        for known in list(self._latest):  # a signal's handler may keep some meanwhile
            if known == lines:
                break
        else:
            known = lines
            self._latest.append(lines)
        self._frames[seq % SEQS] = known
        self._count += len(lines)
        while len(self._frames) > FRAMES_KEPT or (self._count > LINES_KEPT and len(self._frames) > 1):
            self._count -= len(self._frames.popitem(last=False)[1])

    def at(self, position: int) -> Line | None:
        """The line of the record at this position (``gradwire_protocol.frames.position_of``), if it is remembered."""
        client, seq, index = place_of_position(position)
        lines = self._frames.get(seq) if client == self._client else None
        return lines[index] if lines is not None and index < len(lines) else None


def user_line() -> Line:
    """The innermost line outside of gradwire."""
    frame: FrameType = sys._getframe(1)
    while True:
        code = frame.f_code
        if not INSIDE[code.co_filename]:
            return code, frame.f_lasti
        before = frame.f_back
        if before is None:
            return code, frame.f_lasti
        frame = before


def user_call() -> tuple[Any, int, str]:
    """The innermost line outside of gradwire, as :data:`Line`, and the name of what it called there."""
    frame = sys._getframe(1)
    name = frame.f_code.co_name
    while True:
        code = frame.f_code
        if not INSIDE[code.co_filename] or frame.f_back is None:
            return code, frame.f_lasti, name
        if not code.co_filename.startswith(tuple(_notebook)):
            name = _called(frame, name) if code.co_name == "function" else code.co_name
        frame = frame.f_back


def _called(frame: FrameType, before: str) -> str:
    """The name of what a frame runs whose code is a ``function``. Those made for ops of the table are all called so:
    they have the op's name, and what only wraps one has that of the call ``before``."""
    op = frame.f_locals.get("op")
    return before if op is None else str(op.name)


def user_stack(most: int = 64) -> list[str]:
    """The lines outside of gradwire that are being run, the innermost first, as ``file(line): function``."""
    frame: FrameType | None = sys._getframe(1)
    found: list[str] = []
    while frame is not None and len(found) < most:
        code = frame.f_code
        if not INSIDE[code.co_filename]:
            found.append(spell_call(shown_file(code.co_filename), frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found


def place_of(line: Line) -> tuple[str, int, str]:
    """The file or the notebook's cell, the number of the line in it, and what stands there (empty where the file cannot
    be read)."""
    name, number = _place(line)
    return shown_file(name), number, linecache.getline(name, number).strip()


def user_depth() -> int:
    """The ``stacklevel`` with which the caller's warning names the innermost line outside of gradwire."""
    frame = sys._getframe(1)
    depth = 1
    while frame.f_back is not None and INSIDE[frame.f_code.co_filename]:
        frame = frame.f_back
        depth += 1
    return depth


_CELL: Final = re.compile(r"cell \d+")
_OLD_CELL: Final = re.compile(r"ipython-input-(\d+)-")
"""In the names of older IPythons and of Colab, which number their cells themselves."""


def shown_file(name: str) -> str:
    """A file's name for people: that of a notebook's cell is ``cell 3``, by the number it was last run with."""
    if "IPython" not in sys.modules:
        return name
    running = running_ipython()
    describe = getattr(getattr(running, "compile", None), "format_code_name", None)
    described = describe(name) if describe is not None else None
    number = _OLD_CELL.search(name) if described is None else re.search(r"(\d+)", described[1])
    return name if number is None else f"cell {number[1]}"


def near_file(file: str) -> str:
    """A path as one reads it: from the working directory, where it is below that."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def running_ipython() -> Any:
    """The shell of IPython that this process runs, a notebook's kernel for instance; ``None`` without one."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if find is None else find()


def spell_place(file: str, number: int) -> str:
    """``file:line``, or ``cell 3, line 2``, of what :func:`place_of` and :func:`shown_file` name."""
    return f"{file}, line {number}" if _CELL.fullmatch(file) else f"{file}:{number}"


def spell_call(file: str, number: int, function: str) -> str:
    """A frame as PyTorch's profiler writes it, ``file(line): function``; for a cell, ``cell 3, line 2: function``."""
    return f"{file}, line {number}: {function}" if _CELL.fullmatch(file) else f"{file}({number}): {function}"


def spell_line(line: Line | None) -> str:
    """``file:line`` of what :func:`user_line` returned; ``cell 3, line 2`` in a notebook."""
    if line is None:
        return "an unknown line"
    name, number = _place(line)
    return spell_place(shown_file(name), number)


def quote_line(line: Line) -> str:
    """What :func:`spell_line` says, and below it what stands there, where the file can be read."""
    name, number, text = place_of(line)
    return spell_place(name, number) + (f"\n    {text}" if text else "")


def _place(line: Line) -> tuple[str, int]:
    code, instruction = line
    found = next(
        (number for start, end, number in code.co_lines() if start <= instruction < end and number is not None),
        code.co_firstlineno,
    )
    return code.co_filename, found
