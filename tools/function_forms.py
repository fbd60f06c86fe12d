"""How PyTorch's traces record the calls of its Python functions, by what they show.

``python -m tools.function_forms`` writes ``client/gradwire/fx/function_forms.json``; with ``--check`` it exits 1 if the
file says something else. It needs PyTorch, and a process of its own: it calls functions with proxies, and some of them
change settings.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from pathlib import Path
from types import FunctionType
from typing import Any, Final

FILE: Final = Path(__file__).parents[1] / "client" / "gradwire" / "fx" / "function_forms.json"
VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def derived() -> dict[str, Any]:
    """By the path of a function: its arguments by position and by name, or the method that it is recorded as."""
    from gradwire.fx import _names

    _names.home_of(len)
    paths = sorted({".".join(part for part in home if part) for home in _names._homes.values()})
    asked = [p for p in paths if p.partition(".")[0] not in ("fx", "utils") and not p.startswith(("set_", "use_"))]
    found = {path: _form(path) for path in asked}
    return {path: form for path, form in found.items() if form is not None}


def _form(path: str) -> Any:
    import torch
    from torch import fx
    from torch._jit_internal import boolean_dispatched

    function: Any = torch
    for part in path.split("."):
        function = getattr(function, part, None)
    if not isinstance(function, FunctionType):
        return None
    dispatched = boolean_dispatched.get(function)
    signature = inspect.signature(function if dispatched is None else dispatched["if_false"])
    parameters = signature.parameters.values()
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return None
    names = [p.name for p in parameters if p.kind not in VARIADIC]
    needed = [p.name for p in parameters if p.kind not in VARIADIC and p.default is p.empty]
    tracer = fx.proxy.GraphAppendingTracer(fx.Graph())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = function(*[fx.Proxy(tracer.graph.placeholder(f"given_{name}"), tracer) for name in needed])
    except Exception:  # it looks at its arguments, and so is traced through
        return None
    if not isinstance(made, fx.Proxy):
        return None
    node = made.node
    if node.op == "call_method" and len(names) == len(node.args) == 1 and len(tracer.graph.nodes) == 2:
        return node.target
    if node.op != "call_function" or node.target is not function:
        return None
    by_position = names[: len(node.args)]
    shown = [getattr(arg, "name", "") for arg in node.args]
    if any(text and text != f"given_{name}" for name, text in zip(by_position, shown, strict=True)):
        return None
    return [by_position, list(node.kwargs)]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(json.loads(FILE.read_text()) != derived())
    FILE.write_text(json.dumps(derived(), indent=1).replace("\n   ", "").replace("\n  ]", "]") + "\n")
