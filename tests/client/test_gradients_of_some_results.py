"""Operations of several results of which only some are used: their gradients depend on what PyTorch's depend on.

A gradient that is wrongly taken for one with a history is met by a read long after, and one that is wrongly taken for a
constant has no gradient itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")

RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "var_mean": lambda lib, x: lib.var_mean(x, 0),
    "var_mean of all": lambda lib, x: lib.var_mean(x, correction=0),
    "std_mean": lambda lib, x: lib.std_mean(x, 1, keepdim=True),
    "aminmax": lambda lib, x: tuple(lib.aminmax(x, dim=0)),
    "split": lambda lib, x: (x * x).split(2),
    "unbind": lambda lib, x: x.unbind(1),
    "linalg.eigh": lambda lib, x: lib.linalg.eigh(x + x.mT),
    "linalg.eig": lambda lib, x: lib.linalg.eig(x + x.mT),
    "linalg.qr": lambda lib, x: lib.linalg.qr(x),
    "linalg.svd": lambda lib, x: lib.linalg.svd(x),
    "linalg.svd of a wide matrix": lambda lib, x: lib.linalg.svd(x[:2], full_matrices=False),
    "linalg.lu": lambda lib, x: lib.linalg.lu(x)[1:],
    "lu_unpack": lambda lib, x: lib.lu_unpack(*lib.linalg.lu_factor(x))[1:],
    "slogdet": lambda lib, x: lib.linalg.slogdet(x)[1:],
    "triangular_solve": lambda lib, x: lib.triangular_solve(x * 2, x),
    "lstsq": lambda lib, x: lib.linalg.lstsq(x, x * x)[:1],
    "batch_norm": lambda lib, x: (lib.nn.functional.batch_norm(x, None, None, training=True),),
    "multi_head_attention": lambda lib, x: attention(lib)(x, x, x),
    "lstm": lambda lib, x: flat(*lib.nn.LSTM(3, 2).double()(x)),
    "gru": lambda lib, x: lib.nn.GRU(3, 2).double()(x),
}  # fmt: skip


def flat(output: Any, state: Any) -> tuple[Any, ...]:
    return output, *state


def attention(lib: Any) -> Any:
    return lib.nn.MultiheadAttention(3, 1).double()


def found(lib: Any, name: str) -> Iterator[list[Any]]:
    """For each choice of one or two results: whether their gradient requires grad, and whether it can be read."""
    values = np.sin(np.arange(9.0).reshape(3, 3) * 0.37) + 2 * np.eye(3)
    count = len(RESULTS[name](lib, lib.tensor(values, requires_grad=True)))
    for chosen in [*combinations(range(count), 1), *combinations(range(count), 2)]:
        for steps in (0, 1):  # between the leaf and the operation
            x = lib.tensor(values, requires_grad=True)
            results = RESULTS[name](lib, x * 1 if steps else x)
            total = sum((r.abs() if r.is_complex() else r).sum() for r in (results[k] for k in chosen))
            (g,) = lib.autograd.grad(total, [x], create_graph=True)
            again = lib.autograd.grad((g * g).sum(), [x], allow_unused=True) if g.requires_grad else (None,)
            yield [chosen, steps, g.requires_grad, again[0] is not None, np.isfinite(g.detach().numpy()).all()]


@pytest.mark.parametrize("name", RESULTS)
def test_a_gradient_of_some_results_depends_on_what_it_does_in_torch(name: str) -> None:
    assert list(found(gradwire, name)) == list(found(torch, name))
