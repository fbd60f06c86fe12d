"""PyTorch's keyword-only arguments are keyword-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.side_by_side import built_in

import gradwire
from gradwire_protocol.table import TABLE, Op

pytestmark = pytest.mark.usefixtures("session")

SCHEMAS: dict[str, list[Any]] = {}
for _schema in torch._C._jit_get_all_schemas():
    if _schema.name.startswith("aten::"):
        SCHEMAS.setdefault(_schema.name.removeprefix("aten::"), []).append(_schema)

WRITTEN_IN_PYTHON = {"norm"}
"""Functions whose signature in PyTorch is not that of their schema."""
OFFERED = [
    op.name
    for op in TABLE.values()
    if ("function" in op.exposed or "method" in op.exposed)
    and op.variadic is None
    and op.name in SCHEMAS
    and op.name not in WRITTEN_IN_PYTHON
]


def positional(op: Op) -> int:
    """How many arguments PyTorch takes by position, of those that the op has."""
    return max(
        sum(not a.kwarg_only and a.name not in ("dtype", "device") for a in schema.arguments)
        for schema in SCHEMAS[op.name]
        if not any(a.is_out for a in schema.arguments)
    )


@pytest.mark.parametrize("name", OFFERED)
def test_an_op_takes_no_more_arguments_by_position_than_in_torch(name: str) -> None:
    op = TABLE[name]
    assert op.by_position <= max(positional(op), op.by_position if "dtype" in op.positions else 0)


CALLS: dict[str, Callable[[Any], Any]] = {
    "add of a factor": lambda t: t.add(t.ones(2), t.ones(2), 2),
    "add of a number and a factor": lambda t: t.add(t.ones(2), 1, 2).tolist(),
    "add with a factor by name": lambda t: t.add(t.ones(2), t.ones(2), alpha=2).tolist(),
    "method add of a factor": lambda t: t.ones(2).add(t.ones(2), 2),
    "add_ of a factor": lambda t: t.ones(2).add_(t.ones(2), 2),
    "add of a tensor as factor": lambda t: t.add(t.ones(2), t.tensor(3), t.ones(2)).tolist(),
    "add of a bool tensor as factor": lambda t: t.add(t.tensor(True), t.tensor(True), True).item(),
    "add of a factor with a gradient": lambda t: t.add(t.ones(2), t.tensor(3.0, requires_grad=True), t.ones(2)),
    "addcmul of a factor in front": lambda t: t.addcmul(t.ones(2), 3, t.ones(2), t.ones(2)).tolist(),
    "addmm of factors in front": lambda t: t.addmm(2, t.ones(1, 1), 3, t.ones(1, 1), t.ones(1, 1)).tolist(),
    "add of two numbers": lambda t: t.add(t.tensor(True), True, True).item(),
    "a number shifted by a tensor": lambda t: t.bitwise_left_shift(3, t.tensor([1, 2])).tolist(),
    "a number shifted by a number": lambda t: t.bitwise_left_shift(1, 2),
    "add of a factor in front": lambda t: t.add(t.ones(2), 2, t.ones(2)).tolist(),
    "sub of a factor": lambda t: t.sub(t.ones(2), t.ones(2), 2),
    "div of a rounding mode": lambda t: t.div(t.ones(2), t.ones(2), "floor"),
    "sum of a dtype": lambda t: t.sum(t.ones(2), 0, True, t.float64),
    "method sum of a dtype": lambda t: t.ones(2).sum(0, True, t.float64),
    "norm method of a dtype": lambda t: t.ones(2).norm(2, 0, False, t.float64).tolist(),
    "cumsum of a dtype": lambda t: t.cumsum(t.ones(2), 0, t.float64),
    "addmm of factors": lambda t: t.addmm(t.ones(2, 2), t.ones(2, 2), t.ones(2, 2), 1, 2),
    "addcmul of a factor": lambda t: t.addcmul(t.ones(2), t.ones(2), t.ones(2), 2),
    "index_add of a factor": lambda t: t.ones(2).index_add(0, t.tensor([0]), t.ones(1), 2),
    "round of decimals": lambda t: t.round(t.ones(2), 1),
    "scatter_reduce of self": lambda t: t.ones(2).scatter_reduce(0, t.tensor([0]), t.ones(1), "sum", False),
    "aminmax of a dimension": lambda t: t.aminmax(t.ones(2), 0),
    "quantile of a rule": lambda t: t.quantile(t.ones(2), 0.5, 0, False, "lower"),
    "zeros_like of a dtype": lambda t: t.zeros_like(t.ones(2), t.float64),
    "sort of stable": lambda t: t.sort(t.ones(2), 0, False, True),
    "too many": lambda t: t.sin(t.ones(2), 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_taken_or_refused_as_in_torch(name: str) -> None:
    def done(t: Any) -> Any:
        try:
            return CALLS[name](t)
        except Exception as error:
            return built_in(error)

    assert done(gradwire) == done(torch)
