"""Backward through a saved tensor that was detached in place is refused, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_protocol.errors import GraphError

USES: dict[str, Callable[[Engine, Any], Any]] = {
    "an operand": lambda engine, y: engine.call("sin", y),
    "both operands": lambda engine, y: engine.call("mul", y, y),
    "one of a list": lambda engine, y: engine.call("einsum", "i,i->i", [engine.from_numpy(np.ones(3)), y]),
}


def used(kind: str) -> tuple[Engine, Any, Any, Any]:
    engine = Engine()
    x = engine.from_numpy(np.arange(3.0))
    engine.call("requires_grad_", x, True)
    y = engine.call("exp", x)
    return engine, x, y, USES[kind](engine, y)


@pytest.mark.parametrize("kind", USES)
def test_what_backward_keeps_is_not_detached_in_place_before_it(kind: str) -> None:
    engine, _, y, z = used(kind)
    engine.call("detach_", y)
    with pytest.raises(GraphError, match="detached in place"):
        engine.call("backward", [z], [engine.from_numpy(np.ones(3))], None, False, False)


@pytest.mark.parametrize("kind", USES)
def test_backward_goes_on_where_nothing_kept_was_detached(kind: str) -> None:
    engine, x, y, z = used(kind)
    engine.call("detach_", engine.call("exp", y))
    engine.call("backward", [z], [engine.from_numpy(np.ones(3))], None, False, False)
    assert x.grad is not None
