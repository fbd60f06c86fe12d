"""The checks that run on a GPU (``tests/gpu``), here against the stand-in for CuPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime.backends import Backends
from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, GradwireError, KernelError, Unsupported
from gradwire_protocol.table import TABLE
from tests.gpu.parity import Comparison, Side, close, refused
from tests.samples import Sample, load
from tests.strict_backend import VALUES, StrictBackend

SAMPLES = load()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("op", ["linalg_eigh", "linalg_svd"])
def test_vectors_may_have_other_signs_and_phases(op: str, dtype: str) -> None:
    for samples in SAMPLES[op]:
        for sample in samples.draw(dtype, 3):
            Comparison(samples, sample, "cpu", 3, lambda: Backends(cpu=StrictBackend())).run()


@pytest.mark.parametrize(("dtype", "op"), [("float64", "linalg_eigh"), ("complex128", "linalg_svd")])
def test_other_vectors_are_found(op: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(*given: Any, **options: Any) -> Any:
        first, *rest = getattr(np.linalg, op.removeprefix("linalg_"))(*given, **options)
        return (np.flip(first, -1), *rest)

    monkeypatch.setitem(VALUES, op.removeprefix("linalg_"), turned)
    samples = SAMPLES[op][0]
    with pytest.raises(AssertionError, match=f"{op}, "):
        Comparison(samples, samples.draw(dtype, 3)[0], "cpu", 3, lambda: Backends(cpu=StrictBackend())).run()


def test_a_gradient_is_as_exact_as_the_results_it_comes_from() -> None:
    mine, wanted = (Engine().from_numpy(np.array(x)) for x in (1.0, 1.0 + 1e-6))
    close("", mine, wanted, None, through=[dtypes.float32])
    with pytest.raises(AssertionError):
        close("", mine, wanted, None, through=[dtypes.float64])


OUTSIDE = Sample(torch.tensor([0.5, 1.5]))
SHAPES = Sample(torch.ones(2, 3), torch.ones(2, 3))
ARGUMENT, VALUE, ABSENT = ArgumentError("a"), KernelError("v"), Unsupported("u")


@pytest.mark.parametrize(
    ("op", "sample", "error", "raised", "accepted"),
    [
        ("bernoulli", OUTSIDE, ARGUMENT, None, True),  # a kernel that does not look at values on a GPU
        ("matmul", SHAPES, ARGUMENT, None, False),  # a rule
        ("matmul", SHAPES, VALUE, None, True),
        ("matmul", SHAPES, ARGUMENT, ARGUMENT, True),
        ("matmul", SHAPES, ARGUMENT, VALUE, False),
        ("matmul", SHAPES, ARGUMENT, ABSENT, True),
    ],
)
def test_errors_that_a_gpu_may_lack(
    op: str, sample: Sample, error: GradwireError, raised: GradwireError | None, accepted: bool
) -> None:
    def call(name: str) -> None:
        if raised is not None:
            raise raised

    side: Any = SimpleNamespace(device="cuda:0", call=call)
    try:
        refused(op, side, error, lambda: Side("cpu", sample, TABLE[op], 0))
    except AssertionError:
        assert not accepted
    else:
        assert accepted
