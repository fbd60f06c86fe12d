"""Functions that a program wants recorded as calls, whatever they do."""

from __future__ import annotations

import inspect
from typing import Any

from gradwire_protocol.errors import ArgumentError

_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
"""The globals of the module that has one, by their id and the function's name."""


def wrap(fn_or_name: Any) -> Any:
    """Have traces record the calls of a function of the module that calls this, instead of tracing through it.

    Args:
        fn_or_name: the function (so that it can be a decorator) or its name; builtins, too.

    Raises:
        NotImplementedError: inside of a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise ArgumentError(f"wrap takes a function or its name, not {type(fn_or_name).__name__}")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError(f"wrap({name!r}) must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


__all__ = ["wrap"]
