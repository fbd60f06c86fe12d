"""Signatures that ``inspect`` and ``help`` show of functions that take their arguments as they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from typing import Any, Final, TypeVar

Form = TypeVar("Form", bound=Callable[..., Any])


class Annotation(str):
    """A type as text that shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class LateSignature(Signature):
    """A signature that is made when somebody looks at it, since most programs look at none."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Signature]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        # The slots of the class above are empty until now.
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(name)
        made = self.settled()
        super().__init__(list(made.parameters.values()), return_annotation=made.return_annotation)
        return getattr(self, name)

    def settled(self) -> Signature:
        """The same as a plain signature."""
        return self._make()

    def replace(self, **changes: Any) -> Signature:  # type: ignore[override]
        return self.settled().replace(**changes)

    __replace__ = replace  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return self.settled().__reduce__()


def show_as(function: Any, make: Callable[[], Signature]) -> None:
    """Have a function show a signature, made at first use."""
    function.__signature__ = LateSignature(make)


def called_as(form: Form) -> Callable[[Callable[..., Any]], Form]:
    """Let a function that takes its arguments as they come show the signature of ``form``, which is never called."""

    def show(function: Any) -> Form:
        show_as(function, lambda: signature(form))
        found: Form = function
        return found

    return show


OPTIONS: Final = {
    "dtype": ("dtype | None", None), "layout": ("layout | None", None), "device": ("device | str | int | None", None),
    "requires_grad": ("bool", False), "pin_memory": ("bool", False),
}  # fmt: skip
"""The keyword arguments of functions that make tensors, with types and defaults."""


def takes_options(function: Form) -> Form:
    """Have a function that makes tensors show what its ``**options`` may be."""
    shown = signature(function)
    fixed = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    named = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotation(kind))
        for name, (kind, default) in OPTIONS.items()
    ]
    function.__signature__ = shown.replace(parameters=fixed + named)  # type: ignore[attr-defined]
    return function


def with_out(found: Signature) -> Signature:
    """A signature with ``out=``: a tensor where one is returned, as many as there are results otherwise."""
    return with_keywords(found, {"out": out_of(str(found.return_annotation))})


def out_of(returned: str) -> str:
    """The type of ``out=`` of a function that returns this type."""
    return "Tensor | None" if returned == "Tensor" else "Sequence[Tensor] | None"


def with_keywords(found: Signature, added: Mapping[str, str]) -> Signature:
    """A signature with more keyword arguments, None by default, before ``**options``; those it has stay."""
    known = list(found.parameters.values())
    rest = [p for p in known if p.kind is Parameter.VAR_KEYWORD]
    more = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotation(kind))
        for name, kind in added.items()
        if name not in found.parameters
    ]
    return found.replace(parameters=[p for p in known if p not in rest] + more + rest)
