"""The storage protocol of a fleet, explored: nothing acknowledged is lost, and every planted bug is found."""

from __future__ import annotations

import pytest

from .model.__main__ import ORDINARY, described
from .model.exploring import explore, lines
from .model.planted import LIVENESS, PLANTED
from .model.state import Bounds


@pytest.mark.parametrize("bounds", ORDINARY, ids=described)
def test_every_state_is_sound_and_leads_to_the_acknowledgement_of_all_frames(bounds: Bounds) -> None:
    found = explore(bounds)
    assert not found.violation, "\n".join(lines(found))
    assert found.states > 10_000


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str) -> None:
    found = explore(PLANTED[bug].bounds, frozenset({bug}), liveness=bug in LIVENESS)
    assert found.violation
    assert found.trace


@pytest.mark.parametrize("bounds", {planted.bounds for planted in PLANTED.values()}, ids=described)
def test_without_the_bug_the_same_bounds_are_sound(bounds: Bounds) -> None:
    found = explore(bounds, liveness=False)
    assert not found.violation, "\n".join(lines(found))
