"""Every recorded entry of torch's op database passes: all samples, forward and gradient, in every dtype that the record
lists as complete, and its error inputs.

The record is ``docs/op_coverage.json``; ``make coverage`` renews it, reference inputs included.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

import gradwire

from .coverage import measure
from .entries import DTYPES, LEFT_OUT, all_entries, op_db
from .record import read_record
from .trial import Lacking, operator_of

SEED = int(os.environ.get("GRADWIRE_OP_DB_SEED", "0"))
RECORD = read_record()["entries"]
HAD = [name for name, counts in RECORD.items() if "lacking" not in counts]


def whole(counts: dict[str, Any], kind: str, dtype: str) -> bool:
    """Whether the record says that all of these passed."""
    passed, total = counts.get(kind, {}).get(dtype, (0, 0))
    return bool(passed == total)


def test_the_record_lists_every_entry() -> None:
    assert set(RECORD) == set(all_entries())
    assert {e.name for e in op_db} == {e.name for e in all_entries().values()} | set(LEFT_OUT)


def test_what_the_record_calls_lacking_is_lacking() -> None:
    for name in sorted(set(RECORD) - set(HAD)):
        with pytest.raises(Lacking):
            operator_of(all_entries()[name], gradwire)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", HAD)
def test_samples_agree_with_pytorch(name: str) -> None:
    torch.manual_seed(SEED)
    counts = RECORD[name]
    entry = all_entries()[name]
    dtypes = [d for d in DTYPES.values() if whole(counts, "forward", d)]
    found = measure(entry, gradwire, dtypes, errors=whole(counts, "errors", "any"))
    problems = [
        problem
        for kind, by in found.counts.items()
        for dtype, count in by.items()
        if whole(counts, kind, dtype)
        for problem in count.failures
    ]
    assert not problems, f"{len(problems)} samples fail, seed {SEED}:\n" + "\n".join(problems[:5])
    if not dtypes:
        pytest.skip("the record says that no dtype passes whole")
