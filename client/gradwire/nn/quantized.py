"""``torch.nn.quantized``: operations as modules, in floating point. Quantized modules are refused at the call."""

from __future__ import annotations

from collections.abc import Sequence

from .. import add, cat, matmul, mul, relu
from .._core.modules.module import Module as _Module
from .._core.surface import stand_ins
from .._core.tensor.tensor import Tensor
from .linear import Identity as _Identity

__all__ = ["FloatFunctional"]


class FloatFunctional(_Module):
    """Operations whose results a quantized model would observe: ``skip_add.add(x, y)`` instead of ``x + y``."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = _Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Refused: its methods are called.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``torch.add(x, y)``."""
        return self.activation_post_process(add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """``torch.add(x, y)`` for a number."""
        return add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """``torch.mul(x, y)``."""
        return self.activation_post_process(mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """``torch.mul(x, y)`` for a number."""
        return mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """``torch.cat(x, dim)``."""
        return self.activation_post_process(cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """``torch.relu(torch.add(x, y))``."""
        return self.activation_post_process(relu(add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """``torch.matmul(x, y)``."""
        return self.activation_post_process(matmul(x, y))


stand_ins.fill(
    __name__,
    ("Conv1d", "Conv2d", "Conv3d", "DeQuantize", "Embedding", "EmbeddingBag", "FXFloatFunctional", "Linear",
     "QFunctional", "Quantize"),
    "there are no quantized tensors",
)  # fmt: skip
