"""A one-element tensor is accepted in place of a number; larger tensors and other objects are refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from tests.side_by_side import built_in

import gradwire

pytestmark = pytest.mark.usefixtures("session")

LISTS = {
    "one-element vectors": lambda T: [T([1]), T([2])],
    "one-element matrices": lambda T: [T([[1]]), T([2])],
    "a vector before a number": lambda T: [T([1.5]), 2],
    "a number before a vector": lambda T: [2, T([1])],
    "a vector and a scalar": lambda T: [T([1]), T(2)],
    "rows of vectors and scalars": lambda T: [[T(1), T([2])], [T([3]), T(4)]],
    "rows of numbers and vectors": lambda T: [[1, 2], [T([3]), T([4])]],
    "a list before a vector": lambda T: [[2], T([1])],
    "lists of vectors": lambda T: [[T([1])], [3]],
    "bools among numbers": lambda T: [T([True]), 2],
    "a product": lambda T: list(product([T([1])], T([1, 2, 3]), T([1, 2]))),
    "two integers": lambda T: [T([1, 2]), T(2)],
    "two floats": lambda T: [T([1.0, 2.0]), T(2.0)],
    "no element": lambda T: [T([5.0]), T([])],
    "vectors of several floats": lambda T: [T([1.0, 2.0]), T([3.0, 4.0])],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_tensor_in_a_list_is_one_number(name: str) -> None:
    def made(t: Any) -> Any:
        try:
            found = t.tensor(LISTS[name](t.tensor))
        except Exception as error:
            return built_in(error)
        return tuple(found.shape), str(found.dtype).rpartition(".")[2], found.tolist()

    assert made(gradwire) == made(torch)


CALLS = {
    "text in a tensor": lambda t: "foo" in t.ones(3),
    "a list in a tensor": lambda t: [1, 2] in t.ones(3),
    "None in a tensor": lambda t: None in t.ones(3),
    "an array in a tensor": lambda t: np.ones(3) in t.ones(3),
    "a NumPy number in a tensor": lambda t: np.float64(1) in t.ones(3),
    "a complex number in a tensor": lambda t: 1j in t.ones(3),
    "apply_ that makes text": lambda t: t.arange(3).apply_(lambda k: "s"),
    "apply_ that makes nothing": lambda t: t.arange(3).apply_(lambda k: None),
    "map_ that makes text": lambda t: t.arange(3).map_(t.arange(3), lambda a, b: "s"),
    "map2_": lambda t: t.arange(3).map2_(t.ones(3).long(), t.arange(3) * 2, lambda a, b, c: a + b * c).tolist(),
    "new of a size by name": lambda t: tuple(t.ones(2).new(size=(3, 4)).shape),
    "new of data by name": lambda t: t.ones(2).new(data=[3, 4]).tolist(),
    "new of a tensor and a device": lambda t: t.ones(2).new(t.ones(1), device="cpu"),
    "Tensor of a tensor and a device": lambda t: t.Tensor(t.tensor([1.0]), device="cpu"),
    "FloatTensor of a size by name": lambda t: tuple(t.FloatTensor(size=(3, 4)).shape),
    "FloatTensor on a GPU": lambda t: t.FloatTensor((2.0, 3.0), device="cuda"),
    "a class of FloatTensors": lambda t: type("Own", (t.FloatTensor,), {}),
    "a number on no device as text": lambda t: format(t.empty((), device="meta")),
    "a seed of 65 bits": lambda t: t.manual_seed(2**64),
    "a negative seed of 65 bits": lambda t: t.Generator().manual_seed(-(2**63) - 1),
    "deterministic by a number": lambda t: t.use_deterministic_algorithms(1),
    "warnings only by a number": lambda t: t.use_deterministic_algorithms(False, warn_only=1),
    "threads without number": lambda t: t.set_num_threads(2**65),
    "interop threads without number": lambda t: t.set_num_interop_threads(2**65),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_takes_and_refuses_what_torch_does(name: str) -> None:
    def done(t: Any) -> Any:
        try:
            return CALLS[name](t)
        except Exception as error:
            return built_in(error)

    assert done(gradwire) == done(torch)


ORDERS = {
    "rows first": lambda t: t.ones(2, 3, 4),
    "permuted": lambda t: t.ones(2, 3, 4).permute(2, 0, 1),
    "an extent of one": lambda t: t.ones(2, 3, 1).permute(2, 1, 0),
    "expanded": lambda t: t.ones(2, 3).expand(4, 2, 3),
    "expanded inside": lambda t: t.ones(3, 1).t().expand(2, 3),
    "all of one": lambda t: t.ones(1, 1, 1),
    "a number": lambda t: t.ones(()),
    "channels": lambda t: t.ones(2, 3, 4, 5).permute(0, 2, 3, 1),
}


@pytest.mark.parametrize("name", ORDERS)
def test_dim_order_goes_by_strides(name: str) -> None:
    assert ORDERS[name](gradwire).dim_order() == ORDERS[name](torch).dim_order()


def test_set_default_tensor_type_warns() -> None:
    for t in (torch, gradwire):
        with pytest.warns(UserWarning, match="set_default_dtype"):
            t.set_default_tensor_type(t.FloatTensor)
