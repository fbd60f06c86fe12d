"""Random programs leave torch and gradwire with the same tensors, histories, gradients, hook calls and exceptions.

``GRADWIRE_TEST_SEED`` repeats a run; ``python -m tests.soak programs --seconds N`` runs as many as there is time for.
"""

from __future__ import annotations

import os
import random

import pytest

from .running import disagreements
from .shrinking import report, shrink
from .writing import written

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", random.SystemRandom().randrange(1, 1 << 30)))
PROGRAMS = 150

pytestmark = pytest.mark.usefixtures("session")


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_a_random_program_leaves_both_libraries_alike(number: int) -> None:
    program = written(SEED * 1000 + number)
    found = disagreements(program)
    assert not found, report(program, found)


def test_a_seed_writes_the_same_program_again() -> None:
    assert written(SEED).statements == written(SEED).statements


def test_shrinking_leaves_what_the_disagreement_needs() -> None:
    program = [f"line {i}" for i in range(30)]
    needed = {"line 3", "line 17", "line 18"}
    assert set(shrink(program, lambda left: needed <= set(left))) == needed
