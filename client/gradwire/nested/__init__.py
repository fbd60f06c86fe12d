"""``torch.nested``: its functions are refused at the call. There are no nested tensors."""

from .._core.surface.layout_names import refusing
from .._core.surface.unsupported import explaining as _explaining

as_nested_tensor, masked_select, narrow, nested_tensor, nested_tensor_from_jagged, to_padded_tensor = (
    refusing(f"torch.nested.{name}", "there are no nested tensors: pad, or use torch.nn.utils.rnn")
    for name in (
        "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
    )
)  # fmt: skip

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip
__getattr__ = _explaining(__name__)
