"""Which lines of a program wait for the server, how long, and what they could do instead.

Counted always: a program that is slow over a network is slow because of a few lines, and this names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from time import perf_counter_ns
from typing import Any, Final

from gradwire_protocol.quantities import spell_seconds

from ..context.call_sites import near_file, place_of, spell_place, user_call

LINES_KEPT: Final = 10_000
"""Lines that are counted apart. A program that makes more of them by ``exec`` has the rest counted together."""

TOGETHER: Final = "keep the tensors in a list and read them at once: gradwire.fetch(*losses)"
DECIDE: Final = "let the server decide: torch.where, a mask, or a test every n-th step"
SHAPE: Final = "the shape depends on data: a mask with where() keeps it fixed, and nothing has to be asked"
OTHERWISE: Final = (
    "it needs a value or a shape that only the server knows: several values are one round trip with gradwire.fetch, "
    "and masks with where() keep shapes fixed"
)
HINTS: Final = {
    "item": TOGETHER, "tolist": TOGETHER, "numpy": TOGETHER, "__array__": TOGETHER, "__float__": TOGETHER,
    "__int__": TOGETHER, "__complex__": TOGETHER, "__index__": TOGETHER, "__format__": TOGETHER,
    "__repr__": "print less often, or print numbers that gradwire.fetch brought together",
    **dict.fromkeys(("_repr_mimebundle_", "_repr_html_"), "a display of a tensor is one round trip"),
    "__bool__": DECIDE, "__contains__": DECIDE, "equal": DECIDE, "allclose": DECIDE, "is_nonzero": DECIDE,
    "shape": SHAPE, "size": SHAPE, "numel": SHAPE, "dim": SHAPE, "ndim": SHAPE, "__len__": SHAPE,
    "__iter__": SHAPE,
    "synchronize": "nothing has to be waited for: a value waits for what it depends on when it is read",
    "fetch": "one round trip for all of them already; fetch less often",
    "memory": "ask for it less often",
    "grad": "whether there is a gradient is asked of the server after backward(inputs=...) of another client",
}  # fmt: skip
SPELLED: Final = {
    "__repr__": "print() or repr()", "__format__": "an f-string or format()", "__bool__": "if, while or bool()",
    "__float__": "float()", "__int__": "int()", "__complex__": "complex()", "__index__": "an index",
    "__array__": "a NumPy function", "__contains__": "in", "__len__": "len()", "__iter__": "iteration",
    "shape": ".shape", "ndim": ".ndim", "grad": ".grad",
    **dict.fromkeys(("_repr_mimebundle_", "_repr_html_"), "a notebook's display"),
}  # fmt: skip
"""What a program wrote where the method has another name."""

BACKPRESSURE: Final = "backpressure"
"""What a line is said to wait for when so many frames are under way that recording has to pause."""
PROFILE: Final = "profiler"
"""What a line is said to wait for that asks a profile for its results, while replies are on their way."""
NO_ROUND_TRIPS: Final = (BACKPRESSURE, PROFILE)
HINTS[PROFILE] = "the profiler's own wait for times that are on their way: ask for results after the loop"
HINTS[BACKPRESSURE] = "the program is ahead of the server by as many frames as may be: the server is what takes time"

OTHERS: Final = (None, 0, "others")
Key = tuple[Any, int, str]


class Waits:
    """The waits of one session, by line."""

    __slots__ = ("lines", "watching")

    def __init__(self) -> None:
        self.lines: dict[Key, list[int]] = {}
        self.watching: Callable[[Key, int, int, int], None] | None = None
        """Told of each wait, while somebody profiles: line, begin, end, and the number of the frame waited for."""

    def note(self, began: int, answer: Any = None, what: str | None = None) -> None:
        """Count a wait of the caller's that began then and ends now, for this answer, if it was for one."""
        ended = perf_counter_ns()
        key = user_call()
        if what is not None:
            key = (key[0], key[1], what)
        found = self.lines.get(key)
        if found is None:
            if len(self.lines) >= LINES_KEPT:
                key = OTHERS
            found = self.lines.setdefault(key, [0, 0, 0, 0, 0])
        waited = ended - began
        found[0] += 1
        found[1] += waited
        if waited > found[2]:
            found[2] = waited
        seq = 0
        if answer is not None:
            reply = answer.reply
            seq = reply.seq
            timing = reply.timing
            if timing is not None:
                found[3] += min(waited, (timing.committed or timing.finished) - timing.received)
            for buffer in answer.buffers:
                found[4] += buffer.nbytes
        if self.watching is not None:
            self.watching(key, began, ended, seq)

    def copy(self) -> dict[Key, list[int]]:
        """What was counted so far."""
        return {key: list(found) for key, found in list(self.lines.items())}


@dataclass(frozen=True)
class WaitingLine:
    """A line that waited. Times in seconds.

    Attributes:
        file, line, source: where it is, and what stands there; a notebook's cell is the file ``cell 3``.
        what: what it called: ``item``, ``print() or repr()``, ``.shape``; ``backpressure`` where it was recording, and
            ``profiler`` where it asked a profile for results, neither of which is a round trip.
        count: how often it waited.
        waited, longest: in all, and the longest time.
        server: the part of ``waited`` in which the server had the frame: waiting for earlier frames, computing,
            writing its journal. The rest is the network's and the client's.
        received: bytes of the values.
        hint: what it could do instead.
    """

    file: str
    line: int
    source: str
    what: str
    count: int
    waited: float
    longest: float
    server: float
    received: int
    hint: str

    @property
    def mean(self) -> float:
        """Seconds of one wait."""
        return self.waited / self.count


COLUMNS: Final = ("waits", "total", "mean", "server", "bytes")
WIDE_ONLY: Final = ("mean", "bytes")
NARROW: Final = 100
"""Terminals of fewer columns get a table without some, so that lines and hints stay readable."""


class Report:
    """Lines that waited, those that waited longest first. Printing it gives a table."""

    def __init__(self, lines: Iterable[WaitingLine]) -> None:
        self.lines: list[WaitingLine] = sorted(lines, key=lambda line: -line.waited)

    @property
    def count(self) -> int:
        """Waits for values: the round trips."""
        return sum(line.count for line in self.lines if line.what not in NO_ROUND_TRIPS)

    @property
    def waited(self) -> float:
        """Seconds in all."""
        return sum(line.waited for line in self.lines)

    def __iter__(self) -> Any:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def table(self, most: int = 20, narrow: bool = False) -> Any:
        """A ``rich`` table of the lines that waited longest; a narrow one has neither means nor bytes."""
        from rich.markup import escape
        from rich.table import Table

        title = f"{self.count} round trip{'s' * (self.count != 1)}, {self.waited:.3f} s of waiting"
        if len(self.lines) > most:
            title += f" (the {most} longest of {len(self.lines)} lines)"
        table = Table(title=title, title_justify="left", show_lines=True)
        table.add_column("line", overflow="fold")
        shown = [name for name in COLUMNS if not (narrow and name in WIDE_ONLY)]
        for name in shown:
            table.add_column(name, justify="right", no_wrap=True)
        longest = max((len(word) for line in self.lines[:most] for word in line.hint.split()), default=0)
        table.add_column("instead", overflow="fold", min_width=longest)  # a call in it is for copying
        for line in self.lines[:most]:
            cells = {
                "waits": str(line.count), "total": spell_seconds(line.waited), "mean": spell_seconds(line.mean),
                "server": f"{100 * line.server / line.waited:.0f} %" if line.waited else "",
                "bytes": f"{line.received:,}",
            }  # fmt: skip
            place = f"[bold]{escape(spell_place(near_file(line.file), line.line))}[/bold]"
            table.add_row(
                f"{place}\n{escape(line.source)}\n[dim]{escape(line.what)}[/dim]",
                *(cells[name] for name in shown),
                escape(line.hint),
            )
        return table

    def __str__(self) -> str:
        from shutil import get_terminal_size

        return self.text(get_terminal_size((120, 24)).columns)

    def text(self, columns: int = 120) -> str:
        """The table as text without colors, for a terminal of so many columns (80 at least)."""
        from io import StringIO

        from rich.console import Console

        written = StringIO()
        table = self.table(narrow=columns < NARROW)
        Console(file=written, width=max(columns, 80), color_system=None).print(table)
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())

    def _repr_html_(self) -> str:
        from .report_html import report_html

        return report_html(self)

    def __repr__(self) -> str:
        return f"<{self.count} round trips on {len(self.lines)} lines, {self.waited:.3f} s>"


def report(counted: Iterable[dict[Key, list[int]]]) -> Report:
    """The report of what one or several sessions have counted."""
    together: dict[tuple[str, int, str, str], list[int]] = {}
    for lines in counted:
        for (code, instruction, what), found in lines.items():
            file, number, source = ("", 0, "") if code is None else place_of((code, instruction))
            total = together.setdefault((file, number, source, what), [0, 0, 0, 0, 0])
            for i in (0, 1, 3, 4):
                total[i] += found[i]
            total[2] = max(total[2], found[2])
    return Report(
        WaitingLine(
            file, number, source, SPELLED.get(what, what), count, waited * 1e-9, longest * 1e-9, server * 1e-9,
            received, HINTS.get(what, OTHERWISE),
        )
        for (file, number, source, what), (count, waited, longest, server, received) in sorted(
            together.items(), key=itemgetter(0)
        )
    )  # fmt: skip


def since(before: dict[Key, list[int]], now: dict[Key, list[int]]) -> dict[Key, list[int]]:
    """What was counted between two copies. The longest wait is that of the whole time."""
    found = {}
    for key, values in now.items():
        earlier = before.get(key, (0, 0, 0, 0, 0))
        if values[0] > earlier[0]:
            found[key] = [v - earlier[i] if i != 2 else v for i, v in enumerate(values)]
    return found
