"""``torch.nn.functional``: the computations of modules, as functions.

Most are ops of the table. The modules of this package define the others: functions whose arguments in PyTorch differ
from the op's, and functions made of several ops.
"""

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

__getattr__ = _explaining(__name__)

_in_main_namespace.FUNCTIONAL.update(globals())
