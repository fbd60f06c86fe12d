"""``torch.onnx.symbolic_helper``: decorators of functions that describe operations to an export, which never runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .._core.surface import stand_ins
from . import TensorProtoDataType

Anything = TypeVar("Anything")

cast_pytorch_to_onnx = {
    "Byte": TensorProtoDataType.UINT8, "Char": TensorProtoDataType.INT8, "Double": TensorProtoDataType.DOUBLE,
    "Float": TensorProtoDataType.FLOAT, "Half": TensorProtoDataType.FLOAT16, "Int": TensorProtoDataType.INT32,
    "Long": TensorProtoDataType.INT64, "Short": TensorProtoDataType.INT16, "Bool": TensorProtoDataType.BOOL,
    "ComplexFloat": TensorProtoDataType.COMPLEX64, "ComplexDouble": TensorProtoDataType.COMPLEX128,
    "BFloat16": TensorProtoDataType.BFLOAT16, "Undefined": TensorProtoDataType.UNDEFINED,
}  # fmt: skip
"""The dtypes of ONNX by PyTorch's names."""


def parse_args(*arg_descriptors: str) -> Callable[[Anything], Anything]:
    """A decorator that changes nothing."""
    return lambda fn: fn


def quantized_args(
    *arg_q_descriptors: bool, scale: float | None = None, zero_point: int | None = None, quantize_output: bool = True
) -> Callable[[Anything], Anything]:
    """A decorator that changes nothing."""
    return lambda fn: fn


stand_ins.fill(
    __name__,
    ("_get_const", "_get_tensor_sizes", "_is_none", "_maybe_get_const", "_unimplemented", "is_caffe2_aten_fallback"),
    "models are not exported to ONNX",
)
