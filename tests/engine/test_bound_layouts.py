"""A compiled kernel that is bound to one layout of its arguments gives the same bits as the unbound kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradwire as torch
from gradwire_engine.autograd.registry import row
from gradwire_engine.kernels.cpu import threads
from gradwire_engine.session.plan_cache import Plans
from tests.engine.compiled_kernels import compiled, declines, kernels, plain
from tests.engine.recordings import new_session, recording

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

GENERATOR = np.random.default_rng(17)


def made(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape).astype(np.float32)


CLASSES = GENERATOR.integers(0, 10, 128)

CASES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a matrix times one that is turned": ("matmul", (made(64, 64), made(64, 64).T)),
    "a large product": ("mm", (made(130, 200), made(200, 110))),
    "a turned matrix times another": ("matmul", (made(200, 130).T, made(200, 110))),
    "a stack": ("bmm", (made(3, 64, 80), made(3, 70, 80).swapaxes(1, 2))),
    "a layer": ("linear", (made(128, 100), made(90, 100), made(90))),
    "a layer without bias": ("linear", (made(128, 100), made(90, 100), None)),
    "a product and a row": ("addmm", (made(110), made(130, 200), made(200, 110), 1, 1)),
    "a product and a matrix": ("addmm", (made(130, 110), made(130, 200), made(200, 110), 1, 1)),
    "relu": ("relu", (made(33, 7),)),
    "relu of what is turned": ("relu", (made(33, 7).T,)),
    "the gradient of relu": ("threshold_backward", (made(33, 7), made(33, 7), 0)),
    "the gradient of relu, repeated": (
        "threshold_backward", (np.broadcast_to(np.float32(0.5), (33, 7)), made(33, 7), 0)
    ),
    "rows added up": ("sum_to_size", (made(128, 10), (10,))),
    "rows added up in several blocks": ("sum_to_size", (made(5, 4, 600), (600,))),
    "rows added up, kept as one": ("sum_to_size", (made(40, 50), (1, 50))),
    "cross entropy": ("cross_entropy", (made(128, 10), CLASSES, None, -100, "mean", 0.0)),
    "cross entropy, added up": ("cross_entropy", (made(128, 10), CLASSES, None, 3, "sum", 0.0)),
    "the gradient of cross entropy": (
        "cross_entropy_backward", (np.array(0.5, np.float32), made(128, 10), CLASSES, None, 3, True, 0.0)
    ),
}  # fmt: skip


def parts(result: Any) -> list[Any]:
    return [np.asarray(each) for each in (result if type(result) is tuple else (result,))]


@pytest.mark.parametrize("name, arguments", CASES.values(), ids=list(CASES))
def test_what_is_settled_is_what_the_kernel_computes(name: str, arguments: tuple[Any, ...]) -> None:
    settle = row(name).settle
    assert settle is not None
    way = settle(*arguments)
    assert way is not None
    others = [
        GENERATOR.permuted(a) if a.ndim and a.dtype.kind == "f" and 0 not in a.strides else a.copy()
        for a in arrays_of(arguments)
    ]
    for arrays in (arrays_of(arguments), [alike(a, b) for a, b in zip(arrays_of(arguments), others, strict=True)]):
        rest = iter(arrays)
        found = parts(way(*arrays))
        expected = parts(compiled(name, *[next(rest) if isinstance(a, np.ndarray) else a for a in arguments]))
        assert [a.tobytes() for a in found] == [a.tobytes() for a in expected]
        assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in expected]


def arrays_of(arguments: tuple[Any, ...]) -> list[Any]:
    return [a for a in arguments if isinstance(a, np.ndarray)]


def alike(array: Any, values: Any) -> Any:
    """These values, laid out in memory as the array."""
    if 0 in array.strides:
        return array  # it has one value
    out = np.empty_like(array)
    assert out.strides == array.strides
    out[...] = values
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [7, 4096, (1 << 17) + 5])
def test_a_cut_at_zero_lets_nan_pass_and_leaves_no_negative_zero(dtype: str, size: int) -> None:
    x = np.resize(np.array([np.nan, -0.0, 0.0, 1.5, -1.5, np.inf, -np.inf, 5e-45], dtype), size)
    g = np.resize(np.array([3.0, np.nan, -np.inf, -0.0, 2.0], dtype), size)
    for count in (1, 2):
        threads.use_threads(count)
        with np.errstate(all="ignore"):
            cut, passed = compiled("relu", x), compiled("threshold_backward", g, x, 0)
        assert cut.tobytes() == np.where(x <= 0, 0, x).astype(dtype).tobytes()
        assert passed.tobytes() == np.where(x <= 0, 0, g).astype(dtype).tobytes()
        assert passed.tobytes() == plain("threshold_backward", g, x, 0).tobytes()


def test_integers_and_other_dtypes_are_left_to_numpy() -> None:
    assert declines("relu", np.arange(5))
    assert declines("threshold_backward", np.ones(5), np.ones(5, np.float32), 0)
    assert declines("sum_to_size", np.ones((40, 50), np.int64), (50,))


@pytest.mark.parametrize("size", [(70,), (1, 70), (60, 1), (60, 70), (1, 1), ()], ids=str)
def test_sums_to_a_size(size: tuple[int, ...]) -> None:
    x = made(60, 70)
    found = row("sum_to_size").compiled(np, x, size)  # type: ignore[misc]
    if found is not NotImplemented:
        assert found.shape == size
        np.testing.assert_allclose(
            found.ravel(), plain("sum_to_size", x.astype("d"), size).ravel(), rtol=1e-5, atol=1e-5
        )


def test_a_class_that_there_is_not_is_named() -> None:
    from gradwire_protocol.errors import IndexOutOfRange

    classes = np.array([1, 4, 2])
    with pytest.raises(IndexOutOfRange, match="class 4 is outside the 3"):
        compiled("cross_entropy", made(3, 3), classes, None, -100, "mean", 0.0)


def layers() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(96, 80), torch.nn.ReLU(), torch.nn.Linear(80, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(64, 96), torch.randint(0, 10, (64,))
    for _ in range(6):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()


def chain() -> None:
    x, w = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64, requires_grad=True)
    for _ in range(6):
        x.grad = w.grad = None
        h = x
        for _ in range(3):
            h = torch.relu(h @ w)
        h.mean().backward()
        x.grad.tolist()


@pytest.mark.parametrize("program", [layers, chain])
def test_plans_with_compiled_kernels_are_the_tape(program: Any) -> None:
    with recording() as (recorded, _):
        program()
    answers = []
    for plans in (None, Plans()):
        session = new_session()
        session.plans = plans
        session.run_compiled(True)
        answers.append(recorded.replayed(session))
    assert answers[0] == answers[1]
    assert plans is not None
    assert plans.statistics.hits >= 3, plans.describe()
