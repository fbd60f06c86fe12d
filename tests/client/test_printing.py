"""Tensors print the same text as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from gradwire._core.tensor import printing

NUMPY_DTYPES: dict[str, Any] = {
    "bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int16": np.int16, "int32": np.int32,
    "int64": np.int64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32,
    "float64": np.float64, "complex64": np.complex64, "complex128": np.complex128,
}  # fmt: skip
FLOATS = ("float16", "bfloat16", "float32", "float64")
NAN, INF = math.nan, math.inf

torch_printing: Any = torch._tensor_str  # torch.printoptions does not exist


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    set_both(profile="default")


def set_both(**options: Any) -> None:
    torch_printing.set_printoptions(**options)
    printing.set_printoptions(**options)


def array_of(data: Any, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(data).astype(NUMPY_DTYPES[dtype])


def oracle_of(array: np.ndarray) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def assert_same_text(array: np.ndarray, **options: Any) -> None:
    """Compare the text of the array with the oracle's, from the whole array and from its edges alone."""
    dtype = next(name for name, numpy_dtype in NUMPY_DTYPES.items() if array.dtype == numpy_dtype)
    with torch_printing.printoptions(**options):
        expected = repr(oracle_of(array))
    with printing.printoptions(**options):
        index = printing.summary_index(array.shape)
        edges = array if index is None else array[np.ix_(*index)]
        for values in (array, edges, lambda _: edges):
            assert printing.format_tensor(values, shape=array.shape, dtype=dtype) == expected


def text_of(values: Any, dtype: str = "float32", **described: Any) -> str:
    array = array_of(values, dtype)
    return printing.format_tensor(array, shape=array.shape, dtype=dtype, **described)


FLOAT_CASES: list[Any] = [
    [], 0.0, -0.0, 5.0, 2.5, NAN, INF, -INF, 1e-5, 1e10,
    [1, 2], [1.5, 2], [-1, 10], [1, -10.25], [0.0, -0.0], [-0.0, 1], [-0.0, 1.5],
    [NAN, 1], [NAN, 1.5], [INF, -INF, 0.5], [-INF, 1], [NAN, INF, 0], [NAN] * 50, [0.0] * 50,
    [1, 1000], [1, 1001], [1000.5, 1], [1000.5, 1.0006], [0.1, 100], [0.1, 101], [0.3333, 1e6],
    [1e8], [100000008.0], [99999999.5], [1e8 + 0.5], [1e-4], [9.9e-5], [1.1e-4], [1e-10, 1], [1e10, 1],
    [1e300], [5e-324, 1], [1.7e308, 5e-324], [1e-45], [65504, 0.1], [0.00005, 0.00006],
    [0.99999, 0.1], [9.99999, 1], [0.5, 1.5, 2.5], [1e5 + 0.5], [-1e-7, 3], [1e100, -1e-100, 2e-200],
    np.arange(7) / 7, np.arange(100), np.arange(100) / 3, np.arange(-50, 50) * 1e6,
    np.arange(24).reshape(2, 3, 4), np.arange(24).reshape(1, 2, 1, 3, 4) / 5, np.ones((1, 1, 1, 1)),
    np.zeros((0, 3)), np.zeros((2, 0, 3)), np.zeros((0,)), np.arange(80).reshape(2, 40) / 3,
    np.arange(1000), np.arange(1001), np.arange(2000) / 7, np.arange(1200).reshape(2, 600) / 7,
    np.arange(1200).reshape(600, 2), np.arange(6000).reshape(10, 20, 30) - 3000.5, np.ones((7, 8, 9, 10)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("values", FLOAT_CASES, ids=range(len(FLOAT_CASES)))
def test_floats_print_as_in_torch(values: Any, dtype: str) -> None:
    assert_same_text(array_of(values, dtype))


INTEGER_CASES: list[Any] = [
    [], 0, 7, 100, [1, 20, 100], [[1], [100]], np.arange(100), np.zeros((0, 2)), np.ones((3, 0)),
    np.arange(1100) % 100, np.arange(1500).reshape(15, 100) % 120, np.ones((30, 40)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("values", INTEGER_CASES, ids=range(len(INTEGER_CASES)))
def test_integers_and_booleans_print_as_in_torch(values: Any, dtype: str) -> None:
    assert_same_text(array_of(values, dtype))
    if dtype not in ("bool", "uint8"):
        assert_same_text(np.asarray(-array_of(values, dtype)))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_the_widest_integers_print_as_in_torch(dtype: str) -> None:
    limits = np.iinfo(dtype)
    assert_same_text(np.array([limits.min, 0, limits.max], dtype))


COMPLEX_CASES: list[Any] = [
    [], 0j, 3j, 1 - 2j, complex(-0.0, -0.0), complex(NAN, NAN), complex(1, -INF), complex(INF, 0),
    0.1 + 1e-9j, [1 + 2j, NAN], [1.5 + 2j, -3 - 1j], [1e10 + 1j, 1], [1j, 1e-8j], [100 + 1j, 1 - 100j],
    np.arange(30) * 1j, np.zeros(50), np.arange(50) * (1 - 0.3j), np.zeros((0, 3)),
    np.arange(1200).reshape(3, 400) * (0.5 + 1j),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("values", COMPLEX_CASES, ids=range(len(COMPLEX_CASES)))
def test_complex_numbers_print_as_in_torch(values: Any, dtype: str) -> None:
    assert_same_text(array_of(values, dtype))


OPTION_CASES: list[dict[str, Any]] = [
    {"sci_mode": True}, {"sci_mode": False}, {"sci_mode": True, "precision": 1}, {"precision": 0},
    {"precision": 12}, {"profile": "short"}, {"profile": "full"}, {"linewidth": 20}, {"linewidth": 0},
    {"linewidth": 200}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"threshold": -1},
    {"threshold": 5, "edgeitems": 2, "linewidth": 30}, {"edgeitems": 0}, {"edgeitems": 0, "threshold": 3},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTION_CASES, ids=str)
def test_options_change_the_text_as_in_torch(options: dict[str, Any]) -> None:
    for values in FLOAT_CASES[:-9]:
        assert_same_text(array_of(values, "float32"), **options)
    for values in COMPLEX_CASES:
        assert_same_text(array_of(values, "complex128"), **options)
    for values in INTEGER_CASES[:-3]:
        assert_same_text(array_of(values, "int16"), **options)


def elements(kind: str) -> st.SearchStrategy[float]:
    """Numbers of one kind, so that an array of them is likely to stay in one notation."""
    specials = st.sampled_from([0.0, -0.0, NAN, INF, -INF])
    kinds: dict[str, st.SearchStrategy[float]] = {
        "any": st.floats(),
        "whole": st.integers(-3000, 3000).map(float),
        "large": st.integers(-(10**10), 10**10).map(float),
        "plain": st.floats(-500, 500).filter(lambda x: abs(x) > 0.5),
        "small": st.floats(-1, 1),
        "decimal": st.builds(lambda m, e: m * 10.0**e, st.integers(-99, 99), st.integers(-6, 9)),
    }
    return st.one_of(kinds[kind], kinds[kind], specials) if kind != "any" else kinds[kind]


float_kinds = st.sampled_from(["any", "whole", "large", "plain", "small", "decimal"])
shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=7)
print_options = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 8),
        "threshold": st.sampled_from([-1, 0, 10, 100, INF]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(0, 120),
        "profile": st.sampled_from(["default", "short", "full"]),
        "sci_mode": st.booleans() | st.none(),
    },
)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(list(NUMPY_DTYPES)))
    shape = draw(shapes)
    if dtype.startswith(("bool", "int", "uint")):
        integers: np.ndarray = draw(npst.arrays(NUMPY_DTYPES[dtype], shape))
        return integers
    parts = [draw(npst.arrays(np.float64, shape, elements=elements(draw(float_kinds))))]
    if dtype.startswith("complex"):
        parts.append(draw(npst.arrays(np.float64, shape, elements=elements(draw(float_kinds)))))
        both = np.empty(shape, np.complex128)
        both.real, both.imag = parts
        return array_of(both, dtype)
    return array_of(parts[0], dtype)


@given(array=arrays(), options=print_options)
@settings(max_examples=350, suppress_health_check=list(HealthCheck))
def test_any_array_prints_as_in_torch(array: np.ndarray, options: dict[str, Any]) -> None:
    assert_same_text(array, **options)


@given(
    length=st.integers(900, 3000),
    rows=st.integers(1, 20),
    scale=st.sampled_from([1e-6, 1e-3, 1, 1e3, 1e7]),
    dtype=st.sampled_from(list(NUMPY_DTYPES)),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40)
def test_any_large_array_prints_as_in_torch(length: int, rows: int, scale: float, dtype: str, seed: int) -> None:
    numbers = np.random.default_rng(seed).standard_normal((rows, length // rows)) * scale
    with np.errstate(invalid="ignore"):
        assert_same_text(array_of(numbers, dtype))


@given(
    array=arrays().filter(lambda array: array.dtype.kind not in "biu"),
    linewidth=st.integers(20, 100),
    default=st.sampled_from(["float32", "float64"]),
    from_op=st.booleans(),
)
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
def test_entries_after_the_values_wrap_as_in_torch(
    array: np.ndarray, linewidth: int, default: str, from_op: bool
) -> None:
    oracle = oracle_of(array).requires_grad_()
    if from_op:
        oracle = oracle.view_as(oracle)
    torch.set_default_dtype(getattr(torch, default))
    try:
        with torch_printing.printoptions(linewidth=linewidth):
            expected = repr(oracle)
    finally:
        torch.set_default_dtype(torch.float32)
    text = printing.format_tensor(
        array, shape=array.shape, dtype=str(oracle.dtype).removeprefix("torch."), requires_grad=True,
        grad_fn_name="ViewBackward0" if from_op else None, default_dtype=default,
        default_complex="complex128" if default == "float64" else "complex64",
        options=printing.PrintOptions(linewidth=linewidth),
    )  # fmt: skip
    assert text == expected


def test_a_result_names_the_node_that_made_it() -> None:
    matrix = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    expected = "tensor([[1., 2.],\n        [3., 4.]], grad_fn=<MulBackward0>)"
    assert repr(matrix * 1) == expected
    assert text_of([[1, 2], [3, 4]], requires_grad=True, grad_fn_name="MulBackward0") == expected


def test_a_device_other_than_the_cpu_comes_before_the_size_and_the_dtype() -> None:
    half = text_of([1.5], "float16", device="cuda:0")
    assert half == "tensor([1.5000], device='cuda:0', dtype=torch.float16)"
    empty = text_of(np.zeros((0, 3)), "int64", device="cuda:1", extra=["tangent=7"])
    assert empty == "tensor([], device='cuda:1', size=(0, 3), dtype=torch.int64, tangent=7)"


def test_further_lines_are_indented_by_the_prefix() -> None:
    assert text_of([[1, 2], [3, 4]], "int64", prefix="at(") == "at([[1, 2],\n    [3, 4]])"


def test_a_parameter_prints_as_in_torch() -> None:
    parameter = torch.nn.Parameter(torch.ones(20) / 3)
    text = text_of(np.ones(20) / 3, requires_grad=True)
    assert printing.format_parameter(text) == repr(parameter)


def test_a_summary_needs_both_ends_of_long_dimensions_and_all_of_short_ones() -> None:
    assert printing.summary_index((500, 4)) == ((0, 1, 2, 497, 498, 499), (0, 1, 2, 3))


@pytest.mark.parametrize("shape", [(), (1000,), (0, 5000), (6,) * 4])
def test_a_tensor_that_is_small_or_short_in_every_dimension_is_shown_whole(shape: tuple[int, ...]) -> None:
    assert printing.summary_index(shape) is None


def test_a_large_tensor_is_asked_only_for_what_is_printed() -> None:
    asked: list[Any] = []

    def fetch(index: Any) -> np.ndarray:
        asked.append(index)
        return np.array([0, 1, 2, 7, 8, 9])

    text = printing.format_tensor(fetch, shape=(10**9,), dtype="int64")
    assert text == "tensor([0, 1, 2,  ..., 7, 8, 9])"
    assert asked == [((0, 1, 2, 10**9 - 3, 10**9 - 2, 10**9 - 1),)]


@pytest.mark.parametrize("shape, edgeitems", [((0, 3), 3), ((5000,), 0)])
def test_a_tensor_that_shows_no_element_is_not_asked_for_any(shape: tuple[int, ...], edgeitems: int) -> None:
    def fetch(index: Any) -> np.ndarray:
        raise AssertionError("nothing to fetch")

    options = printing.PrintOptions(edgeitems=edgeitems)
    with torch_printing.printoptions(edgeitems=edgeitems):
        expected = repr(torch.zeros(shape))
    assert printing.format_tensor(fetch, shape=shape, dtype="float32", options=options) == expected


def test_elements_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\) .* got \(3,\)"):
        printing.format_tensor(np.zeros(3), shape=(2, 3), dtype="float32")


@pytest.mark.parametrize(
    "calls",
    [
        [{}], [{"profile": "short"}], [{"profile": "FULL"}], [{"profile": "short", "precision": 7}],
        [{"sci_mode": True}], [{"sci_mode": True}, {"precision": 2}], [{"profile": "unknown"}],
        [{"threshold": 5, "edgeitems": 1, "linewidth": 9}, {"profile": "default"}],
    ],
    ids=str,
)  # fmt: skip
def test_options_are_set_as_in_torch(calls: list[dict[str, Any]]) -> None:
    for options in calls:
        set_both(**options)
    assert printing.get_printoptions() == torch_printing.get_printoptions()


def test_options_of_a_block_end_with_it_even_by_an_error() -> None:
    set_both(precision=3, sci_mode=True)
    before = printing.get_printoptions()
    with pytest.raises(KeyError), printing.printoptions(profile="full", precision=1):
        assert printing.get_printoptions()["precision"] == 1
        raise KeyError
    assert printing.get_printoptions() == before
