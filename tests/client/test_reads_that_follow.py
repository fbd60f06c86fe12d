"""Reads that follow each other come with the first of them, once they did so twice."""

from __future__ import annotations

import numpy as np
import pytest

import gradwire
import gradwire as torch


def step(weights, scale):
    """A loss and its gradients."""
    loss = sum((w * scale).sin().sum() for w in weights)
    return loss, *torch.autograd.grad(loss, weights)


@pytest.fixture(autouse=True)
def patient(alone, uncut, monkeypatch):
    """A session in which nothing was learnt; values are kept for as long as a test takes, however busy the machine."""
    monkeypatch.setattr("gradwire._core.session.read_ahead.KEPT_S", 60.0)


@pytest.fixture
def weights():
    found = [torch.arange(1.0, 4.0 + i, requires_grad=True) for i in range(3)]
    gradwire.current_session().synchronize()  # sent, so that all steps' frames have one form
    return found


def expected(weights, scale):
    return [np.cos(np.arange(1.0, 4.0 + i, dtype=np.float32) * scale) * scale for i in range(3)]


def test_gradients_come_with_the_loss(weights, round_trips):
    taken = []
    for turn in range(6):
        loss, *gradients = step(weights, 1.0 + turn)
        loss.item()
        found = [g.numpy() for g in gradients]
        for value, wanted in zip(found, expected(weights, 1.0 + turn), strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)
        taken.append(round_trips())
    assert taken == [4, 4, 1, 1, 1, 1]


def test_a_value_is_the_program_s_own(weights):
    for _ in range(5):
        loss, first, *_ = step(weights, 2.0)
        loss.item()
        value = first.numpy()
        value += 1.0
        np.testing.assert_allclose(first.numpy(), value - 1.0)


def test_what_changes_between_two_reads_is_read_again(weights, round_trips):
    for turn in range(6):
        loss, first, *_ = step(weights, 2.0)
        loss.item()
        if turn == 5:
            first.mul_(3.0)
        factor = 3.0 if turn == 5 else 1.0
        np.testing.assert_allclose(first.numpy(), factor * expected(weights, 2.0)[0], rtol=1e-5)
    assert round_trips() >= 6


def test_what_is_gone_is_not_asked_for(weights):
    for turn in range(6):
        loss, first, second, third = step(weights, 2.0)
        if turn == 4:
            del first, second
        loss.item()
        if turn != 4:
            first.numpy(), second.numpy()
        np.testing.assert_allclose(third.numpy(), expected(weights, 2.0)[2], rtol=1e-5)


def test_what_was_asked_for_in_vain_is_not_asked_for_again(weights):
    asked = []
    for turn in range(8):
        loss, *gradients = step(weights, 2.0)
        loss.item()
        frame = loss._session.read_ahead._frame
        asked.append(len(frame.known))
        if turn < 4:
            for g in gradients:
                g.numpy()
    assert asked == [0, 0, 3, 3, 3, 0, 0, 0]


def test_large_values_are_not_asked_for(round_trips):
    w = torch.ones(100_000, requires_grad=True)
    for _ in range(5):
        loss = (w * 2).sum()
        (gradient,) = torch.autograd.grad(loss, [w])
        loss.item()
        assert gradient.numpy()[-1] == 2.0
        assert round_trips() == 2


def test_after_a_while_values_are_read_again(weights, round_trips, monkeypatch):
    monkeypatch.setattr("gradwire._core.session.read_ahead.KEPT_S", 0.0)
    for _ in range(5):
        loss, first, *_ = step(weights, 2.0)
        loss.item()
        first.numpy()
        assert round_trips() == 2


def test_errors_are_met_where_they_were(weights):
    for turn in range(6):
        loss, first, *_ = step(weights, 2.0)
        if turn == 5:
            bad = torch.zeros(2)[torch.tensor([7])]
            with pytest.raises(IndexError):
                loss.item()
            del bad
        else:
            loss.item()
        np.testing.assert_allclose(first.numpy(), expected(weights, 2.0)[0], rtol=1e-5)
