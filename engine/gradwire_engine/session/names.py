"""The names of a session's tensors, as frames use them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from gradwire_protocol.errors import ArgumentError, LimitExceeded, UnknownTensor
from gradwire_protocol.frames import MAX_NAME_CHARS, Frame, Structure
from gradwire_protocol.suggestions import did_you_mean
from gradwire_protocol.table import TABLE, Kind

from ..autograd.failures import Poisoned
from ..autograd.tensor import Tensor

MOST_COMPARED: Final = 10_000
"""With more names, an error makes no suggestion."""


def find(held: dict[str, Tensor], name: str) -> Tensor:
    """The tensor of this name.

    Raises:
        UnknownTensor: when there is none.
        Poisoned: when an op failed to change its memory.
    """
    found = held.get(name)
    if found is None:
        raise _unknown(held, name, ())
    if found.storage.poison is not None:
        raise Poisoned(found.storage.poison)
    return found


def check(held: dict[str, Tensor], frame: Frame, structure: Structure, most: int) -> None:
    """Check the names that a frame uses and gives, before it changes anything.

    Raises:
        UnknownTensor: for a name that no tensor has; it tells the record that mentions it first.
        ArgumentError: for a name of an impossible length.
        LimitExceeded: when the session would have more than ``most`` names.
    """
    given = structure.keeps
    for at, name in enumerate(frame.named):
        if name not in held:
            error = _unknown(held, name, given)
            error.details.update(_place(structure, -1 - len(frame.external) - at))
            raise error
    for name, ref in given.items():
        if ref is None and name not in held:
            raise _unknown(held, name, ())
        if not name or len(name) > MAX_NAME_CHARS:
            raise ArgumentError(f"a name must have 1 to {MAX_NAME_CHARS} characters, not {len(name)}")
    new = sum(name not in held for name in given)
    if new and len(held) + new > most:
        raise LimitExceeded(
            f"the session has {len(held):,} names, and the frame adds {new:,}; the limit is {most:,} "
            "(GRADWIRE_MAX_TENSORS)",
            setting="GRADWIRE_MAX_TENSORS", limit=most, value=len(held) + new,
        )  # fmt: skip


def move(held: dict[str, Tensor], name: str, tensor: Tensor | None) -> None:
    """Give a name to a tensor, or to none."""
    if tensor is None:
        held.pop(name, None)
    else:
        held[name] = tensor


def mover(held: dict[str, Tensor], name: str, tensor: Tensor | None) -> Callable[[], None]:
    """What :func:`move` will do."""
    return lambda: move(held, name, tensor)


def _unknown(held: Collection[str], name: str, given: Collection[str]) -> UnknownTensor:
    """The error for a name that no tensor has. ``given``: the names that the frame gives."""
    hint = did_you_mean(name, {*held, *given} - {name}) if len(held) + len(given) <= MOST_COMPARED else ""
    if name in given:
        hint = "; this frame makes it after its first use"
    return UnknownTensor(
        f"no tensor of this session, and no earlier result of this frame, is named {name!r}{hint}", name=name
    )


def _place(structure: Structure, ref: int) -> dict[str, Any]:
    """The record that mentions a reference first."""
    for index, record in enumerate(structure.ops):
        op = TABLE.get(record[0]) if type(record[0]) is str else None
        if op is None or type(record[1]) is not list:
            continue
        for param, arg in zip(op.params, record[1], strict=False):
            single = param.kind in (Kind.TENSOR, Kind.OPERAND) and arg == ref
            if single or (param.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS) and type(arg) is list and ref in arg):
                return {"op": op.name, "index": index}
    return {}
