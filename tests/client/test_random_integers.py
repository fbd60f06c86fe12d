"""``random_``: the range of integers for each signature and dtype, under torch and gradwire."""

from __future__ import annotations

import pytest
import torch
from tests.side_by_side import raises

import gradwire

pytestmark = [pytest.mark.usefixtures("session"), pytest.mark.filterwarnings("ignore:.*out of bounds")]

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
CALLS = [
    ((1,), {}), ((7,), {}), ((0,), {}), ((-3,), {}), ((2, 7), {}), ((-5, 7), {}), ((7, 7), {}), ((8, 7), {}),
    ((), {"to": 7}), ((2,), {"to": 7}), ((), {"from": 2, "to": 7}), ((), {"from": 2}), ((), {"low": 2, "high": 7}),
    ((None,), {}), ((), {"to": None}), ((True,), {}), ((2.0,), {}), ((2j,), {}), (("2",), {}), ((1, 2, 3), {}),
    ((2**63,), {}), ((40000,), {}), ((70000,), {}), ((0, 2), {}), ((-3, -1), {}), ((300, None), {}),
    ((), {"from": 2, "to": 7, "generator": None}),
]  # fmt: skip


def filled(lib, dtype, args, named):
    return lib.zeros(3000, dtype=getattr(lib, dtype)).random_(*args, **named).double()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("args", "named"), CALLS, ids=str)
def test_random_takes_its_bounds_as_torch_does(dtype, args, named):
    expected = raises(lambda: filled(torch, dtype, args, named))
    assert raises(lambda: filled(gradwire, dtype, args, named)) == expected
    if expected is None:
        theirs, ours = filled(torch, dtype, args, named), filled(gradwire, dtype, args, named)
        if theirs.unique().numel() < 50:
            assert ours.unique().tolist() == theirs.unique().tolist()
        else:
            assert bool((ours >= named.get("from", args[0] if len(args) > 1 else 0)).all())


@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("args", [(), (5, None), (-(2**63), None)], ids=str)
def test_random_without_an_end_fills_the_dtype(dtype, args):
    expected = raises(lambda: filled(torch, dtype, args, {}))
    found = raises(lambda: filled(gradwire, dtype, args, {}))
    assert (found is None) == (expected is None)
    if expected is None:
        theirs, ours = filled(torch, dtype, args, {}), filled(gradwire, dtype, args, {})
        assert abs(ours.max().item() / theirs.max().item() - 1) < 0.05
        assert abs(ours.mean().item() - theirs.mean().item()) <= 0.1 * theirs.max().item()


@pytest.mark.parametrize("bounds", [(300,), (-300, 0), (-1000, 1000), (257,)], ids=str)
def test_rounding_never_reaches_the_end(bounds):
    ours = filled(gradwire, "bfloat16", bounds, {})
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    assert low <= ours.min().item() and ours.max().item() < high


def test_a_bound_may_be_a_tensor():
    for lib in (torch, gradwire):
        assert lib.zeros(500).random_(lib.tensor(3)).unique().tolist() == [0, 1, 2]
    assert raises(lambda: gradwire.zeros(3).random_(gradwire.tensor(3.0))) == "TypeError"


@pytest.mark.parametrize("method", ["random_", "normal_", "uniform_"])
def test_numbers_drawn_from_a_generator_end_the_history_of_what_they_replace(method):
    def gradient(lib, generator):
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        getattr(y, method)(generator=generator)
        y.sum().backward()
        return x.grad.tolist()

    for lib in (torch, gradwire):
        assert gradient(lib, lib.Generator()) == gradient(lib, None) == [0.0, 0.0, 0.0]
        leaf = lib.ones(3, requires_grad=True)
        assert raises(lambda leaf=leaf, lib=lib: getattr(leaf, method)(generator=lib.Generator())) == "RuntimeError"


def test_setting_a_state_returns_the_generator():
    generator = gradwire.Generator()
    assert generator.set_state(generator.get_state()) is generator
    own = gradwire.default_generator
    assert own.set_state(own.get_state()) is own


@pytest.mark.parametrize(
    ("args", "named"),
    [((4,), {}), ((), {"high": 4}), ((2, 4), {}), ((2,), {"high": 4}), ((), {"low": 2, "high": 4}), ((), {}),
     ((1, 2, 3), {}), ((1, 2), {"high": 3})],
    ids=str,
)  # fmt: skip
def test_randint_like_takes_its_bounds_as_torch_does(args, named):
    def drawn(lib):
        return lib.randint_like(lib.zeros(500), *args, **named)

    expected = raises(lambda: drawn(torch))
    assert raises(lambda: drawn(gradwire)) == expected
    if expected is None:
        assert drawn(gradwire).unique().tolist() == drawn(torch).unique().tolist()
