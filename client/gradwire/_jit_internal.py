"""``torch._jit_internal``: what marks code for PyTorch's compiler of Python source, which gradwire lacks."""

from __future__ import annotations

import builtins
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from ._core.surface import stand_ins
from .futures import Future

Anything = TypeVar("Anything")

__all__ = ["BroadcastingListCls", "Final", "FunctionModifiers", "Future", "boolean_dispatch", "export", "ignore",
           "is_dict", "is_final", "is_list", "is_optional", "is_scripting", "is_tuple", "is_union",
           "unused"]  # fmt: skip


class FunctionModifiers:
    """How PyTorch's compiler treats a function."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from a exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def _marked(fn: Anything, modifier: str) -> Anything:
    try:
        fn._torchscript_modifier = modifier  # type: ignore[attr-defined]
    except AttributeError:
        pass  # a bound method, or a function of C
    return fn


def export(fn: Anything) -> Anything:
    """Marks what should be compiled too. Nothing is."""
    return _marked(fn, FunctionModifiers.EXPORT)


def unused(fn: Anything) -> Anything:
    """Marks what a compiled module does without. None is compiled. Also marks the getter of a property."""
    if isinstance(fn, property):
        _marked(fn.fget, FunctionModifiers.UNUSED)
        return fn
    return _marked(fn, FunctionModifiers.UNUSED)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks what should not be compiled, as ``@ignore`` and as ``@ignore(drop=True)``. Nothing is.

    Raises:
        RuntimeError: when ``drop`` is neither a function nor a bool.
    """
    if callable(drop):
        return _marked(drop, FunctionModifiers.IGNORE)
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop!r:.60}")
    if drop or kwargs.get("drop_on_export"):
        warnings.warn(
            "torch.jit.ignore(drop=True) is deprecated: torch.jit.unused says the same", FutureWarning, stacklevel=2
        )
    modifier = FunctionModifiers.UNUSED if drop or kwargs.get("drop_on_export") else FunctionModifiers.IGNORE
    return lambda fn: _marked(fn, modifier)


def _drop(fn: Anything) -> Anything:
    return _marked(fn, FunctionModifiers._DROP)


def _copy_to_script_wrapper(fn: Anything) -> Anything:
    return _marked(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def get_torchscript_modifier(fn: Any) -> str | None:
    """How a function is marked; ``None`` for what cannot be marked."""
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def copy_torchscript_modifier(orig: Any, new: Any) -> None:
    """Mark a function as another one is."""
    modifier = get_torchscript_modifier(orig)
    if modifier is not None:
        _marked(new, modifier)


def is_ignored_fn(fn: Any) -> bool:
    """Whether a function is marked as one that is not compiled."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE, FunctionModifiers._DROP)


def is_scripting() -> bool:
    """Whether the code runs compiled: never."""
    return False


def _overload(func: Anything) -> Anything:
    """Marks a declaration of a type that a function also takes. The function that follows replaces it."""
    return func


def _overload_method(func: Anything) -> Anything:
    """Marks a declaration of a type that a method also takes. The method that follows replaces it."""
    return func


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str | None,
    func_name: str | None,
) -> Callable[..., Any]:
    """A function that is one of two, by a flag among its arguments.

    Args:
        arg_name, arg_index: the flag's name and place.
        default: the flag where it is not given.
        if_true, if_false: the two functions.
        module_name, func_name: what the function is called.
    """

    def fn(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ if if_false.__doc__ is None else if_false.__doc__
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    return fn


class BroadcastingListCls:
    """``BroadcastingList2[int]``: a list of two ints, or one int that stands for both."""

    def __getitem__(self, types: Any) -> None:
        """The annotation. It says nothing to Python."""


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1


def is_final(ann: Any) -> bool:
    """Whether an annotation is ``Final``."""
    return ann is typing.Final or get_origin(ann) is typing.Final


def is_tuple(ann: Any) -> bool:
    """Whether an annotation is a tuple's."""
    return get_origin(ann) is tuple


def is_list(ann: Any) -> bool:
    """Whether an annotation is a list's."""
    return get_origin(ann) is list


def is_dict(ann: Any) -> bool:
    """Whether an annotation is a dictionary's."""
    return get_origin(ann) is dict


def is_union(ann: Any) -> bool:
    """Whether an annotation is a union."""
    return get_origin(ann) in (Union, types.UnionType)


def is_optional(ann: Any) -> bool:
    """Whether an annotation is a union of one type and ``None``."""
    return is_union(ann) and len(get_args(ann)) == 2 and type(None) in get_args(ann)


def is_future(ann: Any) -> bool:
    """Whether an annotation is a ``Future``'s."""
    if ann is Future:
        raise RuntimeError("Attempted to use Future without a contained type. Please add a contained type: Future[int]")
    return get_origin(ann) is Future


def _isinstance(obj: Any, target_type: Any) -> bool:
    """``isinstance`` that also knows ``List[int]``, ``Dict[str, Tensor]``, ``Tuple[...]``, ``Optional`` and unions.

    Raises:
        RuntimeError: for a container without the type of its items.
    """
    if builtins.isinstance(target_type, (tuple, list)):
        return any(_isinstance(obj, one) for one in target_type)
    if target_type in (list, dict, tuple, typing.List, typing.Dict, typing.Tuple, typing.Optional):  # noqa: UP006
        raise RuntimeError(f"{target_type} needs the type of its items: {target_type}[...]")
    origin, inner = get_origin(target_type), get_args(target_type)
    if origin is None:
        return (target_type is None and obj is None) or builtins.isinstance(obj, target_type)
    if is_union(target_type):
        return any(obj is None if one is type(None) else _isinstance(obj, one) for one in inner)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(_isinstance(item, inner[0]) for item in obj)
    if origin is dict:
        return all(_isinstance(key, inner[0]) and _isinstance(value, inner[1]) for key, value in obj.items())
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(_isinstance(item, inner[0]) for item in obj)
        return len(obj) == len(inner) and all(map(_isinstance, obj, inner))
    return True


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The name of a function or class with its module, as PyTorch's compiler writes it.

    Raises:
        RuntimeError: for what has no name of its own, such as a lambda.
    """
    if hasattr(obj, "_jit_override_qualname"):
        return str(obj._jit_override_qualname)
    name = str(obj.__name__)
    if name == "<lambda>":
        name = "_lambda"
    if obj.__module__ is None:
        raise RuntimeError(f"Could not get qualified name for class '{name}': __module__ can't be None.")
    if "." in name:
        raise RuntimeError(f"Could not get qualified name for class '{name}': '{name}' is not a valid identifier")
    module = obj.__module__
    module = "__torch__" if module == "__main__" else f"__torch__.{module}" if mangle_name else module
    return f"{module}.{name}"


stand_ins.fill(
    __name__,
    ("SourceLoader", "createResolutionCallbackForClassMethods", "createResolutionCallbackFromClosure",
     "createResolutionCallbackFromEnv", "createResolutionCallbackFromFrame", "get_type_hint_captures", "loader",
     "_get_fn_overloads", "_get_overloaded_methods", "_try_get_dispatched_fn"),
    "nothing is compiled from Python source",
)  # fmt: skip
