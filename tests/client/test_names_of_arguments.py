"""Names of arguments that PyTorch's functions have beside those of the op table."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire

CALLS = {
    "copy_": lambda lib, x, v: x.clone().copy_(other=v),
    "map_": lambda lib, x, v: v.clone().map_(other=v, callable=lambda a, b: a + b),
    "modules": lambda lib, x, v: len(list(lib.nn.Sequential(*[lib.nn.ReLU()] * 2).modules(remove_duplicate=False))),
    "ormqr": lambda lib, x, v: lib.ormqr(x, input2=v, input3=x),
    "resize_": lambda lib, x, v: x.clone().resize_(size=(2, 2)),
    "result_type": lambda lib, x, v: str(lib.result_type(tensor=x, other=v)),
    "result_type of numbers": lambda lib, x, v: str(lib.result_type(scalar1=1, scalar2=2.0)),
    "split_copy": lambda lib, x, v: lib.split_copy(v, split_size=2)[1],
    "swapaxes_": lambda lib, x, v: x.clone().swapaxes_(axis0=0, axis1=1),
    "tensor_split": lambda lib, x, v: v.tensor_split(tensor_indices_or_sections=lib.tensor(2))[1],
    "tensordot": lambda lib, x, v: lib.tensordot(a=x, b=x, dims=1),
    "uniform_": lambda lib, x, v: tuple(v.clone().uniform_(**{"from": 3, "to": 4}).floor().tolist()),
    "enable_grad": lambda lib, x, v: lib.enable_grad(orig_func=abs)(-2),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_by_these_names_gives_the_same(call) -> None:
    values = np.arange(9.0).reshape(3, 3)
    theirs = call(torch, torch.tensor(values), torch.tensor([0.5, 0.25, 2.0], dtype=torch.float64))
    ours = call(gradwire, gradwire.tensor(values), gradwire.tensor([0.5, 0.25, 2.0], dtype=gradwire.float64))
    if isinstance(theirs, torch.Tensor):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)
    else:
        assert ours == theirs


def test_the_old_names_of_hardtanh_warn() -> None:
    with pytest.warns(FutureWarning, match="min_val"):
        layer = gradwire.nn.Hardtanh(min_value=-2.0, max_value=3.0)
    assert (layer.min_val, layer.max_val) == (-2.0, 3.0)


def test_result_type_refuses_other_names() -> None:
    with pytest.raises(TypeError, match="'first'"):
        gradwire.result_type(first=1, other=2)
