"""CuPy as kernels see it, over the stand-in: the same results, without what a capture refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tests.strict_backend as strict
from gradwire_engine.runtime.cuda import graphs
from tests.cuda_emulation import AVAILABLE, EmulatedBackend
from tests.strict_backend import StrictArray

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="needs g++")


def draw(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def xp():
    return EmulatedBackend().xp


@pytest.fixture
def capture(monkeypatch):
    """A capture of this thread, as the stand-in and the engine's graphs know it."""

    def begin():
        monkeypatch.setattr(strict, "LAUNCHES", [])
        monkeypatch.setattr(graphs._capturing, "held", [])

    return begin


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,))],
)
def test_products(xp, a, b):
    left, right = draw(*a), draw(*b)
    np.testing.assert_allclose(
        xp.matmul(StrictArray(left), StrictArray(right))._array, left @ right, rtol=1e-5, atol=1e-6
    )


def test_a_product_is_written_where_it_is_asked_for(xp):
    left, right = draw(3, 4), draw(4, 5)
    for order in ("C", "F"):
        out = StrictArray(np.zeros((3, 5), np.float32, order))
        assert xp.matmul(StrictArray(left), StrictArray(right), out=out) is out
        np.testing.assert_allclose(out._array, left @ right, rtol=1e-5, atol=1e-6)


def test_dot_products_of_rows(xp):
    left, right = draw(3, 40), draw(3, 40)
    found = xp.einsum("ij,ij->i", StrictArray(left), StrictArray(right))._array
    np.testing.assert_allclose(found, (left * right).sum(1), rtol=1e-5)


def test_host_arrays_are_there_during_a_capture_if_they_were_before(xp, capture):
    table = np.arange(6.0).reshape(2, 3)
    first = xp.asarray(table)
    first += 1.0  # is the caller's own
    capture()
    np.testing.assert_array_equal(xp.asarray(table.copy())._array, table)
    np.testing.assert_array_equal(xp.asarray(table.tolist(), np.float64)._array, table)
    assert len(graphs._capturing.held) == 2
    with pytest.raises(RuntimeError):
        xp.asarray(table + 1)
    with pytest.raises(RuntimeError):
        xp.asarray(table, np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arrays_are_joined_during_a_capture(xp, capture, axis):
    parts = [draw(2, 3, 4), draw(2, 3, 4).astype(np.float64), draw(2, 3, 4)[:, :, ::-1]]
    capture()
    given = [StrictArray(part) for part in parts]
    for name in ("concatenate", "stack"):
        found, wanted = getattr(xp, name)(given, axis=axis)._array, getattr(np, name)(parts, axis=axis)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
