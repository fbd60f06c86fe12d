# Derived by tools/stubs.py from the objects that are there at run time: run `make derive`.

from gradwire.nn.container import ModuleDict as ModuleDict, ModuleList as ModuleList, ParameterDict as ParameterDict, ParameterList as ParameterList, Sequential as Sequential
from gradwire.nn.modules.module import _addindent as _addindent

