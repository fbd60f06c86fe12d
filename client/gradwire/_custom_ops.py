"""``torch._custom_ops``: the older path to :mod:`torch.library`."""

from ._core.surface import stand_ins
from .library import get_ctx as get_ctx  # type: ignore[attr-defined]

__all__ = ["get_ctx"]

stand_ins.fill(
    __name__,
    ("custom_op", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"),
    "torch.library registers operations",
)
