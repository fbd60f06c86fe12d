"""``torch.jit._script``: the path that libraries import scripts from."""

from . import Attribute, RecursiveScriptModule, ScriptModule, interface, script, script_method
from . import CompilationUnit as CompilationUnit
from . import ScriptFunction as ScriptFunction

__all__ = ["Attribute", "RecursiveScriptModule", "ScriptModule", "ScriptWarning", "interface", "script",
           "script_method"]  # fmt: skip


class ScriptWarning(Warning):
    """Warns of a class that cannot be a script: never given, since none is compiled."""
