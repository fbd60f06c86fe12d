"""Random programs with a snapshot and restore before every message continue bit by bit."""

from __future__ import annotations

import time

import gradwire
from tests.client import test_hooks_in_random_graphs as hooks
from tests.client import test_random_view_programs as views
from tests.engine.recordings import Recording, cut_everywhere, little_to_collect, record

from . import Figures, progress

SECONDS = 120.0


def of_views(number: int) -> Recording:
    steps, kind = views.program(number)
    return record(lambda: views.outcome(gradwire, steps, kind))


def of_hooks(number: int) -> Recording:
    return record(lambda: hooks.program(gradwire, number))


def run(most_seconds: float) -> Figures:
    """Programs of views and writes, and graphs with hooks, Functions and checkpoints, in turn."""
    end = time.monotonic() + most_seconds
    programs = cuts = refused = 0
    with little_to_collect():
        while time.monotonic() < end:
            for recorded in (of_views(programs), of_hooks(programs)):
                taken, forbidden = cut_everywhere(recorded)
                cuts, refused = cuts + taken, refused + forbidden
            programs += 1
            progress(f"{programs} programs of each kind, {cuts:,} images")
    return {"programs of each kind": programs, "images": cuts, "moments without one": refused}
