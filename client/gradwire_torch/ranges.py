"""Tensors of numbers that follow a rule, written to ``out``, as PyTorch makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

import gradwire as gw

from .devices import place
from .dispatch import kernel, write
from .dtypes import OURS
from .memory import theirs


def _filling(name: str, function: Callable[..., Any]) -> None:
    """Register a function that makes a tensor of a dtype, for the form that writes to one."""

    @kernel(name)
    def fill(*args: Any, out: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        made = function(*args, dtype=OURS[out.dtype], device=place(out.device), **kwargs)
        write(out, theirs(made))
        return out


@kernel("arange")
def arange(*bounds: Any, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    """Numbers in equal steps, without their end."""
    return theirs(gw.arange(*bounds, dtype=None if dtype is None else OURS[dtype], device=place(device)))


def _numbers(start: Any, end: Any, step: Any = 1, *, dtype: Any, device: str) -> gw.Tensor:
    """Including the end."""
    count = int((end - start) / step) + 1
    return gw.arange(count, dtype=dtype, device=device) * step + start


_FILLING: Final[dict[str, Callable[..., Any]]] = {
    "arange.start_out": gw.arange,
    "range.out": _numbers,
    "linspace.out": gw.linspace,
    "logspace.out": gw.logspace,
    "eye.out": gw.eye,
    "eye.m_out": gw.eye,
    "randperm.generator_out": gw.randperm,
}
for _name, _function in _FILLING.items():
    _filling(_name, _function)


@kernel("_efficientzerotensor")
def zero_tensor(size: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> torch.Tensor:
    """Zeros."""
    return theirs(gw.zeros(tuple(size), dtype=OURS[dtype or torch.get_default_dtype()], device=place(device)))
