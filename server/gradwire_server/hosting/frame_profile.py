"""A profile of a running session: the time of its frames by op and by node of backward.

Frames run as those of a program that profiles itself (``detailed``): op by op, without a plan, with the same values.
The program sees nothing of it but the time that this takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from gradwire_protocol.frames import Frame, Reply, Structure

from ..observability.metrics import first_ops

MAX_STRUCTURES: Final = 200
"""Different frames with a branch of their own; the time of all others is one branch."""

OTHERS: Final = "other frames"


@dataclass
class _Branch:
    """A branch of the flame: nanoseconds, and how often it ran."""

    ns: int = 0
    count: int = 0
    below: dict[str, _Branch] = field(default_factory=dict)

    def add(self, name: str, ns: int) -> _Branch:
        """Count a part of this branch."""
        found = self.below.get(name)
        if found is None:
            found = self.below[name] = _Branch()
        found.ns += ns
        found.count += 1
        return found

    def describe(self, name: str) -> dict[str, Any]:
        """The branch as plain data, the longest part first."""
        parts = sorted(self.below.items(), key=lambda item: -item[1].ns)
        return {
            "name": name, "ns": self.ns, "count": self.count,
            "below": [branch.describe(part) for part, branch in parts],
        }  # fmt: skip


class FrameProfile:
    """Collects the times of frames. One thread at a time."""

    def __init__(self) -> None:
        self._root = _Branch()

    def ask(self, frame: Frame) -> tuple[bool, bool]:
        """Have a frame measure itself. Returns what its program asked for, for :meth:`take`."""
        asked = frame.timed, frame.detailed
        frame.timed = frame.detailed = True
        return asked

    def take(self, frame: Frame, asked: tuple[bool, bool], structure: Structure | None, reply: Reply) -> None:
        """Take the times out of a reply, except for those that the program asked for."""
        frame.timed, frame.detailed = asked
        timing = reply.timing
        if timing is None:
            return
        if structure is not None and reply.refused is None:
            name = first_ops(structure) or "without ops"
            if name not in self._root.below and len(self._root.below) >= MAX_STRUCTURES:
                name = OTHERS
            took = timing.finished - timing.started
            self._root.ns += took
            self._root.count += 1
            branch = self._root.add(name, took)
            ops: list[_Branch] = []
            for record, started, ended in zip(structure.ops, timing.ops[::2], timing.ops[1::2]):
                ops.append(branch.add(str(record[0])[:100], ended - started))
            for index, node, _, started, ended in timing.nodes:
                if index < len(ops):
                    ops[index].add(node, ended - started)
        if not asked[0]:
            reply.timing = None
        elif not asked[1]:
            timing.ops, timing.memory, timing.nodes = [], [], []

    def describe(self) -> dict[str, Any]:
        """The flame: branches with ``name``, ``ns``, ``count`` and the branches ``below``."""
        return self._root.describe("all frames")
