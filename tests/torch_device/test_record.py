"""The record of the op database on the device, ``docs/device_coverage.json``: its shares, and some entries again.

``python -m tests.torch_device --record`` renews it.
"""

from __future__ import annotations

import os
import random

import pytest
import torch

from .coverage import DTYPES, entries, measure
from .record import read_record, shares

SEED = int(os.environ.get("GRADWIRE_OP_DB_SEED", "0"))
RECORD = read_record()
GOAL = 0.97
AGAIN = 12
"""So many entries are measured again, with one sample of each dtype."""


def complete(name: str) -> bool:
    """Whether all of an entry's samples passed."""
    kinds = [by for by in RECORD["entries"][name].values() if isinstance(by, dict)]
    return bool(kinds) and all(passed == total for by in kinds for passed, total, _ in by.values())


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_share_is_the_goal(dtype: str) -> None:
    assert RECORD["shares"][dtype]["share"] >= GOAL


def test_the_shares_are_those_of_the_entries() -> None:
    assert RECORD["shares"] == shares(RECORD["entries"])


def test_the_record_is_of_entries_that_there_are() -> None:
    assert set(RECORD["entries"]) <= set(entries())


@pytest.mark.parametrize("name", sorted(random.Random(SEED).sample(sorted(filter(complete, RECORD["entries"])), AGAIN)))
def test_what_passed_passes_again(name: str) -> None:
    torch.manual_seed(SEED)
    found = measure(entries()[name], ("float32", "complex64"), most=1, forms=1)
    assert not [reason for _, _, count in found.all() for reason in count.reasons]
