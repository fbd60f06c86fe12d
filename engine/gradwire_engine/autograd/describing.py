"""What a rule sees of an op's arguments: metas of tensors, kinds of numbers, and attributes as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentTypeError
from gradwire_protocol.promotion import ScalarKind

from .registry import Row
from .tensor import Tensor
from .written_functions import written

Described = tuple[list[Any], tuple[Any, ...]]
"""What the rule is given, and the key under which its answer is kept: 1 and 1.0 are two attributes."""


def described(entry: Row, values: list[Any]) -> Described:
    """What the rule of an op is given for these arguments, in which tensors are engine tensors."""
    describe = entry.describe
    if describe is None:
        describe = entry.describe = _describing(entry)
    found: Described = describe(values)
    return found


def tensors_among(entry: Row, values: list[Any]) -> list[Tensor]:
    """The tensors among these arguments, in their order."""
    tensors: list[Tensor] = []
    for i in entry.tensor_at:
        value = values[i]
        if type(value) is Tensor:
            tensors.append(value)
        elif type(value) in (list, tuple):
            tensors.extend([v for v in value if v is not None])
    return tensors


def _describing(entry: Row) -> Callable[[list[Any]], Described]:
    """:func:`described` for one op, written out."""
    body = []
    words = []
    for i in range(len(entry.op.params)):
        words.append(f"v{i}")
        if i in entry.tensor_at:
            body.append(f"d{i} = v{i}.meta if type(v{i}) is Tensor else None if v{i} is None else other(v{i})")
            words[i] = f"d{i}"
        elif i in entry.scalar_at:
            body.append(f"d{i} = None if v{i} is None else kind(v{i})")
            words[i] = f"d{i}"
        elif i == entry.payload_at:
            words[i] = "None"
    names = ", ".join([f"v{i}" for i in range(len(words))])
    key = ", ".join(["row", *words, *[f"type({words[i]})" for i in entry.number_at]])
    body = [f"[{names}] = values", *body, f"return [{', '.join(words)}], ({key},)"]
    function: Callable[[list[Any]], Described] = written("values", body, {"row": entry, "kind": _kind, "other": _other})
    return function


def _other(value: Any) -> Any:
    if type(value) in (list, tuple):
        return tuple([None if v is None else v.meta for v in value])
    return _kind(value)


def _kind(value: Any) -> ScalarKind:
    kind = ScalarKind.of(value)
    if kind is None:
        raise ArgumentTypeError(f"expected a number or a tensor, got {type(value).__name__}")
    return kind
