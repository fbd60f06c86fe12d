"""A step with a distant server: its number of round trips, and its rate without reads.

A relay (``delay.py``) adds latency to the server. There are two kinds of steps:

* A step reads one value, as in a loop with ``loss.item()``. The minimum is one round trip and the server's work. The
  figure is in round trips: the step's time without the server's time for the awaited frame (by the server's clock, in
  the reply), divided by the time of an empty round trip.
* A step reads nothing. Then latency should cost nothing: the rate is compared with that of the same loop on loopback.
  The empty round trip at the loop's end is subtracted on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import gradwire

from .report import Plan, Row, Target
from .servers import DelayedRoute, Server, inside, session
from .timing import Figures, interleave, paired_ratios, seconds

if TYPE_CHECKING:
    from gradwire._core.session.session import Session

RTTS_MS: Final = (20.0, 50.0)
WARM: Final = 4
"""Steps before the clock starts: from the third on, frames are known to both sides."""

ROUND_TRIPS: Final = Target(1.05)
SHARE: Final = Target(0.95, at_least=True)
UNREAD_S: Final = 0.4
"""About how long a measurement without reads lasts on loopback."""

Step = Callable[[], Any]
"""A step that reads one value, or one that reads none."""


def reading(
    name: str, server: Server, build: Callable[[Any], Step], plan: Plan, beyond: Target | None = None
) -> Iterator[Row]:
    """The time of a step that reads one value, at each distance.

    Args:
        build: makes the step under gradwire.
        beyond: the target, in round trips without the server's time.
    """
    for rtt_ms in RTTS_MS[: plan.of(len(RTTS_MS), 1)]:
        with DelayedRoute(server, rtt_ms) as route, session(route) as far:
            step = build(gradwire)
            _repeat(step, WARM)
            empty = empty_round_trip(far, plan)
            steps, rounds = plan.of(5, 2), max(1, plan.rounds // 2)
            took, trips, held = zip(*(_one_round(far, step, steps) for _ in range(rounds)), strict=True)
        there = f"{rtt_ms:g} ms away, read every step"
        note = f"an empty round trip there takes {empty:.2f} ms, and the server had the frame for {median(held):.2f} ms"
        rest = Figures(tuple((whole - inner) / empty for whole, inner in zip(took, held, strict=True)))
        yield Row(name, f"{there}: step", "ms", Figures(took), None, None, note)
        yield Row(name, f"{there}: time but for the server's", "round trips", rest, None, beyond, difference=True)
        yield Row(name, f"{there}: count", "round trips", Figures(trips), None, ROUND_TRIPS)


def unread(name: str, server: Server, build: Callable[[Any], Step], plan: Plan) -> Iterator[Row]:
    """The rate of a step that reads nothing at each distance, relative to loopback."""
    for rtt_ms in RTTS_MS[: plan.of(len(RTTS_MS), 1)]:
        with DelayedRoute(server, rtt_ms) as route, session(server) as near, session(route) as far:
            found, steps = _near_and_far(near, far, build, plan)
        shares = paired_ratios(found["near"], found["far"])
        there, here = found["far"].median, found["near"].median
        note = f"{there:.2f} ms a step there, {here:.2f} ms on loopback, {steps} steps each"
        case = f"{rtt_ms:g} ms away, nothing read: rate"
        yield Row(name, case, "of loopback's", shares, None, SHARE, note, difference=True)


def _near_and_far(
    near: Session, far: Session, build: Callable[[Any], Step], plan: Plan
) -> tuple[dict[str, Figures], int]:
    """Milliseconds per step without reads, on both sides, and the number of steps per figure."""
    loops: dict[str, Callable[[int], float]] = {}
    for name, opened in (("near", near), ("far", far)):
        with inside(opened):
            step = build(gradwire)
            _repeat(step, WARM)
        loops[name] = partial(_unread, opened, step, empty_round_trip(opened, plan))
    steps = 2 if plan.quick else max(20, round(UNREAD_S / (loops["near"](20) * 1e-3)))
    found = interleave({name: partial(loop, steps) for name, loop in loops.items()}, max(1, plan.rounds // 3))
    return found, steps


def empty_round_trip(opened: Session, plan: Plan) -> float:
    """Milliseconds of an empty round trip there."""
    opened.synchronize()
    return median(seconds(opened.synchronize) * 1e3 for _ in range(plan.of(15, 2)))


def _one_round(opened: Session, step: Step, steps: int) -> tuple[float, float, float]:
    """Per step: milliseconds, round trips, and milliseconds for which the server had the awaited frames."""
    trips, held = opened.stats()["round_trips"], _held_s(opened)
    took = seconds(lambda: _repeat(step, steps))
    trips, held = opened.stats()["round_trips"] - trips, _held_s(opened) - held
    return took / steps * 1e3, trips / steps, held / steps * 1e3


def _held_s(opened: Session) -> float:
    return sum(line.server for line in opened.round_trip_report())


def _unread(opened: Session, step: Step, empty_ms: float, steps: int) -> float:
    """Milliseconds per step, without the empty round trip at the end."""

    def loop() -> None:
        _repeat(step, steps)
        opened.synchronize()

    with inside(opened):
        return (seconds(loop) * 1e3 - empty_ms) / steps


def _repeat(step: Step, steps: int) -> None:
    for _ in range(steps):
        step()
