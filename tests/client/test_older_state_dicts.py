"""State dicts of older versions, and classes with one of the extra-state methods, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gradwire as gw

LIBRARIES = (torch, gw)


def with_methods(lib, *names: str):
    methods = {"get_extra_state": lambda self: 5, "set_extra_state": lambda self, state: None}
    return type("Made", (lib.nn.Module,), {name: methods[name] for name in names})()


@pytest.mark.parametrize(
    "names", [("get_extra_state",), ("set_extra_state",), ("get_extra_state", "set_extra_state"), ()], ids=str
)
def test_extra_state_is_missing_or_unexpected_by_what_the_class_takes(names: tuple[str, ...]) -> None:
    answers = []
    for lib in LIBRARIES:
        module = with_methods(lib, *names)
        keys = module.load_state_dict(module.state_dict(), strict=False)
        try:
            module.load_state_dict(module.state_dict())
            refused = False
        except RuntimeError:
            refused = True
        answers.append((list(keys.missing_keys), list(keys.unexpected_keys), refused))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("dropped", [(), ("weight",), ("weight_u",)], ids=str)
def test_a_spectral_norm_of_before_version_1_is_loaded(dropped: tuple[str, ...]) -> None:
    torch.manual_seed(1)
    drawn = torch.nn.Linear(3, 5).double()
    given = {name: value.detach().numpy() for name, value in drawn.state_dict().items()}
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    found, kept = [], None
    for lib in LIBRARIES:
        module = lib.nn.Linear(3, 5, dtype=lib.float64)
        module.load_state_dict({name: lib.tensor(value) for name, value in given.items()})
        module = lib.nn.utils.spectral_norm(module, n_power_iterations=3)
        if kept is None:
            module(lib.tensor(x))
            kept = {name: value.detach().numpy() for name, value in module.state_dict().items()}
            kept["weight"] = module.weight.detach().numpy()
            del kept["weight_v"]
        old = {name: lib.tensor(value) for name, value in kept.items() if name not in dropped}
        try:
            module.load_state_dict(old)
            module.eval()
            found.append([module(lib.tensor(x)).detach().numpy(), module.weight_v.numpy()])
        except RuntimeError:
            found.append("refused")
    if dropped:
        assert found == ["refused", "refused"]
    else:
        for theirs, ours in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_normalization_that_was_removed_loads_like_any_module() -> None:
    module = gw.nn.utils.remove_spectral_norm(gw.nn.utils.spectral_norm(gw.nn.Linear(3, 5)))
    assert not module._load_state_dict_pre_hooks
    module.load_state_dict(gw.nn.Linear(3, 5).state_dict())
