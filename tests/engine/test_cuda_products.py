"""Calls of cuBLASLt for matrix products, against a stand-in that follows its documentation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.kernels.cuda.problem import aligned, lay
from gradwire_engine.kernels.cuda.products import multiply
from gradwire_engine.ops import attention
from gradwire_protocol.ops import attention as declared
from tests.cuda_emulation import AVAILABLE
from tests.engine.test_cuda_kernels import FINE, Pair, draw
from tests.strict_backend import StrictArray

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="needs g++")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


def asked(pair: Pair) -> list[Any]:
    found: list[Any] = pair.device.backends["cpu"].xp.products.asked
    return found


SHAPES = [
    ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((7, 1, 3, 4), (2, 4, 5)), ((4,), (4, 5)),
    ((2, 3, 4), (4,)), ((4,), (4,)), ((1, 4), (4, 1)), ((3, 1), (1, 5)), ((3, 4), (2, 4, 5)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_of_stacks(pair: Pair, shapes: tuple[Any, Any], dtype: str) -> None:
    before = len(asked(pair))
    pair.call("matmul", draw(shapes[0], dtype), draw(shapes[1], dtype, 1), launches=False, tol=FINE[dtype] * 4)
    assert len(asked(pair)) > before


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", FINE)
def test_linear_adds_its_bias_within_the_product(pair: Pair, dtype: str, bias: bool) -> None:
    before = len(asked(pair))
    x, weight = draw((2, 3, 6), dtype), draw((5, 6), dtype, 1)
    pair.call("linear", x, weight, draw((5,), dtype, 2) if bias else None, launches=False, tol=FINE[dtype] * 4)
    problem = asked(pair)[before]
    assert problem.bias == bias
    assert problem.a.transposed  # the weight is read as it lies


def test_a_bias_of_one_element_is_not_read_beyond_it(pair: Pair) -> None:
    pair.call("linear", draw((2, 3)), draw((4, 3), seed=1), draw((1,), seed=2), launches=False)


def test_transposed_and_cut_operands_are_not_copied() -> None:
    x = draw((2, 6, 8))
    for view in (x, x.transpose(0, 2, 1), x[:, ::2], x[:, 1:5, 2:6], x[::2], x[1], x[:1]):
        operand = lay(StrictArray(view), view.shape[:-2])
        assert operand is not None
        assert operand.lead >= operand.rows
    assert lay(StrictArray(x[..., ::2]), (2,)) is None
    assert lay(StrictArray(x[::-1]), (2,)) is None
    assert lay(StrictArray(draw((2, 3, 4, 5))[:, ::2]), (2, 2)) is None


def test_an_operand_between_two_blocks_is_copied_with_its_strides() -> None:
    memory = StrictArray(np.zeros(4 * 33 + 64, np.uint8))
    start = -memory.data.ptr % 16
    for beside in (0, 4):
        x = StrictArray(memory._array[start + beside :][: 4 * 24].view(np.float32).reshape(4, 6).T)
        found = aligned(x)
        assert (found is x) == (beside == 0)
        assert found.strides == x.strides


def test_float32_is_rounded_to_tf32_only_when_the_session_says_so() -> None:
    engine = Engine(backends=Pair().device.backends)
    a = engine.from_numpy(draw((3, 4)))
    products = engine.backends["cpu"].xp.products
    engine.call("matmul", a, engine.call("t", a))
    engine.call("set_float32_matmul_precision", "high")
    engine.call("matmul", a, engine.call("t", a))
    engine.call("set_float32_matmul_precision", "highest")
    engine.call("matmul", a, engine.call("t", a))
    assert [problem.coarse for problem in products.asked] == [False, True, False]
    wide = engine.from_numpy(draw((3, 3), "float64"))
    engine.call("set_float32_matmul_precision", "medium")
    engine.call("matmul", wide, wide)
    assert not products.asked[-1].coarse


MASKS = [None, "causal", (4, 6), (2, 3, 4, 6), (1, 1, 4, 6), (4, 1)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_attention(pair: Pair, mask: Any, dtype: str) -> None:
    shape, cols = (2, 3, 4, 8), 4 if mask == "causal" else 6
    q, k, v = draw(shape, dtype), draw((2, 3, cols, 8), dtype, 1), draw((2, 3, cols, 5), dtype, 2)
    given = None if mask in (None, "causal") else draw(mask, "float32", 3) > -1
    pair.call("attention", q, k, v, given, mask == "causal", 0.3, tol=FINE[dtype] * 8)
    if given is not None:
        pair.call("attention", q, k, v, draw(mask, dtype, 3), False, 0.3, grad=False, tol=FINE[dtype] * 8)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("p", [0.0, 0.4])
@pytest.mark.parametrize("portions", ["one portion", "several portions"])
def test_attention_that_recomputes_its_weights(
    pair: Pair, mask: Any, dtype: str, p: float, portions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "RECOMPUTED", 0)
    monkeypatch.setattr(attention, "RECOMPUTED_IF_CAUSAL", 0)
    if portions == "several portions":
        monkeypatch.setattr(declared, "WORKED_ON_BY_GPU", 12)
        monkeypatch.setattr(declared, "LEAST_ROWS", 2)
    q, cols = draw((2, 3, 4, 8), dtype), 4 if mask == "causal" else 6
    k, v = draw((2, 3, cols, 8), dtype, 1), draw((2, 3, cols, 5), dtype, 2)
    given = None if mask in (None, "causal") else draw(mask, "float32", 3) > -1
    name = "scaled_dot_product_attention"
    pair.call(name, q, k, v, given, p, mask == "causal", 0.3, tol=FINE[dtype] * 8)


def test_a_row_that_may_attend_to_nothing_is_zero(pair: Pair) -> None:
    mask = np.array([[True, False, True], [False, False, False]])
    (out,) = pair.call("attention", draw((2, 4)), draw((3, 4)), draw((3, 4)), mask, False, 1.0, grad=False)
    assert out[0].any()
    assert not out[1].any()


@pytest.mark.parametrize("is_causal", [True, False])
def test_scaled_dot_product_attention_through_the_client_s_op(pair: Pair, is_causal: bool) -> None:
    q, k, v = (draw((2, 2, 5, 4), seed=i) for i in range(3))
    pair.call("scaled_dot_product_attention", q, k, v, None, 0.0, is_causal)


def test_a_result_between_two_blocks_is_written_there(pair: Pair) -> None:
    xp = pair.device.backends["cpu"].xp
    memory = StrictArray(np.zeros(4 * 12 + 32, np.uint8))
    start = -memory.data.ptr % 16 + 4
    out = StrictArray(memory._array[start : start + 4 * 12].view(np.float32).reshape(3, 4))
    a, b = draw((3, 5)), draw((5, 4))
    assert multiply(xp, StrictArray(a), StrictArray(b), False, out=out) is out
    np.testing.assert_allclose(out._array, a @ b, rtol=1e-5, atol=1e-6)
