"""``torch.onnx``: PyTorch's exporter to ONNX, which gradwire lacks. What only registers is accepted."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from .._core.surface import stand_ins
from . import errors as errors
from . import operators as operators
from .errors import OnnxExporterError

__all__ = [
    "ExportableModule",
    "InputObserver",
    "ONNXProgram",
    "OnnxExporterError",
    "export",
    "errors",
    "is_in_onnx_export",
]

producer_name = "gradwire"


class TrainingMode(IntEnum):
    """The mode of a model that is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """How operations are exported."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(IntEnum):
    """The dtypes of ONNX."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


def is_in_onnx_export() -> bool:
    """Never."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Without effect: nothing is exported.

    Raises:
        OnnxExporterError: for a name that is not ``namespace::name``.
    """
    if not all(symbolic_name.partition("::")):
        raise OnnxExporterError(f"Failed to register operator {symbolic_name}. The symbolic name must match ns::name")


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Without effect: nothing is exported."""


stand_ins.fill(
    __name__,
    ("ExportOptions", "ExportableModule", "InputObserver", "JitScalarType", "ONNXProgram", "dynamo_export", "export",
     "export_to_pretty_string", "select_model_mode_for_export", "verification"),
    "models are not exported to ONNX; torch.save writes weights, which PyTorch loads",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("symbolic_helper", "symbolic_opset9", "symbolic_opset11", "utils"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
