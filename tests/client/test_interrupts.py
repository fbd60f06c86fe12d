"""After an exception at any moment, the session is usable and its values are right."""

from __future__ import annotations

import random
import time
from typing import Any

import h11
import pytest
from tests import interrupted_programs
from tests.soak.interrupts import at_random

TRIALS = 30
"""Of each program; ``python -m tests.soak interrupts`` tries every place."""

NAMES = list(interrupted_programs.programs(None))

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("name", NAMES)
def test_an_exception_at_any_place_leaves_a_session_that_goes_on(name: str, session: Any) -> None:
    program = interrupted_programs.programs(session)[name]
    for _ in range(3):
        length = interrupted_programs.length(program)
    chance = random.Random(name)
    numbers = sorted(chance.sample(range(1, length + 1), min(TRIALS, length)))
    done = interrupted_programs.tried(session, program, numbers)
    assert done >= 5  # a call that was seen before has fewer places than the first one


def test_interrupts_at_random_moments_leave_a_session_that_goes_on(session: Any) -> None:
    assert at_random(session, 60, time.monotonic() + 60, seed=1) == 60


def test_an_interrupt_inside_the_http_library_leaves_no_connection_that_takes_no_request(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/sessions/{session.id}"

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(h11.Connection, "start_next_cycle", interrupted)  # when the connection counts as idle already
        with pytest.raises(KeyboardInterrupt):
            session.rest.get(path)
    assert session.rest.get(path)["id"] == session.id
