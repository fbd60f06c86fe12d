"""Kernels that write in place, on operands that share elements with their target.

The engine copies the operand first, in one place and for every backend; without shared elements it copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gradwire_engine.autograd import inplace
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime.backends import Backends
from tests.strict_backend import StrictBackend

ENGINES: dict[str, Callable[[], Engine]] = {
    "numpy": Engine,
    "strict": lambda: Engine(backends=Backends(cpu=StrictBackend())),
}
INDEX = [2, 0, 3, 1]

# Each with its arguments beside the tensor that is written to; the string stands for the operand, the list for indices.
WRITES: dict[str, tuple[tuple[Any, ...], Callable[[Any, Any, Any], Any]]] = {
    "index_add_": ((0, INDEX, "operand", 1), lambda x, i, o: x.index_add_(0, i, o)),
    "index_copy_": ((0, INDEX, "operand"), lambda x, i, o: x.index_copy_(0, i, o)),
    "index_put_": (([INDEX], "operand", False), lambda x, i, o: x.index_put_((i,), o)),
    "copy_": (("operand", False), lambda x, i, o: x.copy_(o)),
    "add_": (("operand", 1), lambda x, i, o: x.add_(o)),
    "lerp_": (("operand", 0.25), lambda x, i, o: x.lerp_(o, 0.25)),
}
COLUMNS = [(0, 2), (0, 1), (1, 0), (2, 0), (0, 3), (3, 2)]


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("name", WRITES)
def test_an_operand_that_shares_elements_is_read_before_they_are_written(name: str, kind: str) -> None:
    arguments, theirs = WRITES[name]
    for to, start in COLUMNS:
        engine, values = ENGINES[kind](), np.arange(20.0).reshape(4, 5)
        memory = engine.from_numpy(values)
        operand = engine.call("slice", memory, 1, start, start + 2)

        def given(value: Any, engine: Engine = engine, operand: Any = operand) -> Any:
            if value == "operand":
                return operand
            if value == [INDEX]:
                return [engine.from_numpy(np.array(INDEX))]
            return engine.from_numpy(np.array(INDEX)) if value == INDEX else value

        engine.call(name, engine.call("slice", memory, 1, to, to + 2), *[given(value) for value in arguments])
        expected = torch.from_numpy(values.copy())
        theirs(expected[:, to : to + 2], torch.tensor(INDEX), expected[:, start : start + 2].clone())
        np.testing.assert_allclose(engine.to_numpy(memory), expected.numpy(), err_msg=f"{to} {start}")


def test_an_operand_beside_what_is_written_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []
    monkeypatch.setattr(inplace, "copy_of", lambda engine, tensor: copied.append(tensor) or tensor)
    engine = Engine()
    memory = engine.from_numpy(np.arange(20.0).reshape(4, 5))
    left, right, across = (engine.call("slice", memory, 1, start, start + 2) for start in (0, 2, 1))
    index = engine.from_numpy(np.array(INDEX))
    engine.call("index_add_", left, 0, index, right, 1)
    assert not copied
    engine.call("index_add_", left, 0, index, across, 1)
    assert copied == [across]
