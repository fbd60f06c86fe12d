"""Saved memory of the graph is counted once wherever it is, and counting changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.backends import Backends, NumpyBackend
from gradwire_engine.session.graph import describe_graph, saved_bytes
from gradwire_engine.session.session import Session
from gradwire_protocol.errors import LimitExceeded

KB = 1024


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def x(engine: Engine) -> Tensor:
    return engine.from_numpy(np.linspace(0.5, 1.5, 256, dtype=np.float32).reshape(16, 16), requires_grad=True)


def test_pools_of_all_devices_are_summed() -> None:
    class Pooled(NumpyBackend):
        def pooled_bytes(self) -> int:
            return 4096

    assert Session(backends=Backends(Pooled())).memory()["pooled_bytes"] == 4096
    assert Session().memory()["pooled_bytes"] == 0


def test_what_is_behind_a_gradient_counts(engine: Engine, x: Tensor) -> None:
    loss = engine.call("sum", engine.call("pow", x, 3))
    engine.call("backward", [loss], [None], retain_graph=True, create_graph=True)
    behind = saved_bytes([x])
    assert behind > 0
    del loss
    assert saved_bytes([x]) == behind
    x.grad = None
    assert saved_bytes([x]) == 0


def test_gradients_that_refer_to_each_other_come_to_an_end(engine: Engine, x: Tensor) -> None:
    other = engine.call("exp", x)
    x.grad, other.grad = other, x
    assert saved_bytes([x]) == saved_bytes([other]) == KB
    x.grad = None


def test_what_a_write_through_a_view_keeps_counts(engine: Engine, x: Tensor) -> None:
    base = engine.call("mul", x, 1.0)
    half = engine.call("slice", base, 0, 0, 8)
    engine.call("mul_", half, engine.call("exp", engine.call("slice", x, 0, 0, 8)))
    node = base.grad_fn
    assert node is not None and node.name == "CopySlices"
    # The write keeps its factor, which exp keeps as well, and a copy of what it wrote over.
    assert saved_bytes([base]) == 2 * (KB // 2)
    (found,) = [n for n in describe_graph({1: base})["nodes"] if n["name"] == "CopySlices"]
    assert found["saved_bytes"] == 2 * (KB // 2)
    assert not found["freed"]


def test_looking_does_not_renew_the_history_of_views(engine: Engine, x: Tensor) -> None:
    base = engine.call("mul", x, 1.0)
    view = engine.call("slice", base, 0, 0, 8)
    engine.call("mul_", base, 2.0)
    before = view._grad_fn
    assert saved_bytes([view]) == 0
    assert view._grad_fn is before
    assert view.grad_fn is not before


def test_lists_of_tensors_that_are_kept_count(engine: Engine, x: Tensor) -> None:
    index = engine.from_numpy(np.array([0, 1, 2]))
    taken = engine.call("index", x, [index])
    assert saved_bytes([taken]) == 3 * 8


def test_a_node_keeps_its_numbers(engine: Engine, x: Tensor) -> None:
    """The node takes the rule's arguments over, with numbers for their kinds."""
    scaled = engine.call("mul", x, 3.0)
    again = engine.call("mul", x, 5.0)
    engine.call("backward", [engine.call("sum", engine.call("add", scaled, again, alpha=2))], [None])
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.array, np.full((16, 16), 13, np.float32))


def test_what_is_kept_follows_who_wants_a_gradient(engine: Engine, x: Tensor) -> None:
    constant = engine.from_numpy(np.ones((16, 16), np.float32))
    assert saved_bytes([engine.call("mul", x, constant)]) == KB  # the constant
    both = engine.call("mul", x, engine.call("neg", x))
    assert saved_bytes([both]) == 2 * KB
    tanh = engine.call("tanh", x)
    assert saved_bytes([tanh]) == KB
    assert saved_bytes([engine.call("neg", x)]) == 0


def test_results_without_a_gradient_make_no_node(engine: Engine, x: Tensor) -> None:
    before = engine.account.nodes
    for name in ("isnan", "argmax", "round"):
        result = engine.call(name, x)
        assert (result.grad_fn is None) == (name != "round")
    values, indices = engine.call("topk", x, 2)
    assert values.grad_fn is not None and indices.grad_fn is None
    del result, values, indices
    assert engine.account.nodes == before


def test_a_graph_is_described_up_to_a_number_of_nodes(engine: Engine, x: Tensor) -> None:
    y = engine.call("sin", engine.call("exp", x))
    assert len(describe_graph({1: y}, most=3)["nodes"]) == 3
    with pytest.raises(LimitExceeded, match="more than 2 nodes"):
        describe_graph({1: y}, most=2)


def test_the_tensors_of_a_leaf_are_found_among_all(engine: Engine, x: Tensor) -> None:
    y = engine.call("exp", x)
    nodes = {n["name"]: n["tensors"] for n in describe_graph({7: y}, {7: y, 3: x, 4: x})["nodes"]}
    assert nodes == {"ExpBackward0": [7], "AccumulateGrad": [3, 4]}
