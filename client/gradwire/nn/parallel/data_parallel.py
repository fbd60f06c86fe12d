"""``DataParallel``: of running a module on several devices from one program, what there is with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol.errors import Unsupported

from ..._core.context.argument_types import Device
from ..._core.context.pytree import tree_map
from ..._core.modules.module import Module
from ..._core.tensor.tensor import Tensor
from ...cuda import device_count


class DataParallel(Module):
    """Calls ``module``, on the server's first GPU where it has any. Names get ``module.`` before them.

    PyTorch splits each batch over all GPUs; here it is not split.

    Raises:
        Unsupported: where more than one device is named.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[int | str] | None = None, output_device: Device = None, dim: int = 0
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise Unsupported(f"DataParallel runs on one device, not on {list(device_ids)}: a batch is not split")
        self.dim: int = dim
        self.module: Module = module
        self.device_ids: list[int] = _chosen(device_ids)
        self.output_device: Device = self.device_ids[0] if self.device_ids and output_device is None else output_device
        if self.device_ids:
            module.to(f"cuda:{self.device_ids[0]}")

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives for its arguments, of which tensors are brought to its device."""
        if self.device_ids:
            place = f"cuda:{self.device_ids[0]}"
            inputs, kwargs = tree_map(lambda x: x.to(place) if isinstance(x, Tensor) else x, (inputs, kwargs))
        return self.module(*inputs, **kwargs)


def _chosen(device_ids: Sequence[Any] | None) -> list[int]:
    if not device_count():
        return []
    if not device_ids:
        return [0]
    first = device_ids[0]
    return [first if isinstance(first, int) else getattr(first, "index", None) or 0]


def data_parallel(
    module: Module, inputs: Any, device_ids: Sequence[int | str] | None = None, output_device: Device = None,
    dim: int = 0, module_kwargs: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """Call a module as :class:`DataParallel` does."""
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*arguments, **(module_kwargs or {}))


__all__ = ["DataParallel", "data_parallel"]
