"""The engine refuses operands without a derivative that require grad, whatever the client."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_protocol.errors import GraphError
from gradwire_protocol.table import TABLE, lookup
from tests.hostile_arguments import drawn, over_tensors

from .test_hostile_arguments import on

ARGUMENTS: dict[str, dict[str, Any]] = {
    "binary_cross_entropy": {"target": (2, 3), "weight": (2, 3)},
    "binary_cross_entropy_with_logits": {"target": (2, 3), "weight": (2, 3), "pos_weight": (3,)},
    "nll_loss": {"target": [0, 1], "weight": (3,)},
    "cross_entropy": {"target": [0, 1], "weight": (3,)},
    "linalg_pinv": {"atol": (), "rtol": ()},
    "soft_margin_loss": {"target": (2, 3)},
    "multi_margin_loss": {"target": [0, 1], "weight": (3,)},
    "batch_norm": {"running_mean": (3,), "running_var": (3,)},
    "instance_norm": {"self": (2, 3, 4), "running_mean": (3,), "running_var": (3,)},
    "fractional_max_pool": {"self": (1, 1, 4, 4), "samples": (1, 1, 2), "kernel_size": (2, 2), "output_size": (2, 2)},
}
"""Of each op with such an operand: shapes of floats, lists of integers, and numbers as they are."""

OPERANDS = [(op.name, name) for op in TABLE.values() if op.name in ARGUMENTS for name in sorted(op.underived)]
PRIMITIVES = [(op.name, name) for op in TABLE.values() if op.name not in ARGUMENTS for name in sorted(op.underived)]
"""Operands of operations that derivatives consist of, or that return what derivatives need: clients offer no functions
of their names."""


def arguments(engine: Engine, op: str) -> dict[str, Any]:
    """Tensors of a half, or of these integers, where the op takes a tensor."""
    found: dict[str, Any] = {}
    for name, value in {"self": (2, 3), **ARGUMENTS[op]}.items():
        if name in ("kernel_size", "output_size"):
            found[name] = value
        elif isinstance(value, list):
            found[name] = engine.from_numpy(np.array(value))
        else:
            found[name] = engine.from_numpy(np.full(value, 0.5, "float32"))
    return found


def call(engine: Engine, op: str, taken: dict[str, Any]) -> Any:
    """The op's first result."""
    result = engine.run(row(op), lookup(op).bind((), taken))
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize(("op", "name"), OPERANDS)
def test_it_is_refused_while_history_is_recorded(engine: Engine, op: str, name: str) -> None:
    taken = arguments(engine, op)
    before = {key: np.array(engine.to_numpy(value)) for key, value in taken.items() if isinstance(value, Tensor)}
    taken[name].requires_grad_flag = True
    with pytest.raises(GraphError, match=f"{op} has no derivative for '{name}', a float32"):
        call(engine, op, taken)
    for key, value in before.items():  # running statistics: nothing was written
        assert np.array_equal(engine.to_numpy(taken[key]), value)
    engine.grad_enabled = False
    call(engine, op, taken)
    engine.grad_enabled = True
    taken["self"].requires_grad_flag, taken[name].requires_grad_flag = True, False
    assert call(engine, op, taken).requires_grad


def sampled(engine: Engine, op: str, name: str) -> list[Any]:
    """Values of all parameters, from the first sample in which that operand is a tensor of floats; no history."""
    for _, sample in drawn(lookup(op), "float32", 0):
        values = lookup(op).bind(sample.args, sample.kwargs)
        given = dict(zip([param.name for param in lookup(op).params], values, strict=True))[name]
        if isinstance(given, torch.Tensor) and given.is_floating_point() and not sample.expects_error:
            return [on(engine, detached(value)) for value in values]
    raise AssertionError(f"no sample of {op} has a tensor of floats for {name}")


def detached(value: Any) -> Any:
    return over_tensors(lambda tensor: tensor.detach(), value)


@pytest.mark.parametrize(("op", "name"), PRIMITIVES)
def test_operations_of_derivatives_refuse_a_history(engine: Engine, op: str, name: str) -> None:
    values = sampled(engine, op, name)
    place = [param.name for param in lookup(op).params].index(name)
    values[place].requires_grad_flag = True
    with pytest.raises(GraphError, match=f"{op} has no derivative for '{name}', a float32"):
        engine.run(row(op), values)
    engine.grad_enabled = False
    engine.run(row(op), values)


def test_every_such_operand_is_asked() -> None:
    assert {op for op, _ in OPERANDS} == set(ARGUMENTS)
    assert not any(lookup(op).exposed for op, _ in PRIMITIVES)
