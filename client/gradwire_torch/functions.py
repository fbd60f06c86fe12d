"""gradwire's functions under the names that PyTorch's dispatcher gives them, with the arguments that it passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import gradwire as gw
from gradwire._core.surface.methods import FUNCTIONS

_HOMES: Final[dict[str, Any]] = {"linalg_": gw.linalg, "fft_": gw.fft, "special_": gw.special}
_SAME: Final = {"self": "input", "element": "elements", "test_element": "test_elements"}
"""Parameters of PyTorch's with another name here."""
_WITHOUT_EFFECT: Final = frozenset(
    ("generator", "layout", "device", "pin_memory", "sparse_grad", "implicit", "non_blocking")
)
REDUCTIONS: Final = ("none", "mean", "sum")


def named(name: str) -> Callable[..., Any] | None:
    """The function with the name of an operation of PyTorch's; None if there is none."""
    if name.startswith("_"):
        return None
    for prefix, home in _HOMES.items():
        if name.startswith(prefix):
            found = vars(home).get(name.removeprefix(prefix))
            return found if callable(found) else None
    for owner in (FUNCTIONS, vars(gw), vars(gw.nn.functional), vars(gw.Tensor)):
        found = owner.get(name)
        if callable(found) and not isinstance(found, type):
            return found
    return None


def adapted(function: Callable[..., Any], op: Any) -> Callable[..., Any] | None:
    """A function of gradwire's with the arguments of an operation. None if it lacks one that has to be given.

    Where the parameters have other places, they are passed by name; a reduction is a number in PyTorch's schemas.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return function
    arguments = op._schema.arguments
    wanted = [a.name for a in arguments]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        spread = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
        return None if spread == ["args"] else function
    names = [p.name for p in parameters]
    free = [None if n in wanted or n in _SAME.values() else n for n in names]
    places = {w: _place(w, i, names, free) for i, w in enumerate(wanted)}
    if any(p is None for w, p in places.items() if not _left_out(arguments[wanted.index(w)])):
        return None
    positional = [w for w, a in zip(wanted, arguments, strict=True) if not a.kwarg_only]
    straight = all(places[w] == names[i] for i, w in enumerate(positional))
    if straight and "reduction" not in wanted and all(places[w] == w for w in wanted[len(positional) :]):
        return function
    return _by_name(function, names[0], wanted, places)


def _place(name: str, at: int, names: list[str], free: list[str | None]) -> str | None:
    """The parameter for an argument: the first is always the first, others go by name, or else by place."""
    if at == 0:
        return names[0]
    found = next((n for n in (name, _SAME.get(name)) if n in names), None)
    by_place = free[at] if at < len(free) and name not in _WITHOUT_EFFECT else None
    return found or by_place


def _left_out(argument: Any) -> bool:
    return argument.name in _WITHOUT_EFFECT or argument.has_default_value()


def _by_name(
    function: Callable[..., Any], first: str, wanted: list[str], places: dict[str, str | None]
) -> Callable[..., Any]:
    """The function with arguments by name. One that it lacks has its default, or no effect.

    Raises:
        NotImplementedError: for an argument that the function lacks.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        passed = {}
        for name, value in (*zip(wanted, args, strict=False), *kwargs.items()):
            place = places[name]
            if name == "reduction" and isinstance(value, int):
                passed["reduction"] = REDUCTIONS[value]
            elif place is not None:
                passed[place] = value
            elif name not in _WITHOUT_EFFECT:
                raise NotImplementedError(f"{function.__name__} has no {name}")
        return function(passed.pop(first), **passed)

    return call
