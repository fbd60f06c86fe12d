"""A derivative that is written down gives what the long way gives, and steps aside where that has words for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd import plain_derivatives
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.plain_derivatives import Recorder
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import GraphError, LimitExceeded, TimeExceeded


class Long(Engine):
    takes_short_ways = False


def leaf(engine: Engine, *values: Any, dtype: Any = np.float32) -> Tensor:
    return engine.from_numpy(np.array(values, dtype), requires_grad=True)


def gradients(engine: Engine, result: Tensor, *leaves: Tensor, keep: bool = True) -> list[list[float]]:
    ones = engine.call("ones", result.shape, dtype=result.dtype)
    found = engine.call("grad", [result], list(leaves), [ones], retain_graph=keep)
    return [g.array.tolist() for g in found]


def programs() -> int:
    return sum(kind.program is not None for kind in plain_derivatives.KINDS.values())


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_derivatives, "KINDS", {})


def test_one_is_written_when_a_node_of_its_kind_is_met_again() -> None:
    engine = Engine()
    x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
    for expected in (0, 1, 1):
        assert gradients(engine, x * y, x, y) == [[4, 5, 6], [1, 2, 3]]
        assert programs() == expected


def test_one_tensor_as_two_operands_teaches_nothing_wrong() -> None:
    engine = Engine()
    x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
    for _ in range(2):
        assert gradients(engine, x * x, x) == [[2, 4, 6]]
    assert programs() == 0
    for _ in range(3):
        assert gradients(engine, x * y, x, y) == [[4, 5, 6], [1, 2, 3]]
    assert programs() == 1
    assert gradients(engine, x * x, x) == [[2, 4, 6]]


def test_a_gradient_that_is_an_operand_teaches_nothing_wrong() -> None:
    engine = Engine()
    x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
    other = engine.from_numpy(np.array([7, 8, 9], np.float32))
    for given, expected in ((y, [[16, 25, 36], [4, 10, 18]]), (y, [[16, 25, 36], [4, 10, 18]]), (other, None)):
        found = engine.call("grad", [x * y], [x, y], [given])
        assert expected is None or [g.array.tolist() for g in found] == expected
    for _ in range(3):
        found = engine.call("grad", [x * y], [x, y], [other])
        assert [g.array.tolist() for g in found] == [[28, 40, 54], [7, 16, 27]]


@pytest.mark.parametrize(
    "numbers", [(2.0, 3.0), (2, 2.0), (1, True), (0.0, -0.0), (1 + 0j, complex(1, -0.0)), (float("nan"), 1.0)]
)
def test_each_number_has_its_own(numbers: tuple[Any, Any]) -> None:
    engine, long = Engine(), Long()
    for _ in range(3):
        for number in numbers:
            for op in ("mul", "pow", "div"):
                found = []
                for each in (engine, long):
                    x = leaf(each, 1, 2, 3)
                    with np.errstate(all="ignore"):
                        found.append(repr(gradients(each, each.call(op, x, number), x)))
                assert found[0] == found[1]


def test_what_was_changed_in_place_since_is_refused() -> None:
    engine = Engine()
    x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
    for _ in range(3):
        gradients(engine, (x * 1.0) * y, x, y)
    inner = x * 1.0
    product = inner * y
    engine.call("add_", inner, 1)
    with pytest.raises(GraphError, match="modified in place"):
        gradients(engine, product, y)
    freed = inner * y
    gradients(engine, freed, y, keep=False)
    with pytest.raises(GraphError, match="freed"):
        gradients(engine, freed, y)


def test_limits_hold_for_what_is_made_on_the_way() -> None:
    """Dividing makes two gradients and two arrays on the way: what does not fit is refused as it is the long way."""
    size, count = 100, 0
    refused: list[list[str]] = []
    for kind in (Engine, Long):
        told = []
        for spare in range(0, 4000, 200):
            engine = kind(Limits(max_session_bytes=1 << 20))
            x, y = leaf(engine, *range(1, size + 1)), leaf(engine, *range(1, size + 1))
            ones = engine.call("ones", (size,))
            for _ in range(3):
                engine.call("grad", [x / y], [x, y], [ones])
            result = x / y
            engine.account.reset_peak()
            engine.account.limits = Limits(max_session_bytes=engine.account.live + spare)
            try:
                engine.call("grad", [result], [x, y], [ones])
                told.append(f"fits, {engine.account.peak}")
            except LimitExceeded as error:
                told.append(str(error))
            count += programs()
        refused.append(told)
    assert refused[0] == refused[1]
    assert any("GRADWIRE" in each for each in refused[0])
    assert any("fits" in each for each in refused[0])
    assert count


def test_compiled_kernels_and_the_default_dtype_have_their_own() -> None:
    engine = Engine()
    x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
    for _ in range(3):
        gradients(engine, x * y, x, y)
    for change in (lambda: setattr(engine, "compiled", True), lambda: engine.call("set_default_dtype", "float64")):
        before = set(plain_derivatives.KINDS)
        change()
        gradients(engine, x * y, x, y)
        assert set(plain_derivatives.KINDS) > before


def test_a_recorded_derivative_goes_the_long_way() -> None:
    engine = Engine()
    x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
    for _ in range(3):
        gradients(engine, x * y, x, y)
    (first,) = engine.call("grad", [x * y], [x], [engine.call("ones", (3,))], create_graph=True)
    assert first.grad_fn is not None
    assert gradients(engine, first, y) == [[1, 1, 1]]


def test_numbers_that_never_repeat_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_derivatives, "MOST_KINDS", 50)
    engine = Engine()
    x = leaf(engine, 1, 2, 3)
    for number in range(200):
        gradients(engine, engine.call("mul", x, number + 0.5), x)
        assert len(plain_derivatives.KINDS) <= 50


def test_one_that_draws_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str] = []
    stop = Recorder.stop

    def noting(self: Recorder, reason: str) -> None:
        reasons.append(reason)
        stop(self, reason)

    monkeypatch.setattr(Recorder, "stop", noting)
    engine = Engine()
    x = engine.from_numpy(np.ones((2, 3, 4, 4), np.float32), requires_grad=True)
    for _ in range(3):
        normed = engine.call("batch_norm", x, None, None, None, None, True)
        gradients(engine, normed, x)
    assert reasons == ["op batch_norm_backward"]  # which has several results; asked once


def test_sessions_share_them() -> None:
    for expected in (0, 1, 1):
        engine = Engine()
        x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
        assert gradients(engine, x * y, x, y) == [[4, 5, 6], [1, 2, 3]]
        assert programs() == expected


def test_a_limit_of_work_holds_for_what_another_session_has_done() -> None:
    for limit in (0, 1000, 10):
        engine = Engine(Limits(max_op_work=limit))
        x = engine.from_numpy(np.ones((7, 9), np.float32))
        if limit == 10:
            with pytest.raises(TimeExceeded, match="GRADWIRE_MAX_OP_WORK"):
                engine.call("mul", x, x)
        else:
            engine.call("mul", x, x)


def test_derivatives_of_lists_and_views_have_them() -> None:
    engine = Engine()
    x, y = leaf(engine, 1, 2, 3), leaf(engine, 4, 5, 6)
    weights = engine.from_numpy(np.arange(6, dtype=np.float32))
    for _ in range(3):
        joined = engine.call("cat", [x, y], 0)
        found = engine.call("grad", [joined], [x, y], [weights])
        assert [g.array.tolist() for g in found] == [[0, 1, 2], [3, 4, 5]]
        assert all(g.storage is weights.storage for g in found)
    assert programs() == 1
