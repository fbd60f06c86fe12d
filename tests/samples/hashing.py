"""Samples of hashes of tensors."""

from __future__ import annotations

from typing import Any

import torch

from tests.samples import BOOL, FLOATS, HALVES, INTS, Make, Sample, samples

from .pointwise import Samplings


def _hash(x: Any, dim: Any = None, keepdim: bool = False, mode: int = 0) -> torch.Tensor:
    """PyTorch's takes no None as ``dim`` together with keywords."""
    return torch.hash_tensor(x, dim, keepdim=keepdim, mode=mode)


@samples("hash_tensor", dtypes=(*BOOL, *INTS, *HALVES, *FLOATS), ref=_hash, grad=False)
def hash_tensor(make: Make) -> Samplings:
    plain = make.plain()
    x = plain(3, 5, 2)
    yield Sample(x)
    for dim in (0, -1, (0, 2), (), (0, 1, 2)):
        yield Sample(x, dim)
        yield Sample(x, dim, True)
    yield Sample(plain(5, 3, transposed=True), 0)
    yield Sample(plain(4, 1))
    yield Sample(plain())
    yield Sample(plain(), 0)
    yield Sample(plain(0, 3), 1)
    yield Sample(plain(0, 3), 0).fails()
    yield Sample(plain(0, 3)).fails()
    yield Sample(x, 3).fails()
    yield Sample(x, mode=1).fails()


@samples("hash_tensor", dtypes=("complex64",), ref=_hash)
def hash_of_complex(make: Make) -> Samplings:
    yield Sample(make.plain()(3)).fails()


@samples("hash_tensor", dtypes=("float32",), ref=_hash)
def hash_of_numbers_that_are_not_finite(make: Make) -> Samplings:
    yield Sample(torch.tensor([float("inf"), -0.0, float("-inf")]))
