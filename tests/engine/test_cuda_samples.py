"""All samples of ops with GPU kernels of our own, on emulated kernels, as ``make gpu`` runs them."""

from __future__ import annotations

import zlib

import pytest

from gradwire_engine.kernels.cuda import load
from gradwire_engine.numerics.expressions import EXPRESSIONS
from gradwire_engine.runtime.backends import Backends
from tests.cuda_emulation import AVAILABLE, EmulatedBackend
from tests.gpu.parity import Comparison
from tests.samples import Sample
from tests.samples import load as load_samples

SAMPLES = load_samples()
OPS = sorted(name for name in load() if name in SAMPLES and name not in EXPRESSIONS)


def _has_no_such_class(sample: Sample) -> bool:
    scores, target = sample.args[:2]
    if target.is_floating_point() or not scores.ndim:
        return False
    counted = target[target != sample.kwargs.get("ignore_index", -100)]
    return bool((counted >= scores.shape[min(1, scores.ndim - 1)]).any() or (counted < 0).any())


@pytest.mark.skipif(not AVAILABLE, reason="needs g++")
@pytest.mark.parametrize("name", OPS)
def test_samples_agree_with_numpy(name: str) -> None:
    for samples in SAMPLES[name]:
        if "float32" in samples.dtypes:
            seed = zlib.crc32(name.encode())
            for sample in samples.draw("float32", seed):
                if name == "cross_entropy" and _has_no_such_class(sample):
                    continue  # an error on the CPU only
                Comparison(samples, sample, "cpu", seed, lambda: Backends(cpu=EmulatedBackend())).run()
