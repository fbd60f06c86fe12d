"""What GradScaler passes to optimizers that unscale and skip themselves; older names of mixed precision."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import gradwire

pytestmark = pytest.mark.usefixtures("session")


def steps(t: Any, unscaled_first: bool) -> list[Any]:
    """What an optimizer of the program's finds in its step."""

    class Own(t.optim.Optimizer):  # type: ignore[misc, name-defined]
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})
            self._step_supports_amp_scaling = True
            self.seen: list[Any] = []

        def step(self, closure: Any = None) -> None:
            scale = None if self.grad_scale is None else self.grad_scale.item()
            gradient = self.param_groups[0]["params"][0].grad.tolist()
            self.seen.append((scale, bool(self.found_inf.item()), gradient))

    x = t.tensor([1.0, 2.0], requires_grad=True)
    optimizer, scaler = Own([x]), t.amp.GradScaler("cpu", init_scale=4.0)
    for factor in (1.0, float("inf"), 1.0):
        x.grad = None
        scaler.scale((x * factor).sum()).backward()
        if unscaled_first:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return [*optimizer.seen, hasattr(optimizer, "grad_scale"), hasattr(optimizer, "found_inf"), scaler.get_scale()]


@pytest.mark.parametrize("unscaled_first", [False, True])
def test_an_optimizer_that_scales_finds_the_scale_and_what_was_found(unscaled_first: bool) -> None:
    assert steps(gradwire, unscaled_first) == steps(torch, unscaled_first)


def test_an_optimizer_of_the_older_form_is_given_the_scaler() -> None:
    def given(t: Any) -> Any:
        class Own(t.optim.Optimizer):  # type: ignore[misc, name-defined]
            _step_supports_amp_scaling = True

            def step(self, closure: Any = None, *, grad_scaler: Any = None) -> Any:
                return isinstance(grad_scaler, t.amp.GradScaler)

        x = t.ones(2, requires_grad=True)
        scaler = t.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(x.sum()).backward()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = scaler.step(Own([x], {}))
        return result, [w.category for w in said]

    assert given(gradwire) == given(torch)


@pytest.mark.parametrize("name", ["autocast", "GradScaler"])
def test_the_older_names_for_the_cpu_warn_and_work(name: str) -> None:
    for t in (gradwire, torch):
        with pytest.warns(FutureWarning):
            made = getattr(t.cpu.amp, name)()
        assert isinstance(made, getattr(t.amp, name))
    with pytest.warns(FutureWarning), gradwire.cpu.amp.autocast():
        assert (gradwire.ones(2, 2) @ gradwire.ones(2, 2)).dtype is gradwire.bfloat16


@pytest.mark.parametrize("name", ["show", "parallel_info"])
def test_the_configuration_is_text(name: str) -> None:
    for t in (gradwire, torch):
        assert isinstance(getattr(t.__config__, name)(), str)
