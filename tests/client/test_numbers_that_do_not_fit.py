"""Numbers, bounds and tensors that a call cannot use: accepted, or refused with the same class, as in torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.side_by_side import built_in

import gradwire

pytestmark = pytest.mark.usefixtures("session")


class Entries:
    """A sequence whose entries raise."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __len__(self) -> int:
        return 2

    def __getitem__(self, at: int) -> Any:
        raise self.error


def learnt(t: Any) -> Any:
    return t.tensor(0.5, requires_grad=True)


def expanded(t: Any, *size: int) -> Any:
    return t.ones(1).expand(*size)


def set_at(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


CALLS: dict[str, Callable[[Any], Any]] = {
    # A number that comes as a tensor
    "alpha with a gradient": lambda t: t.add(t.ones(2), t.ones(2), alpha=learnt(t)),
    "alpha as a tensor": lambda t: t.add(t.ones(2), t.ones(2), alpha=t.tensor(2)),
    "value as a vector": lambda t: t.addcmul(t.ones(1), t.ones(1), t.ones(1), value=t.ones(1)),
    "rtol with a gradient": lambda t: t.isclose(t.ones(2), t.ones(2), learnt(t)),
    "atol with a gradient": lambda t: t.isclose(t.ones(2), t.ones(2), 0.5, learnt(t)),
    "atol as a tensor": lambda t: t.isclose(t.ones(2), t.ones(2), 0.5, t.tensor(1)),
    "rtol as a vector": lambda t: t.isclose(t.ones(2), t.ones(2), t.ones(1)),
    "rtol as several": lambda t: t.isclose(t.ones(2), t.ones(2), t.ones(2)),
    "allclose with a gradient": lambda t: t.allclose(t.ones(2), t.ones(2), atol=learnt(t)),
    "a slope with a gradient": lambda t: t.nn.functional.leaky_relu(t.ones(2), learnt(t)),
    "p of a norm with a gradient": lambda t: t.linalg.vector_norm(t.ones(2), learnt(t)),
    "a bound of arange with a gradient": lambda t: t.arange(learnt(t), 2),
    "a vector as bound of arange": lambda t: t.arange(t.tensor([3])),
    "a bound of linspace with a gradient": lambda t: t.linspace(learnt(t), 1, 3),
    "a vector as bound of linspace": lambda t: t.linspace(t.tensor([3]), 4, 2),
    "a bound of logspace as a tensor": lambda t: t.logspace(t.tensor(0.0), 1, 2),
    "one step to infinity": lambda t: t.linspace(1, float("inf"), 1),
    "one step to a NaN": lambda t: t.linspace(1, float("nan"), 1),
    "one step to infinity, as a power": lambda t: t.logspace(1, float("inf"), 1),
    # Values of a new tensor
    "complex numbers as bools": lambda t: t.tensor([2j, 0j, 1], dtype=t.bool),
    "an array of complex numbers as bools": lambda t: t.tensor(np.array([2j, 0]), dtype=t.bool),
    "complex numbers as integers": lambda t: t.tensor([1 + 2j], dtype=t.int64),
    "complex numbers as floats": lambda t: t.tensor([1 + 2j], dtype=t.float32),
    "a negative float as uint8": lambda t: t.tensor([-1.7], dtype=t.uint8),
    "a negative integer as uint8": lambda t: t.tensor([-1], dtype=t.uint8),
    "400 digits as float": lambda t: t.tensor([10**400], dtype=t.float64),
    "400 digits as bool": lambda t: t.tensor([10**400], dtype=t.bool),
    "infinity as integer": lambda t: t.tensor([float("inf")], dtype=t.int64),
    "entries that raise TypeError": lambda t: t.tensor(Entries(TypeError())),
    "entries that raise RuntimeError": lambda t: t.tensor(Entries(RuntimeError("x"))),
    "new on a GPU": lambda t: t.ones(2).new(device="cuda"),
    "new of a size on a GPU": lambda t: t.ones(2).new(t.Size([2]), device="cuda"),
    "new of data on a GPU": lambda t: t.ones(2).new((2.0, 3.0), device="cuda"),
    "new here": lambda t: t.ones(2).new((2.0, 3.0), device="cpu"),
    "channels last of two": lambda t: t.empty(2, 2, memory_format=t.channels_last),
    "channels last of five": lambda t: t.empty((2,) * 5, memory_format=t.channels_last),
    "channels last 3d of four": lambda t: t.zeros_like(t.ones((2,) * 4), memory_format=t.channels_last_3d),
    "a clone of two, channels last": lambda t: t.ones(2, 2).clone(memory_format=t.channels_last),
    "contiguous of two, channels last": lambda t: t.ones(2, 2).contiguous(memory_format=t.channels_last),
    "to of two, channels last": lambda t: t.ones(2, 2).to(memory_format=t.channels_last),
    # Bounds
    "uniform_ over all floats": lambda t: t.ones(2).uniform_(-3e38, 3e38),
    "uniform_ over all doubles": lambda t: t.ones(2, dtype=t.float64).uniform_(-1.7e308, 1.7e308),
    "uniform_ beyond floats": lambda t: t.ones(2).uniform_(0, 1e300),
    "uniform_ over all halves": lambda t: t.ones(2).half().uniform_(-60000, 60000),
    "uniform_ up to infinity": lambda t: t.ones(2).uniform_(0, float("inf")),
    "uniform_ from a NaN": lambda t: t.ones(2).uniform_(float("nan"), 1),
    "uniform_ of nothing": lambda t: t.ones(2).uniform_(1, 1),
    "kthvalue of none": lambda t: t.ones(2, 0, 4).kthvalue(1, 1),
    "kthvalue beyond": lambda t: t.ones(2, 3).kthvalue(5),
    "mT of a vector": lambda t: t.ones(2).mT,
    "mH of a vector": lambda t: t.ones(2).mH,
    "H of three": lambda t: t.ones(2, 3, 4).H,
    "adjoint of a vector": lambda t: t.ones(2).adjoint(),
    "as_strided from its own beginning": lambda t: t.as_strided(t.arange(9.0), (2, 2), (1, 2), None),
    "tensor_split along a dimension too many": lambda t: t.tensor_split(t.ones(2), 2, 1),
    "tensor_split of a number": lambda t: t.tensor_split(t.ones(()), 2),
    "tensor_split at a float": lambda t: t.tensor_split(t.ones(2), t.tensor(1.1)),
    "tensor_split at a matrix": lambda t: t.tensor_split(t.ones(2), t.ones(2, 2).long()),
    "tensor_split at a number": lambda t: list(t.tensor_split(t.ones(2), t.tensor(2))),
    "False beside positions": lambda t: t.ones(1, 2, 3, 4)[False, [0, 1], ...].tolist(),
    "~ of floats": lambda t: ~t.ones(2),
    "~ of halves": lambda t: ~t.ones(2).half(),
    "~ of complex numbers": lambda t: ~t.ones(2, dtype=t.complex64),
    "bitwise_not of floats": lambda t: t.bitwise_not(t.ones(2)),
    "abs of complex numbers into complex ones": lambda t: t.abs(
        t.tensor([3 + 4j, 0]), out=t.empty(2, dtype=t.complex64)
    ),
    "abs of complex numbers into larger ones": lambda t: t.abs(t.tensor([3 + 4j]), out=t.empty(1, dtype=t.complex128)),
    "abs of floats into complex ones": lambda t: t.abs(t.ones(2), out=t.empty(2, dtype=t.complex64)),
    # Element by element
    "apply_ with a gradient": lambda t: t.ones(2, requires_grad=True).apply_(lambda a: a),
    "map_ of another dtype": lambda t: t.ones(2).map_(t.ones(2).double(), lambda a, b: a),
    "map_ from a gradient": lambda t: t.ones(2).map_(t.ones(2, requires_grad=True), lambda a, b: a),
    "map2_ from a gradient": lambda t: t.ones(2).map2_(t.ones(2), t.ones(2, requires_grad=True), lambda a, b, c: a),
    "apply_ on one element three times": lambda t: expanded(t, 3).apply_(lambda a: a * 2 + 1),
    "map_ on one element three times": lambda t: expanded(t, 3).map_(t.arange(3.0), lambda a, b: a * 2 + b),
    "map2_ on rows": lambda t: (
        t.ones(1, 2).expand(3, 2).map2_(t.arange(3.0)[:, None], t.ones(2), lambda a, b, c: a + b)
    ),
    "map2_ on columns": lambda t: t.ones(3, 1).expand(3, 2).map2_(t.arange(2.0), t.ones(2), lambda a, b, c: a * 2 + b),
    "apply_ on a transposed one": lambda t: t.arange(4.0).view(2, 2).t().apply_(lambda a: a + 1),
    "apply_ on none": lambda t: t.ones(0, 3).apply_(lambda a: a + 1),
    # Assignments
    "a number to all of an expanded": lambda t: set_at(expanded(t, 3), slice(None), 5.0),
    "a number to ... of an expanded": lambda t: set_at(expanded(t, 3), Ellipsis, 5),
    "a number to a row of an expanded": lambda t: set_at(t.ones(1, 1).expand(3, 3), 0, 5),
    "a number to an element of an expanded": lambda t: set_at(expanded(t, 3), 0, 5),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_taken_or_refused_as_in_torch(name: str) -> None:
    def done(t: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = CALLS[name](t)
        except Exception as error:
            return built_in(error)
        if isinstance(found, list):
            return [part.tolist() for part in found]
        if isinstance(found, t.Tensor):
            return str(found.dtype), tuple(found.shape), found.tolist() if "uniform" not in name else None
        return found

    ours, theirs = done(gradwire), done(torch)
    if name in ("channels last of two", "channels last of five"):
        ours, theirs = ours[:2], theirs[:2]  # empty memory has any values
    assert ours == theirs


@pytest.mark.parametrize("bounds", [(0, 5000), (-5000, 5000), (5000,), (0, 100), (-3000, 0)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int16"])
def test_random_integers_that_a_dtype_rounds_are_warned_of(bounds: tuple[int, ...], dtype: str) -> None:
    def warned(t: Any) -> int:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            t.empty(5, dtype=getattr(t, dtype)).random_(*bounds)
        return len(said)

    assert warned(gradwire) == warned(torch)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("n", [8, 9, 40])
def test_median_chooses_among_equal_elements_as_torch_does(dtype: str, name: str, n: int) -> None:
    values = np.random.RandomState(n).randint(0, 3, (50, n)).astype(dtype)
    ours, theirs = (getattr(t.tensor(values), name)(1) for t in (gradwire, torch))
    assert ours.values.tolist() == theirs.values.tolist()
    assert ours.indices.tolist() == theirs.indices.tolist()
