"""``torch.utils._contextlib``: context managers that are decorators, too."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Generator
from typing import Any


def _wrap_generator(ctx_factory: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function whose steps each run inside of a context of their own."""

    @functools.wraps(func)
    def stepped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = func(*args, **kwargs)
        step, given = inner.send, None
        while True:
            try:
                with ctx_factory():
                    value = step(given)
            except StopIteration as end:
                return end.value
            try:
                given, step = (yield value), inner.send
            except GeneratorExit:
                with ctx_factory():
                    inner.close()
                raise
            except BaseException as error:  # goes to where the inner generator waits
                given, step = error, inner.throw

    return stepped


def context_decorator(ctx: Any, func: Any) -> Any:
    """A function that runs inside of a context: ``ctx`` is one, or gives one for each call."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise TypeError(f"{ctx!r} can be called and entered: which of them is meant is not clear")
    factory = (lambda: ctx) if not callable(ctx) else ctx
    if inspect.isclass(func):
        raise RuntimeError(f"a class, {func!r}, cannot be decorated with a context: decorate its methods")
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(factory, func)

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with factory():
            return func(*args, **kwargs)

    return inside


class _DecoratorContextManager:
    """A context manager that decorates functions, each call of which enters a clone of it."""

    def __call__(self, orig_func: Any) -> Any:
        if inspect.isclass(orig_func):
            warnings.warn(
                f"decorating classes is deprecated: {orig_func!r} has its constructor decorated", FutureWarning,
                stacklevel=2,
            )  # fmt: skip
            orig_func.__init__ = self(orig_func.__init__)  # type: ignore[method-assign]
            return orig_func
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another one, made without arguments. Classes whose constructor takes some define it anew."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Such a one that decorates without parentheses, too."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
