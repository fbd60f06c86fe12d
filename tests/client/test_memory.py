"""Session memory is measured, and everything that a program drops is freed."""

from __future__ import annotations

import gc

import pytest

import gradwire
from gradwire import nn

KB = 1024


@pytest.fixture
def own():
    """A session of its own, in which new tensors are made: nothing of other tests is counted."""
    with gradwire.connect() as opened:
        yield opened


def test_live_bytes_are_those_of_the_storages_and_views_add_nothing(own):
    assert own.memory()["live_bytes"] == 0
    x = gradwire.ones(16, 16)
    y = x.t().reshape(256)  # has to copy
    assert own.memory()["live_bytes"] == 2 * KB
    z = x.t()[2:].reshape(2, 7, 16)
    assert own.memory()["live_bytes"] == 2 * KB
    del x, y
    assert own.memory()["live_bytes"] == 1 * KB
    del z
    assert own.memory() == {
        "live_bytes": 0, "saved_bytes": 0, "pooled_bytes": 0, "peak_bytes": own.memory()["peak_bytes"],
        "limit_bytes": own.memory()["limit_bytes"],
    }  # fmt: skip


def test_what_the_graph_saves_is_counted_once(own):
    x = gradwire.ones(16, 16, requires_grad=True)
    with gradwire.no_grad():
        x.exp()
    assert own.memory()["saved_bytes"] == 0
    y = x.exp()  # keeps its result
    assert own.memory()["saved_bytes"] == 1 * KB
    a, b = y.sin(), y.cos()  # both keep y, the memory that is kept already
    assert own.memory()["saved_bytes"] == 1 * KB
    c = a * b  # keeps both
    assert own.memory()["saved_bytes"] == 3 * KB
    d = c.t() + c.view(-1)[:16]  # views and sums keep nothing
    assert own.memory()["saved_bytes"] == 3 * KB
    del d, c
    assert own.memory()["saved_bytes"] == 1 * KB


def test_saved_memory_is_freed_by_backward(own):
    x = gradwire.randn(16, 16, requires_grad=True)
    x.grad = gradwire.zeros(16, 16)
    before = own.memory()
    loss = x.exp().sin().pow(2).sum()
    during = own.memory()
    assert during["saved_bytes"] == 2 * KB  # the result of exp, which sin keeps too, and that of sin
    assert during["live_bytes"] == before["live_bytes"] + 2 * KB + 4
    loss.backward()
    after = own.memory()
    assert after["saved_bytes"] == 0
    assert after["live_bytes"] == before["live_bytes"] + 4  # the loss itself
    del loss
    assert own.memory()["live_bytes"] == before["live_bytes"]


def test_saved_memory_is_kept_with_retain_graph(own):
    x = gradwire.randn(16, 16, requires_grad=True)
    x.grad = gradwire.zeros(16, 16)
    loss = x.exp().sin().sum()
    live = own.memory()["live_bytes"]
    for _ in range(3):
        loss.backward(retain_graph=True)
        assert own.memory()["saved_bytes"] == 1 * KB
        assert own.memory()["live_bytes"] == live
    loss.backward()
    assert own.memory()["saved_bytes"] == 0
    assert own.memory()["live_bytes"] == 2 * KB + 4


def test_saved_memory_is_freed_when_the_result_is_dropped(own):
    x = gradwire.randn(16, 16, requires_grad=True)
    before = own.memory()
    loss = x.exp().sin().sum()
    assert own.memory()["saved_bytes"] > 0
    del loss
    after = own.memory()
    assert (after["saved_bytes"], after["live_bytes"]) == (0, before["live_bytes"])
    assert own.describe()["contents"]["graph_nodes"] == 0


def test_a_second_backward_counts_the_graph_of_the_gradient(own):
    x = gradwire.randn(16, 16, requires_grad=True)
    loss = (x**3).sum()
    loss.backward(create_graph=True)
    del loss
    assert own.memory()["saved_bytes"] > 0  # behind x.grad, which the program has not even looked at
    x.grad = None
    assert own.memory()["saved_bytes"] == 0
    assert own.memory()["live_bytes"] == 1 * KB


def test_the_peak_is_the_most_that_was_live_and_can_be_reset(own):
    x = gradwire.ones(16, 16)
    own.reset_peak_memory()
    assert own.memory()["peak_bytes"] == own.memory()["live_bytes"] == 1 * KB
    y = x + 1
    z = y + 1
    del y, z
    found = own.memory()
    assert found["live_bytes"] == 1 * KB
    assert found["peak_bytes"] >= 3 * KB
    own.reset_peak_memory()
    assert own.memory()["peak_bytes"] == 1 * KB


def test_resetting_the_peak_comes_after_what_was_recorded_before(own):
    y = gradwire.ones(64, 64) + 1
    del y
    own.reset_peak_memory()
    assert own.memory()["peak_bytes"] == 0


def test_memory_that_is_shown_by_data_counts_once(own):
    x = gradwire.randn(16, 16, requires_grad=True)
    y = (x * x.data).sum()  # keeps x, and the same memory again as x.data
    assert own.memory()["saved_bytes"] == 1 * KB
    del y


def test_a_slice_keeps_the_memory_that_it_is_a_part_of(own):
    whole = gradwire.randn(256, 4, requires_grad=True)
    part = (whole * 1)[:2].exp().sin()  # sin keeps the exp, exp keeps itself: 2 rows
    assert own.memory()["saved_bytes"] == 2 * 4 * 4
    del part
    part = (whole * 1)[:2].sin()  # sin keeps the slice, and so all of it
    assert own.memory()["saved_bytes"] == 256 * 4 * 4
    del part


def test_the_description_of_a_session_tells_its_memory(own):
    x = gradwire.randn(16, 16, requires_grad=True)
    y = x.exp()
    assert own.memory() == own.describe()["contents"]["memory"]
    del y


def test_memory_waits_for_what_was_recorded_and_tells_its_error(own):
    x = gradwire.ones(2, 2)
    x.inverse()  # singular
    with pytest.raises(RuntimeError):
        own.memory()
    assert own.memory()["live_bytes"] == 16


@pytest.mark.timeout(300)
def test_a_chain_of_a_hundred_thousand_ops_runs_forward_backward_and_is_dropped(own):
    x = gradwire.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    own.synchronize()
    held = own.describe()["contents"]
    assert held["graph_nodes"] == 100_000
    assert held["tensors"] == 2
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    x.grad = None
    assert own.memory()["saved_bytes"] == 0
    del y
    gc.collect()
    assert own.memory()["live_bytes"] == 8
    assert own.describe()["contents"]["graph_nodes"] == 0


@pytest.mark.timeout(300)
def test_a_chain_of_a_hundred_thousand_ops_is_dropped_unused(own):
    x = gradwire.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y.sin()
    assert own.memory()["saved_bytes"] == 100_000 * 8
    del y
    assert own.memory()["live_bytes"] == 8
    assert own.describe()["contents"]["graph_nodes"] == 0
    assert (x * 2).tolist() == [2.0, 2.0]  # the server is well


@pytest.mark.timeout(300)
def test_a_training_loop_holds_the_same_after_every_step(own):
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = gradwire.optim.Adam(model.parameters(), lr=1e-3)
    x, target = gradwire.randn(4, 8), gradwire.randint(0, 3, (4,))
    held = []
    for step in range(1, 1501):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        if step % 300 == 0:
            loss.item()
            contents = own.describe()["contents"]
            found = contents["memory"]
            held.append((contents["tensors"], contents["graph_nodes"], found["live_bytes"], found["saved_bytes"]))
            assert len(own.builder.dropped) == 0
    assert len(set(held)) == 1
    assert held[0][3] == 0
