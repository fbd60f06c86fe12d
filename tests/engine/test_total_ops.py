"""Ops that are declared total, or taken for it, fail for no values of floating point operands: plans rely on it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.table import TABLE
from tests.engine.test_parity import Ours, convert
from tests.samples import Sample, load

VALUES = (float("nan"), float("inf"), -float("inf"), -1e30, -1.5, 0.0, 1e-30, 7.0)
DTYPES = ("float32", "complex64")
CASES = [pytest.param(name, dtype, id=f"{name}-{dtype}") for name in load() if TABLE[name].total for dtype in DTYPES]


def floats_alone(sample: Sample) -> bool:
    """Whether the op's tensors are those that a plan trusts: the rest may be indices."""
    seen: list[torch.Tensor] = []
    for value in (*sample.args, *sample.kwargs.values()):
        convert(value, seen.append, lambda dtype: dtype)
    return bool(seen) and all(t.is_floating_point() or t.is_complex() or t.dtype is torch.bool for t in seen)


def filled(sample: Sample, value: float) -> Sample:
    def fill(given: torch.Tensor) -> Any:
        return given if given.dtype is torch.bool else torch.full_like(given.detach(), value)

    args = tuple(convert(a, fill, lambda dtype: dtype) for a in sample.args)
    return Sample(*args, **{k: convert(v, fill, lambda dtype: dtype) for k, v in sample.kwargs.items()})


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_a_total_op_fails_for_no_values(name: str, dtype: str) -> None:
    engine = Engine()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for declared in load()[name]:
            if dtype not in declared.dtypes:
                continue
            for sample in declared.draw(dtype, 1):
                if sample.expects_error or not floats_alone(sample):
                    continue
                try:
                    Ours(engine, sample).call(name)
                except GradwireError:
                    continue  # for its shapes or numbers
                for value in VALUES:
                    Ours(engine, filled(sample, value)).call(name)
