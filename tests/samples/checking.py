"""Samples of checks on values."""

from __future__ import annotations

import torch

from tests.samples import BOOL, Make, Sample, samples

from .pointwise import Samplings


@samples("check_all", ref=None, dtypes=BOOL)
def check_all(make: Make) -> Samplings:
    yield Sample(torch.ones(2, 3, dtype=torch.bool), "all of them")
    yield Sample(torch.ones(0, dtype=torch.bool), "none of them")
    yield Sample(torch.tensor(True), "one", torch.tensor(2.0))
    yield Sample(torch.ones(2, dtype=torch.bool), "rows", torch.zeros(2, 3))
    yield Sample(torch.tensor([True, False]), "not all of them").fails()
    yield Sample(torch.tensor([True, False]), "not all of them", torch.tensor([1, 2])).fails()
    yield Sample(torch.ones(2), "no mask").fails()
    yield Sample(torch.ones(2, dtype=torch.bool), "a number", torch.tensor(1.0)).fails()
