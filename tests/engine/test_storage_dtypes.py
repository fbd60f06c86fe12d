"""The dtypes for storage against PyTorch: which ops take them, and what they compute.

A run tries a few ops of each dtype, other ones each time; ``GRADWIRE_TEST_SEED`` repeats it.
"""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_protocol import dtypes
from gradwire_protocol.storage_dtypes import TAKEN
from tests.samples import Make, Samples, load

from .test_parity import SEED, Trial

STORED = [dtype.name for dtype in dtypes.STORED]
OPS_OF_A_RUN = 12
ROUNDED = {"addbmm", "addmm", "linear", "matmul", "mm"}
"""Ops whose sums PyTorch rounds to 8 bits on the way."""


def chosen(dtype: str) -> list[Samples]:
    """Samples of a few ops that take the dtype."""
    taken = [s for name in sorted(TAKEN[dtypes.BY_NAME[dtype]] - ROUNDED) for s in load().get(name, ())]
    return random.Random(f"{dtype}{SEED}").sample(taken, min(OPS_OF_A_RUN, len(taken)))


@pytest.mark.parametrize("dtype", STORED)
def test_ops_compute_what_pytorch_computes(dtype: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for samples in chosen(dtype):
            try_samples(samples, dtype)


def try_samples(samples: Samples, dtype: str) -> None:
    engine = Engine()
    try:
        for sample in samples.generate(Make(dtype, SEED)):
            if sample.expects_error:
                continue
            try:
                Trial(engine, samples, sample, dtype).run()
            except Exception as error:
                raise AssertionError(f"{samples.op}{sample!r}\n{error!r}\n(GRADWIRE_TEST_SEED={SEED})") from error
    except NotImplementedError:  # PyTorch cannot make the next sample in this dtype
        return
