"""``torch.nn.parallel.replicate``: a module once for each of several devices, with gradients to the one module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.modules.module import Module
from .comm import _place

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Copies of a module whose parameters are those of the module, moved to the devices."""
    return [_copied(network, _place(where), detach, {}) for where in devices]


def _copied(module: Module, where: Any, detach: bool, made: dict[int, Module]) -> Module:
    if id(module) in made:
        return made[id(module)]
    copy: Any = module.__new__(type(module))
    made[id(module)] = copy
    vars(copy).update(vars(module))
    copy._parameters, copy._modules = {}, {}
    copy._buffers = {name: None if b is None else b.to(where) for name, b in module._buffers.items()}
    for name, child in module._modules.items():
        copy._modules[name] = None if child is None else _copied(child, where, detach, made)
    for name, parameter in module._parameters.items():
        if parameter is None:
            copy._parameters[name] = None
            continue
        moved = parameter.detach().to(where) if detach else parameter.to(where).view_as(parameter)
        vars(copy)[name] = moved  # no leaf, and so no parameter
    return copy
