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
def forms() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By path without ``torch.``: the arguments that are recorded by position, and those by name."""
    read = json.loads(FILE.read_text())
    return {path: (tuple(by_position), tuple(by_name)) for path, (by_position, by_name) in read.items()}


def as_recorded(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A call's arguments as the node has them."""
    home = _names.home_of(function)
    form = None if home is None else forms().get(".".join(part for part in home if part))
    if form is None:
        return args, kwargs
    by_position, by_name = form
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    given = bound.arguments
    if any(name not in given for name in (*by_position, *by_name)):
        return args, kwargs
    spare = [name for name in bound.kwargs if name not in by_name and name not in by_position and name in kwargs]
    made = {name: given[name] for name in by_name}
    return tuple(given[name] for name in by_position), made | {name: kwargs[name] for name in spare}
