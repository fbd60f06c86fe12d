"""How calls of functions are recorded: PyTorch's Python functions fill in the arguments that a program leaves out.

``function_forms.json`` tells for each which ones come by position and which by name. It is what a trace of PyTorch's
function shows.
"""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from . import _names

FILE: Final = Path(__file__).with_name("function_forms.json")


@cache
def forms() -> dict[str, Any]:
    """By path without ``torch.``: the arguments that are recorded by position, and those by name; or the method that
    the function is recorded as."""
    read: dict[str, Any] = json.loads(FILE.read_text())
    return read


def form_of(function: Any) -> Any:
    """How calls of a function are recorded: as its file says; None where they are as they were written."""
    home = _names.home_of(function)
    return None if home is None else forms().get(".".join(part for part in home if part))


def as_recorded(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments as the node has them."""
    form = form_of(function)
    if function.__name__ == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
        return (args[0], *args[1]), kwargs  # operands in a list are passed on one by one
    if not isinstance(form, list):
        return args, kwargs
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    given, by_name = bound.arguments, form[1]
    by_position = list(given)[: len(form[0])]  # their names may differ
    made = {name: given[name] for name in by_name if name in given}
    spare = {name: value for name, value in kwargs.items() if name not in made and name not in by_position}
    return tuple(given[name] for name in by_position), made | spare
