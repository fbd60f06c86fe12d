"""Each optimizer of the database agrees with torch's in all its configurations; see :mod:`tests.optim_db.runs`."""

from __future__ import annotations

import pytest

from .runs import INFOS, Case, cases, run

# It needs sparse gradients: what it refuses is tested below, its steps are refused themselves.
SPARSE = "SparseAdam"
CASES = [
    c for name in INFOS for c in cases(name)
    if name != SPARSE or (c.error is not None and "dense params" not in c.label)
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_agrees_with_torch(case: Case) -> None:
    assert run(case) is None


def test_sparse_adam_says_what_is_missing() -> None:
    import gradwire as gw

    param = gw.nn.Parameter(gw.ones(3))
    param.grad = gw.ones(3)
    with pytest.raises(NotImplementedError, match="sparse"):
        gw.optim.SparseAdam([param]).step()
