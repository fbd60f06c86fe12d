"""What a program does for the first time is sent in pieces; what it repeats is sent whole."""

from __future__ import annotations

import pytest

import gradwire
from gradwire._core.context.modes import MODES
from gradwire._core.session.frame_builder import OPS_PER_FRAME
from gradwire._core.session.pieces import FIRST, PATIENCE

pytestmark = pytest.mark.usefixtures("uncut")


@pytest.fixture
def sizes(alone):
    """The numbers of ops of the frames that were sent since the last look."""
    found = []
    alone.link.watched = lambda frame, structure, key, payloads, lines: found.append(len(lines))

    def look():
        taken = found[:]
        found.clear()
        return taken

    return look


def chain(ops, first="mul"):
    """A chain of so many ops. The beginning is another one where the first op is."""
    x = gradwire.ones(2)
    x = getattr(x, first)(1)
    for _ in range(ops - 2):
        x = x + 1
    return x.tolist()


def test_what_is_new_is_sent_in_pieces_that_grow(sizes):
    assert chain(1000) == [999.0] * 2
    pieces = sizes()
    assert pieces[:4] == [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST]
    assert sum(pieces) == 1000
    chain(10 * OPS_PER_FRAME, first="sub")
    assert max(sizes()) == OPS_PER_FRAME


def test_a_frame_that_is_due_before_the_first_piece_is_full_is_sent_whole(sizes):
    chain(FIRST)
    assert sizes() == [FIRST]


def test_what_is_repeated_is_sent_whole(sizes):
    for _ in range(3 * PATIENCE):
        chain(200)
    assert sizes() == [FIRST, 2 * FIRST, 8] + [200] * (3 * PATIENCE - 1)


def test_what_begins_alike_and_is_never_repeated_is_sent_in_pieces_again(sizes):
    for i in range(PATIENCE + 1):
        chain(200 + i)
    sizes()
    for i in range(5):
        chain(300 + i)
        assert sizes()[0] == FIRST
    for _ in range(3):  # this one is repeated, in pieces first
        chain(210)
    assert sizes()[-1] == 210


def test_gradients_of_a_graph_that_was_sent_in_pieces_are_those_of_one_that_was_not(sizes):
    def gradient():
        x = gradwire.linspace(0, 1, 8).requires_grad_()
        y, kept = x, []
        for i in range(100):
            y = (y * 0.5).sin() + x
            if i % 10 == 0:
                kept.append(y)
        y.mul_(2)
        (y.sum() + sum(k.sum() for k in kept)).backward()
        return x.grad.tolist()

    one = gradient()
    assert len(sizes()) > 2
    assert gradient() == one
    assert len(sizes()) == 1


def test_a_failure_in_an_early_piece_is_met_by_the_read_and_names_its_line(sizes):
    x = gradwire.ones(2)
    wrong = gradwire.linalg.inv(gradwire.zeros(2, 2))
    for _ in range(2 * FIRST):
        x = x + 1
    with pytest.raises(gradwire.GradwireError, match=r"issued by .*test_pieces\.py"):
        (x + wrong).tolist()
    assert len(sizes()) > 1
    assert (gradwire.ones(2) + 1).tolist() == [2.0, 2.0]


def test_while_a_function_is_recorded_to_be_replayed_it_is_not_cut(alone, monkeypatch):
    x = gradwire.ones(2)
    x.tolist()
    before = alone.frames
    with monkeypatch.context() as recording:
        recording.setattr(MODES, "capture", object())
        for _ in range(3 * FIRST):
            x = x + 1
        assert alone.frames == before
    assert x.tolist() == [3 * FIRST + 1] * 2
