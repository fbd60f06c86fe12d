"""A compiled module: a module around another one, as ``torch.compile(module)`` gives it."""

from __future__ import annotations

from typing import Any

from ..modules.module import Module
from .function import CompiledFunction


class CompiledModule(Module):
    """Calls of a module, replayed. Its parameters, state and attributes are those of the module inside."""

    _orig_mod: Module

    def __init__(self, module: Module, call: CompiledFunction[..., Any]) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_compiled", call)
        object.__setattr__(self, "training", module.training)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["_compiled"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The same as a call."""
        return self(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)

    def stats(self) -> dict[str, Any]:
        """See :meth:`gradwire._core.compiling.CompiledFunction.stats`."""
        found: dict[str, Any] = self.__dict__["_compiled"].stats()
        return found

    def explain(self) -> str:
        """See :meth:`gradwire._core.compiling.CompiledFunction.explain`."""
        found: str = self.__dict__["_compiled"].explain()
        return found
