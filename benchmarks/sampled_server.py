"""A gradwire server that samples itself: SIGUSR1 begins, SIGUSR2 ends and writes the samples.

``python -m benchmarks.sampled_server FILE ARGUMENTS...``: FILE is the JSON output; the arguments are the server's. It
samples its threads, and its plans time each of their instructions.
"""

from __future__ import annotations

import json
import runpy
import signal
import sys
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Final

from gradwire_engine.plans import emitting
from gradwire_engine.plans.program import operands_of

from .sampling import Sampler

Key = tuple[str, str]


class Clock:
    """Times instructions of plans, with a line before and after each in the source of every plan.

    Attributes:
        taken: by name and shapes of what an instruction takes: how often it ran, nanoseconds in all, and at best.
    """

    def __init__(self) -> None:
        self.taken: dict[Key, list[int]] = {}
        self._keys: list[Key | None] = []
        self._names: list[str] = []

    def attach(self) -> None:
        """Time plans that are captured from now on."""
        plain = emitting.PlanEmitter.instruction

        def timed(emitter: Any, instruction: Any) -> None:
            number = len(self._names)
            self._names.append(_name(instruction))
            self._keys.append(None)
            emitter.names |= {"clock": perf_counter_ns, "took": self.took}
            emitter.line("began = clock()")
            plain(emitter, instruction)
            operands = "".join(f"a{value}, " for value in operands_of(instruction) if value in emitter._loaded)
            emitter.line(f"took({number}, began, ({operands}))")

        emitting.PlanEmitter.instruction = timed  # type: ignore[assignment, method-assign]

    def took(self, number: int, began: int, operands: tuple[Any, ...]) -> None:
        """Count an instruction that began at this time and ended now."""
        ended = perf_counter_ns()
        key = self._keys[number]
        if key is None:
            shapes = ", ".join("x".join(map(str, getattr(each, "shape", ()))) or "scalar" for each in operands)
            key = self._keys[number] = (self._names[number], shapes)
        found = self.taken.get(key)
        if found is None:
            found = self.taken.setdefault(key, [0, 0, 1 << 62])
        found[0] += 1
        found[1] += ended - began
        found[2] = min(found[2], ended - began)


def _name(instruction: Any) -> str:
    kind = type(instruction).__name__.lower()
    name = getattr(instruction, "name", "")
    compiled = getattr(instruction, "compiled", None) is not None
    return f"{name or kind}{' (compiled where it applies)' if compiled else ''}"


CLOCK: Final = Clock()


def main(path: str) -> None:
    """Serve, with a sampler that waits for signals."""
    sampler = Sampler()

    def begin(*_: object) -> None:
        CLOCK.taken.clear()
        sampler.start()

    def end(*_: object) -> None:
        look = sampler.stop()
        data = {
            "look_s": look, "stacks": [[count, stack] for stack, count in sampler.stacks.items()],
            "instructions": [[*key, *found] for key, found in CLOCK.taken.items()],
        }  # fmt: skip
        written = Path(path + ".part")
        written.write_text(json.dumps(data))
        written.rename(path)

    CLOCK.attach()
    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    runpy.run_module("gradwire_server", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    file = sys.argv.pop(1)
    main(file)
