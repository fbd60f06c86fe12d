"""Whole modules of every class cross between the libraries in files, and compute the same on the other side."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch

import gradwire

from .checks import cases
from .coverage import classes, is_there
from .crossing import Crossing, moved, plain, tensors_in

RANDOM = {"nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d"}
"""Classes that draw numbers in evaluation, too."""


class Crossed:
    """One module of each class in both libraries, with the same weights, and what to call it with."""

    def __init__(self) -> None:
        self.theirs: dict[str, Any] = {}
        self.ours: dict[str, Any] = {}
        self.calls: dict[str, tuple[Any, Any]] = {}
        for info in classes():
            if is_there(info) and not info.is_lazy:
                self._add(info)

    def _add(self, info: Any) -> None:
        case = next(case for case in cases(info, torch.float32) if not case.is_error)
        crossing = Crossing()
        args, kwargs = (
            crossing.pair(part) for part in (case.given.constructor_input.args, case.given.constructor_input.kwargs)
        )
        theirs = info.module_cls(*args[0], **kwargs[0]).eval()
        ours = getattr(gradwire.nn, info.name.removeprefix("nn."))(*args[1], **kwargs[1]).eval()
        ours.load_state_dict({name: moved(value) for name, value in theirs.state_dict().items()})
        given = case.given.forward_input
        args, kwargs = crossing.pair(given.args), crossing.pair(given.kwargs)
        if info.name in RANDOM:
            return
        label = f"{info.name} {case.label}"
        self.theirs[label], self.ours[label], self.calls[label] = theirs, ours, (args, kwargs)


def result(module: Any, args: Any, kwargs: Any) -> list[np.ndarray]:
    return [plain(tensor) for tensor in tensors_in(module(*args, **kwargs)) if tensor is not None]


@pytest.fixture(scope="module")
def crossed():
    torch.manual_seed(0)
    return Crossed()


def test_pytorch_loads_what_gradwire_saved(crossed):
    file = io.BytesIO()
    gradwire.save(crossed.ours, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert len(loaded) > 100
    compare(crossed, loaded, 0)


def test_gradwire_loads_what_pytorch_saved(crossed):
    file = io.BytesIO()
    torch.save(crossed.theirs, file)
    file.seek(0)
    compare(crossed, gradwire.load(file, weights_only=False), 1)


def compare(crossed: Crossed, loaded: dict[str, Any], side: int) -> None:
    failed = []
    for label, module in loaded.items():
        original = (crossed.theirs, crossed.ours)[side][label]
        args, kwargs = (part[side] for part in crossed.calls[label])
        try:
            assert type(module) is type(original) and repr(module) == repr(original)
            assert list(module.state_dict()) == list(original.state_dict())
            for expected, found in zip(result(original, args, kwargs), result(module, args, kwargs), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
            module.train()
            module.zero_grad()
        except Exception as error:
            failed.append(f"{label}: {type(error).__name__}: {str(error)[:200]}")
    assert not failed, "\n".join(failed)
