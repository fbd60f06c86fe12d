"""``torch._dynamo._trace_wrapped_higher_order_op``: a mode that libraries enter around functions under ``vmap``."""

from ..overrides import BaseTorchFunctionMode as _Mode


class TransformGetItemToIndex(_Mode):
    """``x[i]`` with a mapped ``i`` of no dimensions indexes without reading ``i``: gradwire always does so."""
