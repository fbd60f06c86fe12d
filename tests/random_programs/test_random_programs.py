"""Random programs leave torch and gradwire with the same tensors, histories, gradients, hook calls and exceptions.

``GRADWIRE_TEST_SEED`` repeats a run; ``python -m tests.soak programs --seconds N`` runs as many as time allows.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.side_by_side import settle

from .apart import Apart
from .running import Program, disagreements
from .shrinking import report, shrink
from .writing import written

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", random.SystemRandom().randrange(1, 1 << 30)))
PROGRAMS = 150

pytestmark = pytest.mark.usefixtures("session")


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    made = Apart()
    yield made
    made.close()


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_a_random_program_leaves_both_libraries_alike(number: int, apart: Apart) -> None:
    program = apart.written(SEED * 1000 + number)
    if program is None:
        pytest.skip("torch itself crashes")
    found = disagreements(program)
    assert not found, report(program, found)


def abort_at_two(seed: int) -> Program:
    if seed == 2:
        os.abort()
    return Program(seed)


def test_a_crash_costs_one_program() -> None:
    apart = Apart(abort_at_two)
    assert [apart.written(seed) for seed in (1, 2, 3)] == [Program(1), None, Program(3)]
    assert apart.crashed == [2]
    apart.close()


def test_another_process_writes_the_same_program(apart: Apart) -> None:
    assert apart.written(SEED) == written(SEED)


def test_a_seed_writes_the_same_program_again() -> None:
    assert written(SEED).statements == written(SEED).statements


def test_shrinking_leaves_what_the_disagreement_needs() -> None:
    program = [f"line {i}" for i in range(30)]
    needed = {"line 3", "line 17", "line 18"}
    assert set(shrink(program, lambda left: needed <= set(left))) == needed


def test_a_program_that_is_given_up_leaves_nothing_for_the_next() -> None:
    given_up = "if torch.__name__ == 'torch': raise RuntimeError('INTERNAL ASSERT')"
    raises_later = "t0 = torch.ones(3)\nt0.addcmul_(t0[-1], t0[-1])"
    assert disagreements(Program(0, [f"{given_up}\n{raises_later}"])) == []
    settle()
