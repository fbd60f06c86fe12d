"""``torch.overrides``: ops that are left to classes and modes of the program's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Self

from ._core.context.modes import MODES
from ._core.dispatch.overrides import asked, handler_of, overriding, within, without_classes
from ._core.surface.methods import FUNCTIONS
from ._core.tensor.tensor import Tensor


class TorchFunctionMode:
    """Inside of a ``with`` of it, each op is left to ``__torch_function__(func, types, args, kwargs)`` of the mode.

    While that runs, ops are left to the mode around it.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no __torch_function__")

    def __enter__(self) -> Self:
        MODES.functions = (*MODES.functions, self)
        return self

    def __exit__(self, *error: object) -> None:
        MODES.functions = MODES.functions[:-1]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that runs each op as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """Inside of a ``with`` of it, ops are not left to classes, only to modes."""

    def __enter__(self) -> None:
        self._entered = without_classes()
        self._entered.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._entered.__exit__(*error)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside of a ``with`` of it, ops are left to neither classes nor modes."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes = within(())
        self._modes.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._modes.__exit__(*error)
        super().__exit__(*error)


def is_tensor_like(inp: object) -> bool:
    """Whether it is a tensor, or something that functions are left to."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def has_torch_function(relevant_args: Iterable[object]) -> bool:
    """Whether there is a value of a class that functions are left to."""
    return not MODES.without_classes and any(handler_of(type(value)) is not None for value in relevant_args)


def has_torch_function_unary(value: object) -> bool:
    """The same for one value."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """The same for values that are given one by one."""
    return has_torch_function(values)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[object], *args: Any, **kwargs: Any
) -> Any:
    """Leave a call of ``public_api`` to the classes of some of its arguments.

    Raises:
        TypeError: where each of them returns NotImplemented.
    """
    return asked(public_api, overriding(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be left to the classes of those arguments that ``dispatcher`` returns, called like it."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(called, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return called

    return decorate


def get_default_nowrap_functions() -> set[Any]:
    """What the default ``__torch_function__`` hands on as it is. None of it comes there: an attribute is no op."""
    return {vars(Tensor)[name].fget for name in ("grad", "_base", "grad_fn") if hasattr(vars(Tensor).get(name), "fget")}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """What is left to classes: functions, and methods of tensors."""
    import gradwire

    methods = [value for name, value in vars(Tensor).items() if callable(value) and not name.startswith("_")]
    return {gradwire: list(dict.fromkeys(FUNCTIONS.values())), Tensor: methods}


def is_tensor_method_or_property(func: object) -> bool:
    """Whether it is a method of Tensor, or what gets one of its properties."""
    return any(value is func or getattr(value, "fget", None) is func for value in vars(Tensor).values())


def resolve_name(f: object) -> str | None:
    """The name that a program knows a function by."""
    name = getattr(f, "__name__", None)
    if name is None:
        return None
    return f"torch.{name}" if FUNCTIONS.get(name) is f else f"torch.Tensor.{name}" if hasattr(Tensor, name) else name


__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
    "get_default_nowrap_functions", "get_overridable_functions", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
    "resolve_name", "wrap_torch_function",
]  # fmt: skip
