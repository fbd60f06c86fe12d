"""Every class of torch's module database that gradwire has passes on all its inputs."""

from __future__ import annotations

import os
import random

import pytest

from .checks import dtypes
from .coverage import GAPS, classes, is_there, outcomes

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", "0"))
"""0 draws another one for each test; a failure names it."""

HAD = [
    pytest.param(info, dtype, id=f"{info.name}-{str(dtype).removeprefix('torch.')}")
    for info in classes()
    if is_there(info)
    for dtype in dtypes(info)
]


@pytest.mark.parametrize("info, dtype", HAD)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
def test_a_class_agrees_with_torch_on_all_inputs_of_the_database(info, dtype):
    seed = SEED or random.randrange(10**6)
    failed = [f"{case.label}: {'; '.join(found)}" for case, found in outcomes(info, seed, dtype) if found]
    if failed and info.name in GAPS:
        pytest.skip(GAPS[info.name])
    assert not failed, f"with seed {seed}:\n" + "\n".join(failed[:20])
