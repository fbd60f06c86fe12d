"""The same lines on the CPU and on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gradwire_torch import register

from ..op_db.trial import check_close

register()
DEVICE = "gradwire"
PLACES = ("cpu", DEVICE)


def moved(tensor: torch.Tensor, place: str) -> torch.Tensor:
    """A leaf of its own in that place, which requires grad where the given one does."""
    return tensor.detach().clone().to(place).requires_grad_(tensor.requires_grad)


def on_both(lines: Callable[..., Any], *tensors: torch.Tensor) -> list[Any]:
    """Run lines with the tensors in both places, and compare all that they return: tensors with dtype, shape, strides
    and values, anything else by equality. Returns what came of the device."""
    theirs, ours = (tree_leaves(lines(*[moved(t, place) for t in tensors])) for place in PLACES)
    assert len(theirs) == len(ours)
    for i, (wanted, found) in enumerate(zip(theirs, ours, strict=True)):
        if not isinstance(wanted, torch.Tensor):
            assert found == wanted, f"result {i}"
            continue
        assert found.device.type == DEVICE
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), f"result {i}"
        assert found.numel() == 0 or found.stride() == wanted.stride(), f"result {i}"
        assert found.requires_grad == wanted.requires_grad, f"result {i}"
        check_close(f"result {i}", found.detach().cpu(), wanted.detach(), 10.0)
    return ours


def both_refuse(lines: Callable[..., Any], *tensors: torch.Tensor) -> None:
    """Check that the device raises an exception of the class that the CPU raises."""
    raised: list[BaseException] = []
    for place in PLACES:
        try:
            for made in tree_leaves(lines(*[moved(t, place) for t in tensors])):
                if isinstance(made, torch.Tensor):
                    made.cpu()
        except Exception as error:
            raised.append(error)
        else:
            raise AssertionError(f"{place} accepts it; {raised}")
    theirs, ours = raised
    assert isinstance(ours, type(theirs)), f"{type(ours).__name__} instead of {type(theirs).__name__}: {ours}"
