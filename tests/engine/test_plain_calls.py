"""The short way of a call gives what the long way gives: the same bits, histories, memory and errors."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.known_calls import KnownCalls
from gradwire_engine.autograd.plain_calls import WORTH_WRITING, PlainCall
from gradwire_engine.autograd.plain_views import PlainView
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import GradwireError, LimitExceeded, ShapeError
from gradwire_protocol.table import TABLE
from tests.engine.test_parity import Ours
from tests.samples import load

NAMES = sorted(name for name in load() if TABLE[name].base is None and not TABLE[name].internal)
DTYPES = ("float32", "float16", "complex64", "int64")


class LongWay(Engine):
    takes_short_ways = False


def seen(tensor: Tensor | None) -> Any:
    if tensor is None:
        return None
    node = tensor.grad_fn
    edges = () if node is None else [None if e is None else (e[0].name, e[1]) for e in node.edges]
    saved = () if node is None else (node.saved_bytes, [m and repr(m) for m in node.outs])
    base = tensor.base
    shown = base and (repr(base.meta), tensor.offset, tensor.creation, tensor.path, tensor.seen_version)
    place = tensor.array.strides, tensor.slot, tensor.inference, shown
    return repr(tensor.meta), tensor.meta.stride, tensor.array.tobytes(), node and node.name, edges, saved, place


def story(engine: Engine, name: str) -> list[Any]:
    """What comes of calls with samples of an op, and of their derivatives."""
    told: list[Any] = []
    for declared in load()[name]:
        for dtype in DTYPES:
            if dtype not in declared.dtypes:
                continue
            for sample in declared.draw(dtype, 1)[:6]:
                try:
                    ours = Ours(engine, sample)
                    for _ in range(WORTH_WRITING + 2):  # the last ones by a function that is written
                        found = ours.call(name)
                        told.append([seen(t) for t in found])
                    results = [r for r in found if r.requires_grad]
                    leaves = [leaf for leaf in ours.leaves if leaf.requires_grad]
                    if results and leaves:
                        ones = [engine.call("ones", r.shape, dtype=r.dtype) for r in results]
                        for _ in range(3):  # a derivative that is met again is written down
                            found = engine.call("grad", results, leaves, ones, retain_graph=True, allow_unused=True)
                            told.append([seen(g) for g in found])
                except GradwireError as error:
                    told.append((type(error), str(error)))
                told.append((engine.account.live, engine.account.nodes))
    return told


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_lead_to_the_same(name: str) -> None:
    found = []
    for kind in (Engine, LongWay):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            gc.disable()  # so that memory is freed at the same moments
            try:
                found.append(story(kind(Limits(max_op_work=50_000_000)), name))
            finally:
                gc.enable()
    assert found[0] == found[1]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops that went the short way to its end."""
    names: list[str] = []
    run = PlainCall.run

    def noting(self: PlainCall, engine: Any, values: list[Any], rule_args: list[Any]) -> Tensor | None:
        result = run(self, engine, values, rule_args)
        if result is not None:
            names.append(self.row.op.name)
        return result

    monkeypatch.setattr(PlainCall, "run", noting)
    return names


def test_most_ops_have_it_and_what_casts_or_draws_does_not(taken: list[str]) -> None:
    engine = Engine()
    x = engine.from_numpy(np.ones((2, 3), np.float32), requires_grad=True)
    wide = engine.from_numpy(np.ones((2, 3), np.float64))
    engine.call("add", x, x)
    engine.call("mul", x, 2)
    engine.call("cat", [x, x], 0)
    engine.call("softmax", x, 1)
    assert taken == ["add", "mul", "cat", "softmax"]
    engine.call("add", x, wide)  # casts an operand
    engine.call("bernoulli", wide)
    engine.call("add_", wide, 1)
    engine.call("nonzero", wide)
    assert taken[4:] == []


@pytest.mark.parametrize("grad_enabled", [True, False])
@pytest.mark.parametrize("inference", [True, False])
def test_a_view_has_it_and_is_made_as_ever(
    monkeypatch: pytest.MonkeyPatch, grad_enabled: bool, inference: bool
) -> None:
    went: list[bool] = []
    run = PlainView.run

    def noting(self: PlainView, engine: Any, values: list[Any], rule_args: list[Any]) -> Any:
        result = run(self, engine, values, rule_args)
        went.append(result is not None)
        return result

    monkeypatch.setattr(PlainView, "run", noting)
    told = []
    for kind in (Engine, LongWay):
        engine = kind()
        x = engine.from_numpy(np.arange(24, dtype=np.float32).reshape(4, 6), requires_grad=True)
        before = engine.call("mul", engine.call("select", x, 0, 1), 2)  # with a history, and no view
        old = engine.call("t", x)
        engine.grad_enabled, engine.inference = grad_enabled, inference
        views = [
            engine.call("t", x), engine.call("t", old), engine.call("select", old, 0, -1),
            engine.call("reshape", before, (2, 3)), *engine.call("split", x, 2, 1), *engine.call("unbind", old, 0),
            engine.call("expand", before, (3, 6)), engine.call("slice", x, 0, 1, 9, 2),
        ]  # fmt: skip
        told.append([seen(view) for view in views])
        engine.grad_enabled, engine.inference = False, False
        engine.call("mul_", engine.call("detach", x), 2)  # they all see it, and those with a history say so
        told[-1].append([(view.array.tolist(), view.storage.version, view.seen_version) for view in views])
        del views
    assert told[0] == told[1]
    assert len(went) == 10 and all(went)


def test_a_view_of_a_base_that_was_written_to_gets_its_history_anew() -> None:
    told = []
    for kind in (Engine, LongWay):
        engine = kind()
        x = engine.from_numpy(np.ones((4, 6), np.float32), requires_grad=True)
        y = engine.call("mul", x, 3)
        view = engine.call("t", y)
        engine.call("mul_", engine.call("select", y, 0, 1), 5)
        last = engine.call("select", view, 1, 1)
        (gradient,) = engine.call("grad", [engine.call("sum", last)], [x], [None])
        told.append((seen(last), gradient.array.tolist()))
    assert told[0] == told[1]


def test_what_fails_on_it_is_told_as_ever(taken: list[str]) -> None:
    engine = Engine(Limits(max_tensor_bytes=1000, max_session_bytes=5000))
    x = engine.from_numpy(np.ones((10, 10), np.float32))
    for _ in range(2):
        with pytest.raises(ShapeError):
            engine.call("add", x, engine.from_numpy(np.ones(7, np.float32)))
    held = [engine.call("add", x, x) for _ in range(11)]
    assert len(taken) == 11
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_SESSION_BYTES"):
        engine.call("add", x, x)
    held.clear()
    engine.call("add", x, x)
    assert len(taken) == 12


def test_memory_that_runs_out_sends_it_the_long_way(monkeypatch: pytest.MonkeyPatch, taken: list[str]) -> None:
    monkeypatch.setattr("gradwire_engine.autograd.engine.SHARED", KnownCalls())
    engine = Engine()
    x = engine.from_numpy(np.ones((10, 10), np.float32))
    add = row("add")
    kernel, failures = add.kernel, list[MemoryError]()

    def fails_once(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return kernel(*arguments)

    monkeypatch.setattr(add, "kernel", fails_once)
    for count in range(2 * WORTH_WRITING):
        engine.call("add", x, x)
        failures.append(MemoryError())
        assert engine.call("add", x, x).array.sum() == 200
        assert taken == ["add"] * (count + 1)
