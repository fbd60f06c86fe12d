"""The compiled attention and its gradient are NumPy's, for any mask, size, layout and number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradwire_engine.kernels.cpu import threads

from .compiled_kernels import close, compiled, declines, kernels, plain, same_bits_for_any_threads

__all__ = ["kernels"]

Random = np.random.Generator
SCALE = 0.25

MASKS: dict[str, Callable[[Random, int, int], Any]] = {
    "none": lambda random, rows, cols: None,
    "causal": lambda random, rows, cols: None,
    "bool": lambda random, rows, cols: random.random((rows, cols)) < 0.6,
    "bool that forbids a row all": lambda random, rows, cols: np.arange(rows)[:, None] > np.zeros((1, cols)),
    "for each head": lambda random, rows, cols: random.standard_normal((1, 2, rows, cols), "float32"),
    "for each key": lambda random, rows, cols: random.standard_normal((1, cols), "float32"),
}

LAYOUTS: dict[str, Callable[[Random, int, int], np.ndarray[Any, Any]]] = {
    "in order": lambda random, rows, size: random.standard_normal((3, 2, rows, size), "float32"),
    "heads side by side": lambda random, rows, size: random.standard_normal((3, rows, 2, size), "float32").swapaxes(
        1, 2
    ),
    "a part of a projection": lambda random, rows, size: random.standard_normal(
        (3, rows, 3, 2, size), "float32"
    ).transpose(2, 0, 3, 1, 4)[1],
    "turned": lambda random, rows, size: random.standard_normal((3, 2, size, rows), "float32").swapaxes(2, 3),
    "of every second row": lambda random, rows, size: random.standard_normal((3, 2, 2 * rows, size), "float32")[
        :, :, ::2
    ],
    "backwards": lambda random, rows, size: random.standard_normal((3, 2, rows, size), "float32")[..., ::-1],
    "the same for all": lambda random, rows, size: np.broadcast_to(
        random.standard_normal((1, 1, rows, size), "float32"), (3, 2, rows, size)
    ),
}


def both(name: str, *arguments: Any, factor: float = 4) -> Any:
    made = compiled(name, *arguments)
    close(made, plain(name, *arguments), factor)
    return made


def check(random: Random, q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False) -> None:
    out, weights = both("attention", q, k, v, mask, causal, SCALE)
    both("attention_backward", random.standard_normal(out.shape, "float32"), q, k, v, weights, SCALE)


@pytest.mark.parametrize(
    "rows, cols", [(1, 1), (9, 17), (64, 64), (65, 65), (130, 33), (300, 257), (300, 500), (700, 700)]
)
@pytest.mark.parametrize("mask", MASKS)
def test_masks_and_sizes(mask: str, rows: int, cols: int) -> None:
    random = np.random.default_rng(11)
    q, k, v = (random.standard_normal((3, 2, n, 16), "float32") for n in (rows, cols, cols))
    check(random, q, k, v, MASKS[mask](random, rows, cols), mask == "causal")


@pytest.mark.parametrize("size, wide", [(1, 1), (3, 5), (8, 8), (24, 25), (64, 64), (300, 20), (256, 300)])
def test_any_size_of_a_head(size: int, wide: int) -> None:
    random = np.random.default_rng(12)
    for rows, cols in ((20, 31), (257, 300)):
        q, k = (random.standard_normal((2, 1, n, size), "float32") for n in (rows, cols))
        check(random, q, k, random.standard_normal((2, 1, cols, wide), "float32"), causal=rows > cols // 2)


@pytest.mark.parametrize("of_value", LAYOUTS)
@pytest.mark.parametrize("of_key", LAYOUTS)
def test_layouts(of_key: str, of_value: str) -> None:
    random = np.random.default_rng(13)
    q, k, v = LAYOUTS[of_value](random, 20, 24), LAYOUTS[of_key](random, 33, 24), LAYOUTS[of_value](random, 33, 24)
    check(random, q, k, v)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3), (2, 1, 3)])
def test_any_number_of_leading_dimensions(lead: tuple[int, ...]) -> None:
    random = np.random.default_rng(14)
    check(random, *(random.standard_normal((*lead, n, 16), "float32") for n in (20, 33, 33)))


def test_a_gradient_in_double_precision() -> None:
    random = np.random.default_rng(15)
    g, q, k, v = (random.standard_normal((2, 2, n, 16)) for n in (20, 20, 33, 33))
    weights = plain("attention", q, k, v, None, False, SCALE)[1]
    both("attention_backward", g, q, k, v, weights, SCALE)
    assert declines("attention", q, k, v, None, False, SCALE)


@pytest.mark.parametrize("rows, causal", [(20, False), (65, True), (600, True)])
def test_the_number_of_threads_changes_nothing(rows: int, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "SHARE", 1)
    random = np.random.default_rng(16)
    g, q, k, v = (random.standard_normal((3, 2, rows, 40), "float32") for _ in range(4))
    same_bits_for_any_threads(lambda: compiled("attention", q, k, v, None, causal, SCALE))
    weights = compiled("attention", q, k, v, None, causal, SCALE)[1]
    same_bits_for_any_threads(lambda: compiled("attention_backward", g, q, k, v, weights, SCALE))


def test_what_is_not_finite_stays_in_its_row() -> None:
    random = np.random.default_rng(17)
    q, k, v = (random.standard_normal((1, 1, n, 8), "float32") for n in (70, 30, 30))
    q[0, 0, 5, 2] = np.nan
    out, weights = compiled("attention", q, k, v, None, False, SCALE)
    assert np.isnan(out[0, 0, 5]).all()
    assert np.isnan(weights[0, 0, 5]).all()
    assert np.isfinite(np.delete(out, 5, axis=2)).all()


@pytest.mark.parametrize("size, wide", [(0, 5), (5, 0)])
def test_heads_without_elements_are_left_to_numpy(size: int, wide: int) -> None:
    q, k, v = np.ones((2, 3, size), "f"), np.ones((2, 4, size), "f"), np.ones((2, 4, wide), "f")
    assert declines("attention", q, k, v, None, False, SCALE) == (size == 0)
    out, weights = plain("attention", q, k, v, None, False, SCALE)
    assert (weights == 0.25).all()
    assert declines("attention_backward", out, q, k, v, weights, SCALE)


def test_rows_of_one_element_that_share_memory() -> None:
    random = np.random.default_rng(18)
    q, k = (random.standard_normal((2, 2, n, 8), "float32") for n in (20, 33))
    one = np.broadcast_to(random.standard_normal((1, 1, 1, 1), "float32"), (2, 2, 33, 1))
    out, weights = both("attention", q, k, one, None, False, SCALE)
    both("attention_backward", one[:, :, :20], q, k, one, weights, SCALE)
    out, levels = both("flash_attention", q, k, one, None, None, False, SCALE, 0.0)
    both("flash_attention_backward", one[:, :, :20], q, k, one, None, None, levels, False, SCALE, 0.0)


# Weights that are recomputed

STATE = np.array([7, 100])


def check_recomputed(random: Random, q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False) -> None:
    for state, p in ((None, 0.0), (STATE, 0.3)):
        out, levels = both("flash_attention", q, k, v, mask, state, causal, SCALE, p)
        g = random.standard_normal(out.shape, "float32")
        both("flash_attention_backward", g, q, k, v, mask, state, levels, causal, SCALE, p, factor=8)


@pytest.mark.parametrize("rows, cols", [(9, 17), (64, 64), (65, 65), (130, 33), (300, 257), (300, 500), (1500, 1400)])
@pytest.mark.parametrize("mask", MASKS)
def test_masks_and_sizes_where_weights_are_recomputed(mask: str, rows: int, cols: int) -> None:
    random = np.random.default_rng(21)
    q, k, v = (random.standard_normal((3, 2, n, 16), "float32") for n in (rows, cols, cols))
    given = MASKS[mask](random, rows, cols)
    check_recomputed(random, q, k, v, given, mask == "causal")


@pytest.mark.parametrize("size, wide", [(1, 1), (3, 5), (8, 8), (24, 25), (64, 64), (300, 20), (256, 300)])
def test_any_size_of_a_head_where_weights_are_recomputed(size: int, wide: int) -> None:
    random = np.random.default_rng(22)
    for rows, cols in ((20, 31), (257, 300)):
        q, k = (random.standard_normal((2, 1, n, size), "float32") for n in (rows, cols))
        check_recomputed(random, q, k, random.standard_normal((2, 1, cols, wide), "float32"), causal=rows > cols // 2)


@pytest.mark.parametrize("of_value", LAYOUTS)
@pytest.mark.parametrize("of_key", LAYOUTS)
def test_layouts_where_weights_are_recomputed(of_key: str, of_value: str) -> None:
    random = np.random.default_rng(23)
    q, k, v = LAYOUTS[of_value](random, 70, 24), LAYOUTS[of_key](random, 33, 24), LAYOUTS[of_value](random, 33, 24)
    check_recomputed(random, q, k, v)


@pytest.mark.parametrize("lead", [(), (4,), (2, 3), (2, 1, 3)])
def test_any_number_of_leading_dimensions_where_weights_are_recomputed(lead: tuple[int, ...]) -> None:
    random = np.random.default_rng(24)
    q, k, v = (random.standard_normal((*lead, n, 16), "float32") for n in (20, 33, 33))
    for mask in (None, random.random((*lead, 20, 33)) < 0.7, random.standard_normal((*lead[:-1], 1, 1, 33), "float32")):
        check_recomputed(random, q, k, v, mask if lead or mask is None else mask.reshape(-1, 33))


def test_half_precision_is_computed_in_float32() -> None:
    random = np.random.default_rng(25)
    q, k, v = (random.standard_normal((2, 2, n, 16)).astype("float16") for n in (20, 33, 33))
    check_recomputed(random, q, k, v)


@pytest.mark.parametrize("rows, causal", [(20, False), (65, True), (600, True)])
def test_threads_change_nothing_where_weights_are_recomputed(
    rows: int, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "SHARE", 1)
    random = np.random.default_rng(26)
    g, q, k, v = (random.standard_normal((3, 2, rows, 40), "float32") for _ in range(4))
    forward = (q, k, v, None, STATE, causal, SCALE, 0.2)
    same_bits_for_any_threads(lambda: compiled("flash_attention", *forward))
    levels = compiled("flash_attention", *forward)[1]
    backward = (g, q, k, v, None, STATE, levels, causal, SCALE, 0.2)
    same_bits_for_any_threads(lambda: compiled("flash_attention_backward", *backward))


def test_double_precision_and_empty_heads_are_left_to_numpy_where_weights_are_recomputed() -> None:
    for shape, dtype in (((2, 3, 4), "d"), ((2, 3, 0), "f"), ((2, 0, 4), "f")):
        x = np.ones(shape, dtype)
        assert declines("flash_attention", x, x, x, None, None, False, SCALE, 0.0)
