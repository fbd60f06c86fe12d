"""The buffers of NumPy's BLAS are in memory before a session's first product."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from threadpoolctl import ThreadpoolController

CHILD = """
import ctypes, resource, sys
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: one fault of a huge page would stand for 512
import numpy as np
from gradwire_engine.runtime import blas_buffers

a, b, out = (np.ones((640, 640), np.float32) for _ in range(3))
np.matmul(a[:64, :64], b[:64, :64], out=out[:64, :64])
if sys.argv[1] == "filled":
    blas_buffers.fill(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.matmul(a, b, out=out)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * resource.getpagesize())
"""


def fetched(state: str) -> int:
    """Bytes that page faults bring in during a product that is larger than those before it, in a new process."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, state], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return int(child.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts page faults as Linux does")
@pytest.mark.skipif(
    all(library["internal_api"] != "openblas" for library in ThreadpoolController().info()),
    reason="NumPy computes with another BLAS than OpenBLAS",
)
def test_a_larger_product_finds_its_buffers_in_memory() -> None:
    assert fetched("untouched") > 200 << 10
    assert fetched("filled") < 40 << 10
