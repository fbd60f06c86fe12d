"""CUDA C++ generated from the table of expressions agrees with NumPy's kernels, for any layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradwire_engine.kernels.cuda import fusion, load
from gradwire_engine.kernels.cuda.language import in_cuda, is_truth, names_in
from gradwire_engine.numerics.expressions import EXPRESSIONS
from gradwire_engine.runtime.cuda.sources import source
from gradwire_protocol.table import Kind, lookup
from tests.cuda_emulation import AVAILABLE, EmulatedBackend, Kernel, build_together
from tests.engine.test_cuda_kernels import FINE, Pair, draw
from tests.strict_backend import StrictArray

emulated = pytest.mark.skipif(not AVAILABLE, reason="needs g++")
load()  # the ops

NUMBERS = {
    "alpha": 1.5, "value": -0.75, "min": -0.5, "max": 0.5, "min_val": -0.5, "max_val": 0.5, "threshold": 0.25,
    "negative_slope": 0.1, "beta": 2.0,
}  # fmt: skip
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acosh", "pow")
INSIDE = ("asin", "acos", "atanh")


def arguments(name: str, attributes: dict[str, Any], dtype: str, shapes: dict[str, tuple[int, ...]]) -> list[Any]:
    """Arguments of an op: arrays for tensors, numbers for numbers."""
    found: list[Any] = []
    for i, parameter in enumerate(lookup(name).params):
        if parameter.name in attributes:
            found.append(attributes[parameter.name])
        elif parameter.name in ("condition", "mask"):
            found.append(np.asarray(draw(shapes.get(parameter.name, (6, 7)), "float32", i)) > 0)
        elif parameter.kind in (Kind.TENSOR, Kind.OPERAND) and parameter.name not in ("min", "max", "value"):
            values = draw(shapes.get(parameter.name, (6, 7)), "float64", i, positive=name in POSITIVE)
            if name in INSIDE:
                values = np.tanh(values)
            if name == "acosh":
                values += 1
            found.append(values.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))
        elif parameter.name in NUMBERS:
            found.append(NUMBERS[parameter.name])
        else:
            found.append(parameter.default)
    return found


CASES = [(name, dict(each.when), each.text) for name, variants in EXPRESSIONS.items() for each in variants]


DTYPES = ("float32", "bfloat16")


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair()


@pytest.fixture(scope="module")
def built() -> None:
    """The kernels of all expressions, built as one unit."""
    sources: list[str] = []

    def note(xp: Any, key: Any, name: str, write: Callable[[], str], options: Any) -> Any:
        sources.append(write())
        return lambda *_: None

    xp = EmulatedBackend().xp
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fusion, "compiled", note)
        for name, attributes, text in CASES:
            for dtype in DTYPES:
                values = [
                    StrictArray(a) if isinstance(a, np.ndarray) else a for a in arguments(name, attributes, dtype, {})
                ]
                fusion.single(xp, text, dict(zip([p.name for p in lookup(name).params], values, strict=True)))
    build_together(source("prelude"), sources)


@emulated
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join([c[0], *map(str, c[1].values())]))
def test_every_expression_computes_what_the_kernel_does(pair: Pair, case: tuple[str, dict, str], dtype: str) -> None:
    name, attributes, _ = case
    pair.call(name, *arguments(name, attributes, dtype, {}), grad=False, tol=FINE[dtype] * 2)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[2])
def test_an_expression_reads_its_ops_parameters_and_is_in_the_language(case: tuple[str, dict, str]) -> None:
    name, attributes, text = case
    parameters = {p.name for p in lookup(name).params}
    assert set(names_in(text)) | set(attributes) <= parameters
    assert in_cuda(text, {n: n for n in parameters})


def test_what_is_not_in_the_language_is_refused() -> None:
    for text in ("self if other else 1", "open(self)", "self.x", "'a'", "self ** 2", "1 < self < 2"):
        with pytest.raises(ValueError, match="not in the language"):
            in_cuda(text, {"self": "a0", "other": "a1"})
    assert is_truth("self < 1")
    assert not is_truth("where(self < 1, self, 1)")


LAYOUTS: list[tuple[str, Any, Any]] = [
    ("rows", (4, 1), (5,)), ("columns", (3, 4, 1), (1, 1, 5)), ("a number", (3, 4), ()), ("empty", (0, 4), (4,)),
    ("outer", (2, 1, 3, 1, 2), (1, 3, 1, 4, 1)), ("one", (), ()),
]  # fmt: skip


@emulated
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout[0])
def test_operands_are_broadcast(pair: Pair, layout: tuple[str, Any, Any]) -> None:
    name, first, second = layout
    pair.call("mul", draw(first), draw(second, seed=1), launches=name != "empty", grad=name != "empty")


@emulated
@pytest.mark.parametrize("cut", [
    lambda x: x.transpose(2, 0, 1), lambda x: x[::2, 1:, ::3], lambda x: x[::-1], lambda x: x[:, :1],
    lambda x: np.broadcast_to(x[:1], x.shape), lambda x: np.asfortranarray(x),
])  # fmt: skip
def test_views_are_read_where_they_lie_and_results_keep_their_order(cut: Any) -> None:
    xp = EmulatedBackend().xp
    x = draw((4, 5, 6))
    view = StrictArray(cut(x))
    other = StrictArray(draw(view.shape, seed=3))
    found = fusion.single(xp, "self * other + 1", {"self": view, "other": other})
    np.testing.assert_array_equal(found._array, view._array * other._array + 1)


@emulated
@pytest.mark.parametrize("dtype", FINE)
@pytest.mark.parametrize("name", ["eq", "ne", "lt", "ge"])
def test_a_number_is_compared_as_an_element_would_hold_it(pair: Pair, name: str, dtype: str) -> None:
    pair.call(name, np.array([0.1, 0.2]).astype(draw((1,), dtype).dtype), 0.1)


def _program(element: str) -> fusion.FusedProgram:
    steps = (
        fusion.FusedStep("self * other", (("self", "a0"), ("other", "n0"))),
        fusion.FusedStep("tanh(self)", (("self", "v0"),)),
        fusion.FusedStep("self > other", (("self", "v1"), ("other", "a1"))),
        fusion.FusedStep("where(condition, self, other)", (("condition", "v2"), ("self", "v1"), ("other", "a1"))),
    )
    return fusion.FusedProgram(element, (element, element), 1, steps, (1, 2, 3))


@emulated
@pytest.mark.parametrize("element", ["float32", "bfloat16", "float16", "float64"])
def test_a_fused_run_has_the_bits_of_its_steps(element: str) -> None:
    xp = EmulatedBackend().xp
    x, y = (StrictArray(draw((40, 3), element, seed)) for seed in (0, 1))
    before = Kernel.launches
    fused = fusion.run(xp, _program(element), (x, y), (1.7,))
    assert Kernel.launches == before + 1
    first = fusion.single(xp, "self * other", {"self": x, "other": 1.7})
    bent = fusion.single(xp, "tanh(self)", {"self": first})
    above = fusion.single(xp, "self > other", {"self": bent, "other": y})
    chosen = fusion.single(xp, "where(condition, self, other)", {"condition": above, "self": bent, "other": y})
    for mine, wanted in zip(fused, (bent, above, chosen), strict=True):
        assert mine.dtype == wanted.dtype
        np.testing.assert_array_equal(mine._array.view(np.uint8), wanted._array.view(np.uint8))


@emulated
def test_places_beyond_32_bits_are_counted_in_64() -> None:
    long = fusion.write(_program("float32"), (fusion.FLAT, 0), 2, short=False)
    assert "const i64 c" in long
    assert "u32 rest" not in long
    short = fusion.write(_program("float32"), (fusion.FLAT, 0), 2, short=True)
    assert "u32 rest" in short


@emulated
def test_values_do_not_compile_anything_anew() -> None:
    xp = EmulatedBackend().xp
    x = StrictArray(draw((10,)))
    from gradwire_engine.runtime.cuda import launching

    fusion.single(xp, "self * other - 3", {"self": x, "other": 1.5})
    before = len(launching._kernels)
    fusion.single(xp, "self * other - 3", {"self": x, "other": 2.5})
    assert len(launching._kernels) == before
