"""``torch.onnx.operators``: functions of shapes that an export keeps in its graph."""

from __future__ import annotations

from .. import tensor
from .._core.tensor.tensor import Tensor


def shape_as_tensor(x: Tensor) -> Tensor:
    """The shape of a tensor, as a tensor."""
    return tensor(list(x.shape))


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """A tensor in a shape that is a tensor. Waits for it."""
    return x.reshape(shape.tolist())
