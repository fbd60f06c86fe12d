"""Functions of ``torch`` that are written in Python leave calls with a proxy to it.

Functions of the op table ask for it (``TRACERS``) off their fast path. One that is written in Python would look into
the proxy, and be recorded as what it is made of. A wrapper around each would cost every call something, also in
programs that never trace, and would miss references that a program has already (``self.act = F.gelu``). So the
functions stay the objects they are, and have other code while there are proxies, which asks for one. Outside of traces
they are as they were, and warnings name the line of their caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any, Final

from gradwire_protocol.dtypes import DType

from .._core.context.size import Size, device
from .._core.dispatch.overrides import PUBLIC, TRACERS
from .._core.modules.parameter import Parameter
from .._core.tensor.tensor import Tensor
from ._names import NAMESPACES, members
from .proxy import AFTER_THE_LAST, BEFORE_THE_FIRST, Proxy

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
DEEPEST: Final = 8
"""How many containers a proxy is looked for in. A sequence may contain itself."""
PLAIN: Final = frozenset({Tensor, Parameter, Size, DType, device, bool, int, float, complex, str, type(None)})
"""Classes of arguments that have no proxy in them."""
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


def with_proxy(args: tuple[Any, ...], kwargs: dict[str, Any], depth: int = 0) -> Proxy | None:
    """The first proxy among arguments, also inside of tuples, lists, dicts and slices, up to :data:`DEEPEST`."""
    for value in args:
        if type(value) not in PLAIN and (found := _proxy_in(value, depth)) is not None:
            return found
    for value in kwargs.values():
        if type(value) not in PLAIN and (found := _proxy_in(value, depth)) is not None:
            return found
    return None


def _proxy_in(value: Any, depth: int) -> Proxy | None:
    if isinstance(value, Proxy):
        return value
    if depth == DEEPEST:
        return None
    if isinstance(value, (list, tuple)):
        return with_proxy(tuple(value), {}, depth + 1)
    if isinstance(value, dict):
        return with_proxy((), value, depth + 1)
    if isinstance(value, slice):
        return with_proxy((value.start, value.stop, value.step), {}, depth + 1)
    return None


def recorded(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call with a proxy is recorded as; NotImplemented for others."""
    proxy = with_proxy(args, kwargs)
    if proxy is None:
        return NotImplemented
    return type(proxy).__torch_function__(function, (type(proxy),), args, kwargs)


@cache
def _template(cells: int) -> CodeType:
    names = [f"cell_{i}" for i in range(cells)]
    scope: dict[str, Any] = {}
    source = ASKING.format(cells=", ".join(names), used=", ".join(names) or "pass", mark=MARK)
    exec(compile(source, __file__, "exec"), scope)  # noqa: S102  (the text above, and nothing else)
    made: CodeType = scope["with_cells"](*names).__code__
    return made


def _code(before: CodeType, ask: Callable[..., Any]) -> CodeType:
    """Code that calls ``ask``, and tells the place of the code before it."""
    made = _template(len(before.co_freevars))
    constants = tuple(ask if constant == MARK else constant for constant in made.co_consts)
    return made.replace(
        co_consts=constants, co_name=before.co_name, co_filename=before.co_filename,
        co_firstlineno=before.co_firstlineno,
    )  # fmt: skip


def leaving_to_proxies(function: FunctionType) -> CodeType:
    """Code for a function that leaves calls with a proxy to it."""
    plain = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    plain.__kwdefaults__ = function.__kwdefaults__
    plain.__qualname__, plain.__module__ = function.__qualname__, function.__module__
    plain.__annotations__ = function.__annotations__

    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for value in args:
            if type(value) not in PLAIN:
                break
        else:
            if not kwargs:
                return plain(*args)
        made = recorded(function, args, kwargs)
        return plain(*args, **kwargs) if made is NotImplemented else made

    if "__signature__" not in vars(function) and not hasattr(function, "__wrapped__"):
        function.__wrapped__ = plain  # type: ignore[attr-defined]  # its signature is shown
    return _code(function.__code__, ask)


def _written_in_python() -> Iterator[FunctionType]:
    generated = {id(function) for function in PUBLIC.values()}
    for namespace in NAMESPACES[:5]:
        for name, value in members(namespace):
            if (not name.startswith("_") or name == "_assert") and name not in KEPT and isinstance(value, FunctionType):
                if id(value) not in generated:
                    yield value
    for name, value in list(vars(Tensor).items()):
        if isinstance(value, FunctionType) and id(value) not in generated and name not in METHODS_KEPT:
            if not name.startswith("_") or name in ("__getitem__", "__setitem__"):
                yield value


@cache
def _codes() -> list[tuple[FunctionType, CodeType, CodeType]]:
    """Each function, its own code, and the code that it has while there are proxies."""
    functions = {id(found): found for found in _written_in_python()}.values()
    return [(function, function.__code__, leaving_to_proxies(function)) for function in functions]


def install() -> None:
    """Have all functions leave calls with a proxy to it."""
    TRACERS[:] = [recorded]
    for function, _, asking in _codes():
        function.__code__ = asking


def remove() -> None:
    """Give all functions their own code back."""
    TRACERS.clear()
    for function, own, _ in _codes():
        function.__code__ = own


BEFORE_THE_FIRST.append(install)
AFTER_THE_LAST.append(remove)

__all__ = ["install", "remove", "with_proxy"]
