"""Writes through real views of complex memory and complex views of real memory, and their history, against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine

Z = np.array([[1 + 2j, -0.5j], [3 - 1j, 0.25 + 1j]])
PAIRS = np.arange(8.0).reshape(2, 2, 2) - 3


def weigh(call, x):
    """A real number that depends on every element in its own way."""
    return call("sum", call("mul", x, call("add", x, 1.5)))


def torch_call(name, *args):
    table = {"add": torch.add, "mul": torch.mul, "sum": torch.sum, "real": torch.real, "imag": torch.imag}
    found = table.get(name) or getattr(torch, name, None) or getattr(torch.Tensor, name)
    return found(*args)


def written_real(call, z):
    part = call("real", z)
    call("mul_", part, 3.0)
    return call("view_as_real", z)


def stale_real(call, z):
    part = call("real", z)
    call("mul_", z, 2 - 1j)
    return part


def stale_imag_of_a_row(call, z):
    part = call("imag", call("select", z, 0, 1))
    call("mul_", z, 2 - 1j)
    return part


def stale_pairs_of_a_transpose(call, z):
    part = call("view_as_real", call("transpose", z, 0, 1))
    call("mul_", z, 1j)
    return part


def stale_part_of_pairs(call, z):
    part = call("select", call("view_as_real", z), 2, 1)
    call("mul_", z, 1j)
    call("mul_", part, 2.0)
    call("mul_", z, 0.5)
    return part


COMPLEX = (written_real, stale_real, stale_imag_of_a_row, stale_pairs_of_a_transpose, stale_part_of_pairs)


def written_complex(call, x):
    call("mul_", call("view_as_complex", x), 1 + 2j)
    return x


def stale_complex(call, x):
    z = call("view_as_complex", x)
    call("mul_", x, 3.0)
    return call("view_as_real", z)


def stale_complex_of_a_row(call, x):
    z = call("view_as_complex", call("select", x, 0, 1))
    call("mul_", x, 3.0)
    call("mul_", z, 2j)
    return x


REAL = (written_complex, stale_complex, stale_complex_of_a_row)


@pytest.mark.parametrize("case", [*((c, Z) for c in COMPLEX), *((c, PAIRS) for c in REAL)], ids=lambda c: c[0].__name__)
def test_a_write_reaches_every_view(case):
    function, values = case
    engine = Engine()
    ours = engine.from_numpy(values, requires_grad=True)
    result = function(engine.call, engine.call("mul", ours, 1))
    engine.call("backward", [weigh(engine.call, result)], [None])

    theirs = torch.tensor(values, requires_grad=True)
    expected = function(torch_call, theirs * 1)
    weigh(torch_call, expected).backward()

    np.testing.assert_allclose(engine.to_numpy(result), expected.detach().numpy())
    np.testing.assert_allclose(engine.to_numpy(ours.grad), theirs.grad.numpy())
