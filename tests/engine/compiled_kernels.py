"""Shared by tests of compiled kernels: the kernels, loaded once, and calls of both forms of an op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.registry import row
from gradwire_engine.kernels.cpu import threads, toolchain

TOLERANCE = {"float32": 1e-5, "float64": 1e-13}


@pytest.fixture(scope="module", autouse=True)
def kernels() -> Iterator[None]:
    """All compiled kernels. Where there is no Numba for the platform, there is nothing to test; that they do not come
    where there is one is a failure."""
    pytest.importorskip("numba", reason="there is no Numba for this platform")
    assert toolchain.wait(), toolchain.describe()["reason"]
    yield
    threads.use_threads(0)


def compiled(name: str, *arguments: Any) -> Any:
    """What the compiled kernel makes of these; it must apply."""
    function = row(name).compiled
    assert function is not None
    made = function(np, *arguments)
    assert made is not NotImplemented
    return made


def plain(name: str, *arguments: Any) -> Any:
    """What the NumPy kernel makes of them."""
    function = row(name).kernel
    assert function is not None
    return function(np, *arguments)


def declines(name: str, *arguments: Any) -> bool:
    function = row(name).compiled
    return function is not None and function(np, *arguments) is NotImplemented


def close(ours: Any, theirs: Any, factor: float = 1) -> None:
    """Compare arrays, or tuples of them, to within rounding of the largest element."""
    if isinstance(ours, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            close(a, b, factor)
        return
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(ours[~finite], theirs[~finite])
    if finite.any() and ours.dtype.kind == "f":
        allowed = factor * TOLERANCE[ours.dtype.name] * max(float(np.abs(theirs[finite]).max()), 1e-3)
        np.testing.assert_allclose(ours[finite], theirs[finite], rtol=0, atol=allowed)
    else:
        np.testing.assert_array_equal(ours, theirs)


def same_bits_for_any_threads(call: Any) -> None:
    """Check that one, two and three threads make the same, and the same again."""
    found = []
    for count in (1, 2, 3, 2, 1):
        threads.use_threads(count)
        made = call()
        found.append([a.tobytes() for a in (made if isinstance(made, tuple) else (made,))])
    threads.use_threads(0)
    assert all(again == found[0] for again in found)
