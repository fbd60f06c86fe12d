"""An error that comes at a read names the line of the program that recorded the operation, none of PyTorch's."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import gradwire_torch
from gradwire_protocol.errors import GradwireError
from gradwire_torch.host import ComputedHere, computed_on_the_host

gradwire_torch.register()


def line_of(function: Callable[..., Any], offset: int) -> str:
    return f"{Path(__file__)}:{inspect.getsourcelines(function)[1] + offset}"


def by_an_operation() -> None:
    x = torch.ones(3, 3, device="gradwire")
    x.gather(0, torch.tensor([[7]], device="gradwire"))


def by_a_module() -> None:
    model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Embedding(3, 2))).to("gradwire")
    model(torch.tensor([9], device="gradwire"))


def by_a_function() -> None:
    rows = torch.tensor([9], device="gradwire")
    torch.nn.functional.embedding(rows, torch.ones(3, 3, device="gradwire"))


class Failing(torch.autograd.Function):
    """Its backward looks for a row that is not there, by a tensor that it saved."""

    @staticmethod
    def forward(ctx: Any, x: Any, rows: Any) -> Any:
        ctx.save_for_backward(rows)
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad.index_select(0, *ctx.saved_tensors), None


def by_a_function_of_the_program_in_backward() -> None:
    x = torch.ones(3, requires_grad=True, device="gradwire")
    Failing.apply(x, torch.tensor([0, 1, 9], device="gradwire")).sum().backward()


def by_backward() -> None:
    x = torch.ones(3, 3, device="gradwire", requires_grad=True)
    rows = torch.tensor([[0]], device="gradwire")
    loss = x.gather(0, rows).sum()
    rows.data.fill_(9)
    loss.backward()


def by_the_optimizer() -> None:
    weight = torch.nn.Parameter(torch.ones(3, device="gradwire"))
    optimizer = torch.optim.SGD([weight], 0.1)
    weight.grad = torch.ones(3, device="gradwire")
    optimizer.register_step_pre_hook(looks_beyond)
    optimizer.step()


def looks_beyond(optimizer: Any, args: Any, kwargs: Any) -> None:
    optimizer.param_groups[0]["params"][0][torch.tensor([9], device="gradwire")]


FAILING = {
    by_an_operation: (by_an_operation, 2),
    by_a_module: (by_a_module, 2),
    by_a_function: (by_a_function, 2),
    by_a_function_of_the_program_in_backward: (Failing.backward, 2),
    by_backward: (by_backward, 5),
    by_the_optimizer: (looks_beyond, 1),
}


@pytest.mark.parametrize("failing", FAILING)
def test_the_line_is_the_programs(failing: Callable[[], None], session: Any) -> None:
    failing()
    session.flush()
    unrelated = torch.ones(2, device="gradwire")
    with pytest.raises(GradwireError) as found:
        unrelated.tolist()
    assert found.value.details["line"] == line_of(*FAILING[failing])
    assert f"met by a later read, at {Path(__file__)}" in str(found.value)
    assert unrelated.tolist() == [1, 1]


def test_a_warning_names_the_line_that_asked_for_what_is_computed_here() -> None:
    x = torch.ones(3, 3, device="gradwire")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        computed_on_the_host(torch.ops.aten.sin.default)(x)
    (warning,) = found
    assert warning.category is ComputedHere
    assert warning.filename == __file__
