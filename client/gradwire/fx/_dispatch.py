"""Functions of ``torch`` that are written in Python leave calls with a proxy to it.

Functions of the op table ask for it (``TRACERS``) off their fast path. One that is written in Python would look into
the proxy, and be recorded as what it is made of. A wrapper around each would cost every call something, also in
programs that never trace, and would miss references that a program has already (``self.act = F.gelu``). So the
functions stay the objects they are, and get other code when this module is loaded, which asks for a proxy first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, Final

from .._core.context.late_signatures import show_as
from .._core.dispatch.overrides import PUBLIC, TRACERS
from .._core.tensor.tensor import Tensor
from ._names import NAMESPACES
from .proxy import Proxy

MARK: Final = "what is called instead"
ASKING: Final = """
def with_cells({cells}):
    def asking(*args, **kwargs):
        {used}
        ask = {mark!r}
        return ask(args, kwargs)
    return asking
"""
"""Code that calls the constant in it, and closes over as many variables as the function that gets it."""
KEPT: Final = frozenset({
    "is_tensor", "typename", "save", "load", "fetch", "connect", "open_session", "current_session", "compile",
    "is_storage", "set_default_dtype", "set_default_device", "set_printoptions",
})  # fmt: skip
"""Functions that take a proxy for what it is, or never get one."""
METHODS_KEPT: Final = frozenset({
    "as_subclass", "register_hook", "backward", "requires_grad_", "retain_grad", "item", "tolist", "numpy", "data_ptr",
    "size", "dim", "numel", "stride", "is_contiguous",
})  # fmt: skip
"""Methods of tensors that take no tensor or size."""


def with_proxy(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy | None:
    """The first proxy among arguments, also inside of tuples, lists, dicts and slices."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, Proxy):
            return value
        inner: tuple[Any, ...] | list[Any]
        if isinstance(value, (list, tuple)):
            inner = value
        elif isinstance(value, slice):
            inner = (value.start, value.stop, value.step)
        elif isinstance(value, dict):
            inner = list(value.values())
        else:
            continue
        if inner and (found := with_proxy(tuple(inner), {})) is not None:
            return found
    return None


def recorded(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call with a proxy is recorded as; NotImplemented for others."""
    proxy = with_proxy(args, kwargs)
    if proxy is None:
        return NotImplemented
    return type(proxy).__torch_function__(function, (type(proxy),), args, kwargs)


def _code(cells: tuple[str, ...], ask: Callable[..., Any], name: str) -> CodeType:
    names = ", ".join(cells)
    scope: dict[str, Any] = {}
    exec(compile(ASKING.format(cells=names, used=names or "pass", mark=MARK), __file__, "exec"), scope)  # noqa: S102
    made: CodeType = scope["with_cells"](*cells).__code__
    constants = tuple(ask if constant == MARK else constant for constant in made.co_consts)
    return made.replace(co_consts=constants, co_name=name)


def leave_to_proxies(function: FunctionType) -> None:
    """Have a function leave calls with a proxy to it."""
    plain = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    plain.__kwdefaults__ = function.__kwdefaults__
    plain.__qualname__, plain.__module__ = function.__qualname__, function.__module__
    plain.__annotations__ = function.__annotations__

    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = recorded(function, args, kwargs)
        return plain(*args, **kwargs) if made is NotImplemented else made

    if "__signature__" not in vars(function) and not hasattr(function, "__wrapped__"):
        import inspect

        show_as(function, lambda: inspect.signature(plain))  # type: ignore[arg-type, return-value]
    function.__code__ = _code(function.__code__.co_freevars, ask, function.__name__)


def _written_in_python() -> Iterator[FunctionType]:
    generated = {id(function) for function in PUBLIC.values()}
    for namespace in NAMESPACES[:5]:
        module = import_module(f"gradwire.{namespace}" if namespace else "gradwire")
        for name, value in list(vars(module).items()):
            if (not name.startswith("_") or name == "_assert") and name not in KEPT and isinstance(value, FunctionType):
                if id(value) not in generated:
                    yield value
    for name, value in list(vars(Tensor).items()):
        if isinstance(value, FunctionType) and id(value) not in generated and name not in METHODS_KEPT:
            if not name.startswith("_") or name in ("__getitem__", "__setitem__"):
                yield value


def install() -> None:
    """Have all of them do so."""
    TRACERS[:] = [recorded]
    for function in {id(found): found for found in _written_in_python()}.values():
        leave_to_proxies(function)


__all__ = ["install", "leave_to_proxies", "with_proxy"]
