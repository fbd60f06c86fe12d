"""LBFGS stays as near to torch's as torch's own does under different rounding of gradients.

LBFGS divides differences of gradients. On a function that is not quadratic, one rounding leads to another path within
a few iterations, in torch too. So the test compares distances between paths instead of paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import gradwire

from .runs import Case, cases, translated

STEPS = 4
RUNS = 4
CASES = [c for c in cases("LBFGS") if c.error is None and not c.dtype.startswith("complex")]


def _valley(lib: Any, params: list[Any], dtype: str) -> Any:
    x = params[0]
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def _network(lib: Any, params: list[Any], dtype: str) -> Any:
    generator = np.random.default_rng(7)
    x, y = (lib.tensor(generator.normal(size=size).astype(dtype)) for size in ((10, 4), (10, 2)))
    return ((lib.tanh(x @ params[0].t() + params[1]) @ params[2].t() - y) ** 2).mean()


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "valley": (_valley, [(2,)]),
    "network": (_network, [(6, 4), (6,), (2, 6)]),
}


def path(lib: Any, case: Case, name: str, rounded: int | None = None) -> np.ndarray[Any, Any]:
    """The parameters after each step, in rows. ``rounded`` seeds a last bit added to or taken from each gradient."""
    function, shapes = FUNCTIONS[name]
    generator = np.random.default_rng(3)
    params = [lib.nn.Parameter(lib.tensor(generator.normal(size=s).astype(case.dtype))) for s in shapes]
    made = lib.optim.LBFGS(params, **(case.kwargs if lib is torch else translated(case.kwargs)))
    bits = np.random.default_rng(rounded)

    def closure() -> Any:
        made.zero_grad()
        loss = function(lib, params, case.dtype)
        loss.backward()
        if rounded is not None:
            for p in params:
                change = bits.choice([-1.0, 0.0, 1.0], size=tuple(p.shape)) * np.finfo(case.dtype).eps
                p.grad.mul_(lib.tensor((1 + change).astype(case.dtype)))
        return loss

    found = []
    for _ in range(STEPS):
        made.step(closure)
        found.append(np.concatenate([p.detach().numpy().ravel() for p in params]))
    return np.array(found, np.float64)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_no_further_from_torch_than_torch_from_itself(case: Case, name: str) -> None:
    expected = path(torch, case, name)
    own = np.max([np.abs(path(torch, case, name, seed) - expected).max(axis=1) for seed in range(RUNS)], axis=0)
    ours = np.abs(path(gradwire, case, name) - expected).max(axis=1)
    eps = float(np.finfo(case.dtype).eps)
    allowed = 10 * np.maximum.accumulate(own) + 100 * eps * np.abs(expected).max()
    assert (ours <= allowed).all(), np.stack([ours, allowed])
