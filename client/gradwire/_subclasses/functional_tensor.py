"""``torch._subclasses.functional_tensor``: PyTorch's tensors without in-place operations. There are none here."""

from __future__ import annotations

from typing import Any

from .._core.surface import stand_ins

__all__: list[str] = []


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor itself."""
    return tensor


stand_ins.fill(__name__, ("FunctionalTensor", "FunctionalTensorMode"), "operations are recorded as they are")
