"""``gradwire.testing`` against ``torch.testing``."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire as gw

claims = Claims()


def verdicts(lib, *pairs, **options) -> list:
    """For each pair what comparing it raises, None where the two are close."""
    return [raises(lambda a=a, e=e: lib.testing.assert_close(a, e, **options)) for a, e in pairs]


@claims
def tolerances_follow_the_dtype(lib):
    found = {}
    for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int64", "uint8", "bool"):
        dtype = getattr(lib, name)
        one = lib.ones(3, dtype=lib.float64)
        found[name] = verdicts(
            lib, *[((one + by).to(dtype), one.to(dtype)) for by in (1e-9, 2e-7, 9e-6, 3e-5, 1e-3, 5e-3, 0.1)]
        )
    return found


@claims
def given_tolerances_hold(lib):
    a, b = lib.tensor([1.0, 2.0]), lib.tensor([1.05, 2.0])
    return (
        verdicts(lib, (a, b), rtol=0, atol=0.1), verdicts(lib, (a, b), rtol=0.1, atol=0),
        verdicts(lib, (a, b), rtol=0, atol=0.01), verdicts(lib, (a, a), rtol=0, atol=0),
        verdicts(lib, (a, b), rtol=0.1), verdicts(lib, (a, b), atol=0.1),
    )  # fmt: skip


@claims
def attributes_are_checked(lib):
    a, t = lib.ones(2, 3), lib.ones(3, 2).t()
    return (
        verdicts(lib, (a, a.double()), (a, lib.ones(3, 2)), (a, t), (a, a.long())),
        verdicts(lib, (a, a.double()), (a, a.long()), (a.bool(), a), (a * 2, a.long()), check_dtype=False),
        verdicts(lib, (a, t), check_stride=True), verdicts(lib, (a, t), check_layout=False, check_device=False),
    )  # fmt: skip


@claims
def nan_is_equal_where_asked_for(lib):
    a, b = lib.tensor([float("nan"), 1.0]), lib.tensor([float("inf"), 1.0])
    pairs = [(a, a), (b, b), (a, b), (b, -b), (float("nan"), float("nan"))]
    return verdicts(lib, *pairs), verdicts(lib, *pairs, equal_nan=True)


@claims
def numbers_are_compared(lib):
    pairs = [
        (1, 1),
        (1, 2),
        (1.0, 1.0 + 1e-9),
        (1.0, 1.1),
        (1, 1.0),
        (1j, 1j),
        (1j, 2j),
        (True, True),
        (True, False),
        (None, None),
        (None, 1),
    ]
    return verdicts(lib, *pairs), verdicts(lib, (1, 1.0), (1, 1.5), check_dtype=False)


@claims
def containers_are_compared(lib):
    a = lib.arange(3.0)
    return verdicts(
        lib, ([a, 1.0], [a, 1.0]), ([a], [a + 1]), ([a], (a,)), ([a], [a, a]), ({"x": a}, {"x": a}),
        ({"x": a}, {"y": a}),
        ({"x": [a, {"z": 1}]}, {"x": [a, {"z": 2}]}), ([], []), ({}, {}), ([1, 2], [1, 3]), ([[1.0]], [[1.0]]),
        ({"x": a}, [a]),
    )  # fmt: skip


@claims
def arrays_are_compared(lib):
    a = np.arange(3.0)
    return verdicts(
        lib,
        (a, a),
        (a, a + 1),
        (a, a.astype("f")),
        (a, lib.arange(3.0)),
        (np.float32(1), np.float32(1)),
        (a, [0.0, 1.0, 2.0]),
    )


@claims
def what_cannot_be_compared_is_refused(lib):
    a = lib.ones(2)
    return verdicts(lib, ("a", "a"), (a, 1.0), (object(), object()), (a, "a"), (a, None), ({1}, {1}))


@claims
def subclasses_are_related(lib):
    a, p = lib.ones(2), lib.nn.Parameter(lib.ones(2))
    return verdicts(lib, (a, p), (p, a)), verdicts(lib, (a, p), (a, a), allow_subclasses=False)


@claims
def empty_tensors_are_close(lib):
    return verdicts(lib, (lib.ones(0), lib.ones(0)), (lib.ones(0, 2), lib.ones(2, 0)))


@claims
def a_message_of_ones_own_is_used(lib):
    found = []
    for msg in ("mine", lambda text: f"before: {len(text) > 20}"):
        try:
            lib.testing.assert_close(lib.ones(2), lib.zeros(2), msg=msg)
        except AssertionError as error:
            found.append(str(error))
    return found


@claims
def a_strict_version_is_made_with_partial(lib):
    equal = functools.partial(lib.testing.assert_close, rtol=0, atol=0)
    return raises(lambda: equal(lib.ones(2), lib.ones(2))), raises(lambda: equal(1e-9, 1e-10))


@claims
def made_tensors_keep_to_their_ranges(lib):
    found = {}
    for name in (
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "bool",
    ):
        made = lib.testing.make_tensor(40, 50, dtype=getattr(lib, name), device="cpu")
        parts = lib.view_as_real(made) if made.is_complex() else made
        parts = parts.double()
        low, high = parts.min().item(), parts.max().item()
        found[name] = [
            repr(made.dtype),
            list(made.shape),
            low >= -9,
            low < (1 if name in ("uint8", "bool") else -8),
            high <= 9,
            high > 0,
        ]
    return found


@claims
def made_tensors_have_what_was_asked_for(lib):
    make = functools.partial(lib.testing.make_tensor, device="cpu")
    a = make((3, 4), dtype=lib.float32, low=2, high=3, requires_grad=True)
    b = make(3, 4, dtype=lib.int64, low=5, high=6)
    c = make(3, 4, dtype=lib.float64, noncontiguous=True)
    d = make(500, dtype=lib.int64, low=0, high=2, exclude_zero=True)
    e = make(500, dtype=lib.bool, exclude_zero=True)
    f, g = make((), dtype=lib.float32), make(0, dtype=lib.float32)
    h = make(1, dtype=lib.float32, noncontiguous=True)
    i = make(2, 3, dtype=lib.float32, low=-float("inf"), high=float("inf"))
    return (
        a.requires_grad, a.is_leaf, bool((a >= 2).all() and (a < 3).all()), b, c.stride(), c.is_contiguous(), d, e,
        list(f.shape),
        list(g.shape), h.is_contiguous(), bool(lib.isfinite(i).all()), make(2, dtype=lib.float32, low=1, high=1),
    )  # fmt: skip


@claims
def impossible_tensors_are_refused(lib):
    make = functools.partial(lib.testing.make_tensor, device="cpu")
    attempts = [
        lambda: make(2, dtype=lib.int64, requires_grad=True), lambda: make(2, dtype=lib.float32, low=2, high=1),
        lambda: make(2, dtype=lib.float32, low=float("nan")), lambda: make(2, dtype=lib.int64, low=1, high=1),
        lambda: make(2, dtype=lib.uint8, low=300, high=400), lambda: make(2, dtype=lib.bool, low=-3, high=-2),
        lambda: make(2, dtype="float32"), lambda: make(2),
        lambda: make(2, dtype=lib.float32, noncontiguous=True, memory_format=lib.contiguous_format),
    ]  # fmt: skip
    return [raises(a) for a in attempts]


@pytest.mark.parametrize("claim", list(claims), ids=name_of)
def test_it_is_as_under_torch(claim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(claim)


def test_the_error_names_the_greatest_difference_and_where():
    a = gw.zeros(3, 4)
    a[1, 2] = 0.5
    a[2, 3] = 0.25
    with pytest.raises(
        AssertionError, match=r"2 of 12 elements(.|\n)*0\.5 at \(1, 2\)(.|\n)*actual is 0\.5 and expected 0"
    ):
        gw.testing.assert_close(a, gw.zeros(3, 4))
    with pytest.raises(AssertionError, match=r"\['w'\]\[1\]"):
        gw.testing.assert_close({"w": [1.0, gw.ones(2)]}, {"w": [1.0, gw.zeros(2)]})


def test_a_difference_of_nan_is_found():
    with pytest.raises(AssertionError, match=r"at \(1,\)"):
        gw.testing.assert_close(gw.tensor([1.0, float("nan"), 3.0]), gw.tensor([1.0, 2.0, 3.5]))


def test_a_comparison_is_one_round_trip(round_trips):
    many = {i: gw.ones(3, 3) for i in range(10)}
    gw.testing.assert_close(many, {i: gw.ones(3, 3) for i in range(10)})
    assert round_trips() == 1


def test_the_signatures_are_torchs():
    import inspect

    for name in ("assert_close", "make_tensor"):
        ours, theirs = (inspect.signature(getattr(lib.testing, name)).parameters for lib in (gw, torch))
        assert list(ours) == list(theirs)
        assert {k: v.default for k, v in ours.items()} == {k: v.default for k, v in theirs.items()}
