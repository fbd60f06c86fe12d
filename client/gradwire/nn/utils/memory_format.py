"""``torch.nn.utils.memory_format``: the weights of convolutions in another memory order, and nothing else."""

from __future__ import annotations

from typing import TypeVar

from ..._core.context.layouts import memory_format
from ..._core.modules.module import Module
from ..conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

Changed = TypeVar("Changed", bound=Module)


def _changed(module: Changed, kinds: tuple[type[Module], ...], order: memory_format) -> Changed:
    for member in module.modules():
        if isinstance(member, kinds):
            weight = member.weight
            weight.data = weight.detach().clone(memory_format=order)
    return module


def convert_conv2d_weight_memory_format(module: Changed, memory_format: memory_format) -> Changed:
    """Lay out the weights of all two-dimensional convolutions of a module in a memory order, and return the module.

    Raises:
        ArgumentError: for an order that is for another number of dimensions.
    """
    return _changed(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Changed, memory_format: memory_format) -> Changed:
    """:func:`convert_conv2d_weight_memory_format` for three-dimensional convolutions."""
    return _changed(module, (Conv3d, ConvTranspose3d), memory_format)
