"""Runs a graph and notes shapes and dtypes."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError

from ..._core.context.layouts import channels_last, channels_last_3d, contiguous_format
from ..._core.tensor.tensor import Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What is known of a tensor."""
    found = None
    if include_contiguity:
        forms = (contiguous_format, *{4: [channels_last], 5: [channels_last_3d]}.get(result.ndim, []))
        found = next((form for form in forms if result.is_contiguous(memory_format=form)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {})


class ShapeProp(Interpreter):
    """Runs a module's graph and notes for each node ``meta["tensor_meta"]`` and ``meta["type"]``.

    Args:
        gm: the module.
        fake_mode: not taken: tensors on ``torch.device("meta")`` compute no values.
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise ArgumentError('ShapeProp takes no fake_mode: propagate tensors on torch.device("meta") instead')

    def run_node(self, n: Node) -> Any:
        """The value of a node, of which the form is noted."""
        result = super().run_node(n)
        found = False

        def form(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, form)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with example arguments. Returns its output."""
        return super().run(*args)


__all__ = ["ShapeProp", "TensorMetadata"]
