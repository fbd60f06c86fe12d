"""Samples of activations that draw random numbers: slopes are checked for their range only."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import FLOATS, HALVES, Sample, samples


def _check_rrelu(results, x, lower=0.125, upper=1 / 3, training=False):
    result, slopes = results
    assert torch.equal(slopes[x > 0], torch.ones_like(slopes[x > 0]))
    below = slopes[x <= 0].double()
    slack = 1e-2 if x.dtype.itemsize == 2 else 1e-6
    assert bool(((below >= lower - slack) & (below <= upper + slack)).all())
    if training and upper - lower > 0.1:
        assert float(below.std()) > 0
    torch.testing.assert_close(result, (x * slopes).detach(), rtol=1e-2, atol=1e-2)


@samples("rrelu", dtypes=(*HALVES, *FLOATS), ref=None, check=_check_rrelu)
def rrelu(make):
    yield Sample(make(20, 30), training=True)
    yield Sample(make(20, 30), 0.1, 0.9, True)
    yield Sample(make(20, 30), 0.2, 0.2, True)
    yield Sample(make(4, 5))


def _slopes(x, lower, upper, training):
    result = nnf.rrelu(x, lower, upper, training)
    slopes = torch.full_like(x, (lower + upper) / 2).masked_fill(x > 0, 1)
    return result, x * 0 + slopes


@samples("rrelu", dtypes=("float64", "int64"), ref=_slopes, grad_fn=False)
def rrelu_in_evaluation(make):
    yield Sample(make(4, 5), 0.125, 1 / 3, False)
