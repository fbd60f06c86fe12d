"""What a compiled graph may not keep from the call by which it was recorded."""

from __future__ import annotations

from typing import Any

import torch

from gradwire_torch import register
from gradwire_torch.compiling import gradwire as backend

from .side_by_side import DEVICE

register()


def vector(value: float) -> torch.Tensor:
    return torch.full((3,), value, device=DEVICE)


def test_a_number_on_the_cpu_has_its_value_of_each_call() -> None:
    @torch.compile(backend=backend)
    def scaled(x: Any, factor: Any) -> Any:
        return (x * factor + 1).sum()

    assert [scaled(vector(1.0), torch.tensor(float(i))).item() for i in range(5)] == [3, 6, 9, 12, 15]


def test_what_is_computed_on_the_cpu_is_computed_at_each_call() -> None:
    @torch.compile(backend=backend)
    def scaled(x: Any, factor: Any) -> Any:
        return x * (factor + 1), factor * 2

    for i in range(3):
        product, doubled = scaled(vector(1.0), torch.tensor(float(i)))
        assert product.tolist() == [i + 1.0] * 3
        assert doubled.item() == 2.0 * i and doubled.device.type == "cpu"

    @torch.compile(backend=backend)
    def noisy(x: Any) -> Any:
        return x + torch.rand(3).to(DEVICE), torch.nn.functional.dropout(x, 0.5)

    drawn = [torch.cat(noisy(torch.ones(3, device=DEVICE))).tolist() for _ in range(12)]
    assert len({tuple(one[:3]) for one in drawn}) == 12
    assert len({tuple(one[3:]) for one in drawn}) > 1


def test_arguments_that_are_one_memory_are_another_kind_of_call() -> None:
    @torch.compile(backend=backend)
    def weighted(x: Any, y: Any, z: Any) -> Any:
        return x + 2 * y + 3 * z

    for _ in range(3):
        one, ten = vector(1.0), vector(10.0)
        assert weighted(one, ten, ten.detach()).tolist() == [51.0] * 3
        assert weighted(one, one.detach(), ten).tolist() == [33.0] * 3
        assert weighted(ten, one, ten.detach()).tolist() == [42.0] * 3


def test_writes_reach_the_memory_that_is_given() -> None:
    @torch.compile(backend=backend)
    def raised(x: Any, y: Any) -> Any:
        x.add_(1)
        return x * y

    for _ in range(3):
        x = vector(1.0)
        assert raised(x, x).tolist() == [4.0] * 3 and x.tolist() == [2.0] * 3
        both = torch.ones(6, device=DEVICE)
        assert raised(both[:3], both[3:]).tolist() == [2.0] * 3
        assert both.tolist() == [2.0] * 3 + [1.0] * 3


def test_results_on_one_memory_are_two_tensors() -> None:
    @torch.compile(backend=backend)
    def pair(x: Any) -> Any:
        y = x * 2
        return y, y.view(3, 1), y[1:]

    for _ in range(3):
        whole, column, rest = pair(vector(1.0))
        column.zero_()
        assert (whole.tolist(), rest.tolist()) == ([0.0] * 3, [0.0] * 2)
        assert whole is not column
