"""Compiled matrix products against NumPy's in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.engine.compiled_kernels import compiled, declines, kernels, same_bits_for_any_threads

__all__ = ["kernels"]

pytestmark = pytest.mark.timeout(900)  # where nothing is in the cache, the first test waits for all kernels

GENERATOR = np.random.default_rng(11)

SHAPES = [
    # rows, terms, columns
    (128, 784, 256),
    (64, 1000, 64),
    (97, 113, 131),
    (9, 3001, 47),
    (601, 57, 33),
    (1021, 8, 129),
    (127, 512, 17),
    (8, 1024, 145),
    (12, 700, 130),
    (133, 255, 16),
    (61, 257, 80),
]

FORMS = ["NN", "NT", "TN", "TT"]


def _matrix(rows: int, columns: int, form: str, dtype: str, lead: tuple[int, ...] = ()) -> Any:
    """With rows (N) or columns (T) that are consecutive in memory."""
    if form == "N":
        return GENERATOR.standard_normal((*lead, rows, columns)).astype(dtype)
    return GENERATOR.standard_normal((*lead, columns, rows)).astype(dtype).swapaxes(-1, -2)


def _operands(shape: tuple[int, int, int], form: str, dtype: str, lead: tuple[int, ...] = ()) -> Any:
    rows, terms, columns = shape
    return _matrix(rows, terms, form[0], dtype, lead), _matrix(terms, columns, form[1], dtype, lead)


def _near(ours: Any, a: Any, b: Any, first: Any = None) -> None:
    """Within the bound on the rounding of two sums, for each element by the size of its own terms."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    theirs, size = x @ y, np.abs(x) @ np.abs(y)
    if first is not None:
        theirs, size = theirs + first, size + np.abs(first)
    assert ours.dtype == a.dtype
    assert ours.shape == theirs.shape
    assert ours.flags.c_contiguous
    assert (np.abs(ours - theirs) <= 2 * (a.shape[-1] + 1) * np.finfo(a.dtype).eps * size).all()


@pytest.fixture(autouse=True)
def _of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernels have sizes that they leave to BLAS because it is faster there."""
    from gradwire_engine.kernels.cpu.kernels import products

    monkeypatch.setattr(products, "SMALLEST", 0)
    monkeypatch.setattr(products, "SMALLEST_TURNED", 0)
    monkeypatch.setattr(products, "SMALLEST_OF_STACK", 0)
    monkeypatch.setattr(products, "LARGEST_TURNED", 1 << 40)
    monkeypatch.setattr(products, "LEAST", 1)
    monkeypatch.setattr(products, "_ways", {})  # chosen by other sizes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_are_the_sums_of_their_terms(shape: tuple[int, int, int], form: str, dtype: str) -> None:
    a, b = _operands(shape, form, dtype)
    _near(compiled("mm", a, b), a, b)
    first = GENERATOR.standard_normal(shape[2]).astype(dtype)
    _near(compiled("addmm", first, a, b, 1, 1), a, b, first)


@pytest.mark.parametrize("form", FORMS)
def test_all_small_extents(form: str) -> None:
    for rows in (1, 4, 5, 8, 9, 17):
        for terms in (1, 15, 17):
            for columns in (1, 8, 15, 16, 17, 33, 48, 65):
                a, b = _operands((rows, terms, columns), form, "float32")
                _near(compiled("mm", a, b), a, b)


def test_small_and_large_and_empty_products_are_left_to_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for shape in ((4, 4, 4), (0, 64, 64), (64, 0, 64), (64, 64, 0), (1, 4096, 4096), (1024, 1024, 1024)):
        assert declines("mm", np.zeros(shape[:2], np.float32), np.zeros(shape[1:], np.float32))
        assert declines("mm", np.zeros(shape[1::-1], np.float32).T, np.zeros(shape[:0:-1], np.float32).T)
    a, b = _operands((128, 784, 256), "NN", "float32")
    assert declines("mm", a.astype(np.complex64), b.astype(np.complex64))
    assert declines("mm", a.astype(np.int64), b.astype(np.int64))
    assert declines("matmul", a[0], b)
    assert declines("addmm", b[:128], a, b, 2, 1)
    assert not declines("mm", a, b)


@pytest.mark.parametrize("form", FORMS)
def test_stacks_of_matrices(form: str) -> None:
    for lead in ((5,), (2, 3)):
        a, b = _operands((33, 64, 50), form, "float32", lead)
        _near(compiled("matmul", a, b), a, b)
        _near(compiled("matmul", a, b[..., :1, :, :] if len(lead) > 1 else b[:1]), a, b[..., :1, :, :])
        _near(compiled("matmul", a[0] if len(lead) > 1 else a[:1], b), a[:1], b)
    a, b = _operands((33, 64, 50), form, "float32", (5,))
    first = GENERATOR.standard_normal((5, 1, 50)).astype(np.float32)
    _near(compiled("bmm", a, b), a, b)
    _near(compiled("baddbmm", first, a, b, 1, 1), a, b, first)
    _near(compiled("matmul", a, b[2]), a, b[2])


def test_heads_are_read_where_they_lie() -> None:
    together = GENERATOR.standard_normal((2, 40, 3, 4, 24)).astype(np.float32)
    q, k, v = together.transpose(2, 0, 3, 1, 4)
    _near(compiled("matmul", q, k.swapaxes(-1, -2)), q, k.swapaxes(-1, -2))
    weights = GENERATOR.standard_normal((2, 4, 40, 40)).astype(np.float32)
    _near(compiled("matmul", weights, v), weights, v)
    _near(compiled("matmul", weights.swapaxes(-1, -2), v), weights.swapaxes(-1, -2), v)


def test_operands_may_lie_in_memory_as_they_like() -> None:
    a, b = _operands((200, 300, 160), "NN", "float32")
    for x in (a[::2], a[:, ::-1][::-1], a[:, 3:203], np.broadcast_to(a[0], a.shape), a[::3, ::2]):
        y = b[: x.shape[1]]
        for z in (y, y[:, ::-1], y[::-1], y[:, 5:90], y[:, ::2], np.broadcast_to(y[:, :1], y.shape)):
            _near(compiled("mm", x, z), x, z)


def test_a_layer_takes_any_leading_dimensions() -> None:
    x = GENERATOR.standard_normal((3, 20, 70)).astype(np.float32)
    weight = GENERATOR.standard_normal((90, 70)).astype(np.float32)
    bias = GENERATOR.standard_normal(90).astype(np.float32)
    _near(compiled("linear", x, weight, None), x, weight.T)
    _near(compiled("linear", x, weight, bias), x, weight.T, bias)
    _near(compiled("linear", x.swapaxes(0, 1), weight, bias), x.swapaxes(0, 1), weight.T, bias)
    assert declines("linear", x, weight[0], None)
    assert declines("linear", x[:0], weight, bias)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_finite_stays_in_its_rows_and_columns(form: str) -> None:
    a, b = _operands((50, 70, 49), form, "float32")
    a[13, 5], a[49, 69], b[6, 48], b[30, 0] = np.nan, np.inf, -np.inf, np.nan
    ours = compiled("mm", a, b)
    with np.errstate(all="ignore"):
        theirs = a @ b
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(theirs))
    finite = np.isfinite(theirs)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=0, atol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_the_number_of_threads_does_not_change_bits(form: str) -> None:
    a, b = _operands((700, 300, 250), form, "float32")
    same_bits_for_any_threads(lambda: compiled("mm", a, b))
    a, b = _operands((100, 64, 90), form, "float32", (4, 5))
    same_bits_for_any_threads(lambda: compiled("matmul", a, b))


def test_a_row_has_the_same_bits_among_any_others() -> None:
    a, b = _operands((96, 600, 100), "NN", "float32")
    whole = compiled("mm", a, b)
    for rows in (slice(0, 8), slice(40, 43), slice(95, 96)):
        assert compiled("mm", a[rows], b).tobytes() == whole[rows].tobytes()


TOGETHER = """
import numpy as np
from gradwire_engine import ops  # noqa: F401  (fills the registry)
from gradwire_engine.kernels.cpu import threads, toolchain
from gradwire_engine.autograd.registry import row
assert toolchain.wait()
generator = np.random.default_rng(5)
x, w, g = (generator.standard_normal(shape, dtype=np.float32) for shape in [(128, 784), (256, 784), (128, 256)])
linear, matmul = row("linear").compiled, row("matmul").compiled
for form in (lambda: linear(np, x, w, None), lambda: matmul(np, g.T, x), lambda: matmul(np, g, w)):
    threads.use_threads(1)
    alone = form()
    threads.use_threads(2)
    assert all(np.array_equal(form(), alone) for _ in range(50))
"""


def test_threads_that_share_one_arena_do_not_share_their_panels():
    # As in a server: what one thread frees is what the other is given next.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
    run = subprocess.run(
        [sys.executable, "-c", TOGETHER], env=environment, timeout=300, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
