"""``torch.ao.nn.intrinsic.modules.fused``: layers that a quantized model would fuse; in floating point, one after the
other."""

from __future__ import annotations

from typing import Final

from ....._core.modules.module import Module
from .....nn import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    LeakyReLU,
    Linear,
    ReLU,
    Sequential,
    Tanh,
)

_CONVOLUTIONS: Final = (Conv1d, Conv2d, Conv3d)
_NORMS: Final = (BatchNorm1d, BatchNorm2d, BatchNorm3d)


class _FusedModule(Sequential):
    """Layers of given kinds in a row."""

    kinds: tuple[type[Module], ...] = ()

    def __init__(self, *layers: Module) -> None:
        if tuple(map(type, layers)) != self.kinds:
            wanted = ", ".join(kind.__name__ for kind in self.kinds)
            given = ", ".join(type(layer).__name__ for layer in layers)
            raise AssertionError(f"{type(self).__name__} takes {wanted}, not {given}")
        super().__init__(*layers)


def _row(name: str, *kinds: type[Module]) -> type[_FusedModule]:
    about = {"kinds": kinds, "__module__": __name__, "__doc__": " and ".join(kind.__name__ for kind in kinds) + "."}
    return type(name, (_FusedModule,), about)


ConvReLU1d, ConvReLU2d, ConvReLU3d = (_row(f"ConvReLU{i}d", c, ReLU) for i, c in enumerate(_CONVOLUTIONS, 1))
ConvBn1d, ConvBn2d, ConvBn3d = (
    _row(f"ConvBn{i}d", c, n) for i, (c, n) in enumerate(zip(_CONVOLUTIONS, _NORMS, strict=True), 1)
)
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (
    _row(f"ConvBnReLU{i}d", c, n, ReLU) for i, (c, n) in enumerate(zip(_CONVOLUTIONS, _NORMS, strict=True), 1)
)
BNReLU2d, BNReLU3d = _row("BNReLU2d", BatchNorm2d, ReLU), _row("BNReLU3d", BatchNorm3d, ReLU)
LinearReLU, LinearLeakyReLU = _row("LinearReLU", Linear, ReLU), _row("LinearLeakyReLU", Linear, LeakyReLU)
LinearBn1d, LinearTanh = _row("LinearBn1d", Linear, BatchNorm1d), _row("LinearTanh", Linear, Tanh)

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d",
    "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearLeakyReLU", "LinearReLU", "LinearTanh",
]  # fmt: skip
