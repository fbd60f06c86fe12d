"""``torch.nn.functional``: the computations of modules, as functions.

Most are ops of the table. The modules of this package define the others: functions whose arguments in PyTorch differ
from the op's, and functions made of several ops.
"""

from importlib import import_module as _import_module
from typing import Any

from ..._core.composed import layers as _in_main_namespace
from ..._core.surface.methods import name_after
from ..._core.surface.unsupported import explaining as _explaining
from .. import grad as grad
from . import attention, generated, layers, losses, pooling, resampling, tables

globals().update(generated.functions())
# By hand goes before generated.
for _module in (attention, layers, losses, pooling, resampling, tables):
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
name_after(__name__, globals())

_internals = {
    "GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES", "_Reduction", "_canonical_mask",
    "_get_softmax_dim", "_in_projection", "_in_projection_packed", "_list_with_default", "_none_or_dtype", "_pair",
    "_single", "_triple", "_verify_batch_size", "_verify_spatial_size", "assert_int_or_pair", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
}  # fmt: skip


_explain = _explaining(__name__)


def __getattr__(name: str) -> Any:
    if name in _internals:  # libraries import them
        return getattr(_import_module(f"{__name__}.internals"), name)
    return _explain(name)


_in_main_namespace.FUNCTIONAL.update({_name: _value for _name, _value in globals().items() if _name != "__getattr__"})
