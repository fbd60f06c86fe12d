"""Random programs run under torch and gradwire, one after another: both end with the same tensors and exceptions."""

from __future__ import annotations

import os
import random
import time

import gradwire
from tests.random_programs.apart import Apart
from tests.random_programs.running import disagreements
from tests.random_programs.shrinking import report

from . import Figures, enough, progress

SECONDS = 3600.0
LEAST = 20
SHOWN = 5


def run(most_seconds: float) -> Figures:
    """Run programs of fresh seeds, or from ``GRADWIRE_TEST_SEED`` on, until the time is over."""
    seed = int(os.environ.get("GRADWIRE_TEST_SEED", random.SystemRandom().randrange(1, 1 << 30)))
    gradwire.current_session()
    until = time.monotonic() + most_seconds
    programs, statements, disagreeing = 0, 0, []
    apart = Apart()
    while time.monotonic() < until:
        program = apart.written(seed + programs + len(apart.crashed))
        if program is None:
            continue
        found = disagreements(program)
        programs += 1
        statements += len(program.statements)
        if found:
            disagreeing.append(program.seed)
            if len(disagreeing) <= SHOWN:
                print(report(program, found), flush=True)
        progress(f"{programs:,} programs, {len(disagreeing)} disagreements")
    apart.close()
    assert not disagreeing, f"{len(disagreeing)} of {programs:,} programs disagree, by seed: {disagreeing[:50]}"
    enough(programs, LEAST, "programs")
    return {
        "programs": programs, "statements": statements, "disagreements": len(disagreeing), "first seed": seed,
        "programs that torch does not survive": len(apart.crashed),
    }  # fmt: skip
