"""Every op of the table as a function of engine tensors: ``F.where(mask, a, b)``. Derivatives are written in these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .engine_context import EngineContext
from .tensor import Tensor


class _Functional:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            first = args[0] if args else None
            engine = first.engine if type(first) is Tensor else _engine_of(args)
            return engine.call(name, *args, **kwargs)

        run.__name__ = name
        setattr(self, name, run)
        return run


def _engine_of(args: tuple[Any, ...]) -> EngineContext:
    for arg in args:
        if isinstance(arg, Tensor):
            return arg.engine
        if isinstance(arg, (list, tuple)):
            for item in arg:
                if isinstance(item, Tensor):
                    return item.engine
    raise TypeError("a function of tensors needs a tensor argument")


F = _Functional()


def conj(x: Any) -> Any:
    """The complex conjugate; what is real (a tensor or a number) as it is."""
    if isinstance(x, Tensor):
        return F.conj(x) if x.dtype.is_complex else x
    return x.conjugate() if isinstance(x, complex) else x
