"""Writes through views: values and gradients of the base and of its other views, against torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine

MASK = np.array([[True, False, True, True], [False, True, False, True], [True, True, False, False]])


class Ours:
    """The few ops the cases need, on engine tensors."""

    def __init__(self) -> None:
        self.engine = Engine()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.engine.call(name, *args, **kwargs)

    def of(self, value: Any) -> Any:
        return self.engine.from_numpy(np.asarray(value))


class Theirs:
    """The same on torch tensors, under the table's names."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if hasattr(torch.Tensor, name):
            return lambda x, *args, **kwargs: getattr(torch.Tensor, name)(x, *args, **kwargs)
        return getattr(torch.ops.aten, name)

    def of(self, value: Any) -> Any:
        return torch.tensor(np.asarray(value))

    def index_put_(self, x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
        return x.index_put_(tuple(indices), values, accumulate)


def a_row_scaled(on: Any, x: Any) -> Any:
    y = on.mul(x, x)
    on.mul_(on.select(y, 0, 1), 3.0)
    return y


def a_slice_indexed(on: Any, x: Any) -> Any:
    y = on.mul(x, x)
    view = on.slice(y, 1, 0, None, 2)
    on.index_put_(view, [on.of([0, 2])], on.sum(x), False)
    return on.mul(y, on.sum(view))


def a_transpose_masked_and_a_diagonal(on: Any, x: Any) -> Any:
    y = on.mul(x, x)
    flipped = on.t(y)
    on.masked_fill_(flipped, on.of(MASK.T.copy()), 0.0)
    on.exp_(on.diagonal(y))
    return on.add(y, on.sum(flipped))


def sums_scattered_and_run(on: Any, x: Any) -> Any:
    y = on.mul(x, x)
    on.scatter_add_(y, 0, on.of(np.zeros((2, 4), int)), on.slice(x, 0, 0, 2))
    on.cumsum_(on.select(y, 1, 2), 0)
    on.tril_(y)
    return y


def a_reshaped_part_copied(on: Any, x: Any) -> Any:
    y = on.mul(x, x)
    on.copy_(on.select(on.reshape(y, (2, 6)), 0, 1), on.slice(on.reshape(x, (12,)), 0, 0, 6))
    return on.flip(y, (0,))


def a_constant_written_to(on: Any, x: Any) -> Any:
    y = on.of(np.zeros((3, 4)))
    on.copy_(on.slice(y, 0, 1, 3), on.slice(x, 0, 0, 2))
    on.masked_scatter_(y, on.of(MASK), on.reshape(x, (12,)))
    return y


def a_base_in_column_order(on: Any, x: Any) -> Any:
    y = on.mul(on.t(x), 1.0)
    on.mul_(on.select(y, 0, 2), 3.0)
    on.index_add_(y, 1, on.of([0, 0]), on.slice(on.t(x), 1, 0, 2))
    return y


CASES = (
    a_row_scaled,
    a_slice_indexed,
    a_transpose_masked_and_a_diagonal,
    sums_scattered_and_run,
    a_reshaped_part_copied,
    a_constant_written_to,
    a_base_in_column_order,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_values_and_gradients_are_those_of_torch(case: Callable[[Any, Any], Any]) -> None:
    values = np.random.default_rng().standard_normal((3, 4))
    on = Ours()
    ours = on.engine.from_numpy(values, requires_grad=True)
    theirs = torch.tensor(values, requires_grad=True)
    got, wanted = case(on, ours), case(Theirs(), theirs)
    seed = np.random.default_rng().standard_normal(tuple(wanted.shape))
    (gradient,) = on.grad([got], [ours], [on.of(seed)])
    (expected,) = torch.autograd.grad(wanted, theirs, torch.tensor(seed))
    np.testing.assert_allclose(on.engine.to_numpy(got), wanted.detach().numpy())
    np.testing.assert_allclose(on.engine.to_numpy(gradient), expected.numpy())


def test_a_write_to_the_real_part_reaches_the_complex_base() -> None:
    values = np.array([1 + 2j, 3 - 1j, -2 + 0.5j])
    on = Ours()
    ours = on.engine.from_numpy(values, requires_grad=True)
    theirs = torch.tensor(values, requires_grad=True)
    y, z = on.mul(ours, 1.0), theirs * 1.0
    on.mul_(on.real(y), 2.0)
    z.real.mul_(2.0)
    seed = np.array([1 - 1j, 2 + 3j, 0.5j])
    (gradient,) = on.grad([y], [ours], [on.of(seed)])
    (expected,) = torch.autograd.grad(z, theirs, torch.tensor(seed))
    np.testing.assert_allclose(on.engine.to_numpy(gradient), expected.numpy())
