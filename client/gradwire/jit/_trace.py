"""``torch.jit._trace``: the path that libraries import traces from."""

from . import ONNXTracedModule as ONNXTracedModule
from . import TopLevelTracedModule, TracedModule, TracerWarning, is_tracing, trace, trace_module
from . import _script_if_tracing as _script_if_tracing

__all__ = ["TopLevelTracedModule", "TracedModule", "TracerWarning", "is_tracing", "trace", "trace_module"]

_trace_module_map = None
"""The names of the modules inside of a trace that is being taken: there is none."""
