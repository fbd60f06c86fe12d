"""``torch._foreach_*``: each function in both forms, on each kind of argument, as PyTorch does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradwire
from gradwire._core.composed.foreach import BINARY, OTHER, UNARY

DTYPES = ("float32", "float64", "int64")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(UNARY, ("",)), **dict.fromkeys(BINARY, ("number", "integer", "tensors", "numbers", "one")),
    **dict.fromkeys(("addcmul", "addcdiv"), ("tensors tensors", "tensors tensors number", "tensors tensors numbers")),
    "lerp": ("tensors number", "tensors tensors", "tensors numbers"), "zero": ("",), "copy": ("tensors",),
}  # fmt: skip
"""What each function takes besides its list."""
FUNCTIONS = [
    (name + end, kinds)
    for name in sorted((UNARY | BINARY | OTHER) & ARGUMENTS.keys())
    for end in ("", "_")
    for kinds in ARGUMENTS[name]
    if not (end == "" and name in ("zero", "copy"))
]


def _called(library: Any, name: str, kinds: str, dtype: str) -> Any:
    """What is computed, or the classes of what is raised."""
    random = np.random.default_rng(0)

    def tensors() -> list[Any]:
        values = [random.random(3) + 0.5 for _ in range(3)]
        values[0][1] = np.nan if dtype != "int64" else 1
        return [library.tensor(one).to(getattr(library, dtype)) for one in values]

    given: dict[str, Callable[[], Any]] = {
        "tensors": tensors, "number": lambda: 0.7, "integer": lambda: 2, "numbers": lambda: [0.5, 1.5, 2.5],
        "one": lambda: library.tensor(2.0),
    }  # fmt: skip
    own = tensors()
    try:
        made = getattr(library, f"_foreach_{name}")(own, *[given[kind]() for kind in kinds.split()])
    except Exception as refused:
        return type(refused).__mro__
    return [one.tolist() for one in (own if name.endswith("_") else made)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "kinds"), FUNCTIONS, ids=[f"{name} {kinds}".strip() for name, kinds in FUNCTIONS])
def test_as_in_pytorch(name: str, kinds: str, dtype: str) -> None:
    theirs, ours = (_called(library, name, kinds, dtype) for library in (torch, gradwire))
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and theirs[0] in ours, f"torch raises {theirs[0]}, gradwire: {ours}"
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    again = _called(gradwire, name, kinds, dtype)
    assert str(again) == str(ours)
