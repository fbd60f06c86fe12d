"""``torch.ao.nn.quantized.modules.functional_modules``: operations as a module, in floating point."""

from __future__ import annotations

from collections.abc import Sequence

from ....._core.dispatch.dispatch import call
from ....._core.tensor.tensor import Tensor
from .....nn import Identity, Module


class FloatFunctional(Module):
    """Operations that a quantized model would observe, and that compute as the functions of their names do."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError("FloatFunctional is not called: call add, mul, cat, ... of it")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``x + y``."""
        return self._observed(call("add", x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x + y``, which is not observed."""
        return call("add", x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x * y``."""
        return self._observed(call("mul", x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x * y``, which is not observed."""
        return call("mul", x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """The tensors one after the other."""
        return self._observed(call("cat", list(x), dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """``relu(x + y)``."""
        return self._observed(call("relu", call("add", x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x @ y``."""
        return self._observed(call("matmul", x, y))

    def _observed(self, value: Tensor) -> Tensor:
        observed: Tensor = self.activation_post_process(value)
        return observed
