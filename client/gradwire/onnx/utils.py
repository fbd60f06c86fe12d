"""``torch.onnx.utils``: PyTorch's exporter to ONNX, which gradwire lacks."""

from .._core.surface import stand_ins
from . import is_in_onnx_export, register_custom_op_symbolic, unregister_custom_op_symbolic

__all__ = ["is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic"]

stand_ins.fill(
    __name__,
    ("export", "export_to_pretty_string", "model_signature", "select_model_mode_for_export"),
    "models are not exported to ONNX",
)  # fmt: skip
