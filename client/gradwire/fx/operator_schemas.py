"""Arguments of calls by the signatures of what is called."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from gradwire_protocol.errors import ArgumentError

from . import _names


class ArgsKwargsPair(NamedTuple):
    """Arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Any, return_schemas: bool = False) -> Any:
    """The signatures of a function of ``torch``: one, since gradwire has no overloads; None for other functions."""
    if _names.home_of(op) is None:
        return (None, None) if return_schemas else None
    found = [inspect.signature(op)]
    return (found, [None]) if return_schemas else found


def check_for_mutable_operation(target: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Refuse calls that write into their arguments.

    Raises:
        RuntimeError: for functions of ``torch`` with ``out=``, or whose name ends with an underscore.
    """
    if _names.home_of(target) is None:
        return
    if target.__name__.endswith("_") or kwargs.get("out") is not None:
        raise ArgumentError(f"{target.__name__} writes into its arguments, and this tracer allows no such calls")


def normalize_function(
    target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, arg_types: Any = None,
    kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """Arguments with defaults filled in, by name where they are not given by position, or all by name.

    None where the function has no signature, or one with ``*args``.
    """
    if not callable(target):
        raise AssertionError(f"a function has a signature, not {type(target).__name__}")
    try:
        signature = inspect.signature(inspect.unwrap(target))
    except (TypeError, ValueError):
        return None
    return _normalized(_without_out(target, signature), args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any, target: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """The same for a module of ``torch.nn`` at a path; None for other modules."""
    from .. import nn

    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise ArgumentError(f"a node calls {target!r}, which the module has not") from error
    if getattr(nn, type(module).__name__, None) is not type(module):
        return None
    return _normalized(inspect.signature(module.forward), args, kwargs or {}, normalize_to_only_use_kwargs)


def _without_out(target: Any, signature: inspect.Signature) -> inspect.Signature:
    home = _names.home_of(target)
    if home is None or home[0] != "nn.functional" or "out" not in signature.parameters:
        return signature
    kept = [p for name, p in signature.parameters.items() if name != "out"]
    return inspect.Signature(kept, return_annotation=signature.return_annotation)


def _normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_name: bool
) -> ArgsKwargsPair | None:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    if any(p.kind in variadic for p in signature.parameters.values()):
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    positional = [] if by_name else list(signature.parameters)[: len(args)]
    named = {name: bound.arguments[name] for name in signature.parameters if name not in positional}
    return ArgsKwargsPair(tuple(bound.arguments[name] for name in positional), named)


__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "get_signature_for_torch_op", "normalize_function",
    "normalize_module",
]  # fmt: skip
