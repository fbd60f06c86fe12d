"""``torch._utils``: the functions that pickles name."""

from ._core.pickles.rebuilding import (  # noqa: F401
    _rebuild_from_type_v2,
    _rebuild_generator,
    _rebuild_meta_tensor_no_storage,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
)
