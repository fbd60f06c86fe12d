"""``torch.nn.modules.container``: modules of modules."""

from ..container import ModuleDict, ModuleList, Sequential
from ..parameter_containers import ParameterDict, ParameterList
from .module import _addindent

__all__ = [
    "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential", "_addindent",
]  # fmt: skip
