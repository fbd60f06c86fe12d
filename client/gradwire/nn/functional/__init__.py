"""``torch.nn.functional``: what modules compute, as functions.

Most of it is the op table's, offered as it is declared there. The modules of this package define the rest: functions
whose arguments in PyTorch are others than the op's, and functions made of several ops.
"""

from typing import TYPE_CHECKING, Any

from ...methods import name_after
from .. import grad as grad
from . import (
    attention,
    dropping,
    folding,
    generated,
    layers,
    losses,
    margins,
    normalizing,
    pooling,
    resampling,
    tables,
    unpooling,
)

globals().update(generated.functions())
# By hand goes before generated.
for _module in (
    attention, layers, losses, margins, pooling, dropping, folding, normalizing, resampling, tables, unpooling,
):  # fmt: skip
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
name_after(__name__, globals())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
