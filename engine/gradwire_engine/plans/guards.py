"""A look at what a frame finds, written out for one plan: the same answer in a fifth of the time.

It knows frames that do not go through the graph behind their externals, whatever that is: an ordinary step of training
has none, and one of inference or of a simulated world does not look at it. Where it does not know a frame,
:func:`.inputs.look` has the word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gradwire_protocol.meta import Meta

from ..autograd.tensor import Tensor
from .inputs import FACTS, described

Guard = Callable[[Mapping[int, Any], list[int]], "list[Any] | None"]
"""Of the session's ids and the frame's externals: the objects that the frame finds, if :func:`.inputs.look` would give
the plan's key for them; ``None`` where that is not sure."""

_SAME: Final = {
    "requires_grad_flag": "requires_grad", "retains_grad": "retains_grad", "inference": "inference",
    "grad_dtype": "grad_dtype",
}  # fmt: skip
"""Attributes that are one object where they are equal, and what the key calls them."""


def guard_of(key: tuple[Any, ...]) -> Guard | None:
    """The guard of a plan with this key; ``None`` where a frame leads to more than it knows."""
    externals, *rows = key
    if any(len(row) != len(FACTS) if type(row) is tuple else type(row) is not type for row in rows):
        return None  # it goes through the graph
    facts = [dict(zip(FACTS, row, strict=True)) if type(row) is tuple else row for row in rows]
    return _Writer(externals, facts).function()


class _Writer:
    """Writes the function. ``rows``: what is known of a tensor, or the class of a node."""

    def __init__(self, externals: tuple[int, ...], rows: list[dict[str, Any] | type]) -> None:
        self._names: dict[str, Any] = {"Tensor": Tensor, "described": described}
        self._rows = rows
        self._lines = [f"def guard(ids, e):\n if len(e) != {len(externals)}: return None"]
        self._known: set[int] = set()
        self._memories: dict[int, str] = {}
        for i, number in enumerate(externals):
            self._meet(number, f"ids.get(e[{i}])")
        for number, facts in enumerate(rows):
            if isinstance(facts, dict):
                self._check(number, facts)
        self._distinct([f"x{number}" for number in range(len(rows))])
        self._distinct(list(self._memories.values()))
        self._lines.append(f" return [{', '.join([f'x{number}' for number in range(len(rows))])}]")

    def function(self) -> Guard:
        exec("\n".join(self._lines), self._names)  # noqa: S102  (the source is ours to the last character)
        function: Guard = self._names.pop("guard")
        return function

    def _constant(self, value: object) -> str:
        if value is None or type(value) in (bool, int):
            return repr(value)
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name

    def _unless(self, *conditions: str) -> None:
        self._lines.append(f" if {' or '.join(conditions)}: return None")

    def _meet(self, number: int, expression: str) -> None:
        if number in self._known:
            self._unless(f"{expression} is not x{number}")
            return
        self._known.add(number)
        self._lines.append(f" x{number} = {expression}")
        row = self._rows[number]
        if isinstance(row, dict):
            self._unless(f"type(x{number}) is not Tensor")
        else:
            self._unless(f"type(x{number}) is not {self._constant(row)}", f"x{number}.watchers")

    def _check(self, number: int, facts: dict[str, Any]) -> None:
        x, s, shown = f"x{number}", f"s{number}", facts["meta"]
        self._lines.append(f" {s} = {x}.storage")
        known = self._constant(shown)
        whole = type(shown) is Meta  # else it is described, having one element or none
        conditions = [
            f"{x}.meta is not {known}" if whole else f"described({x}.meta) != {known}",
            f"{x}.array.strides != {self._constant(facts['strides'])}",
            f"{x}.tangents is not None", f"{s}.poison is not None",
            *[f"{x}.{name} is not {self._constant(facts[fact])}" for name, fact in _SAME.items()],
            f"{x}.slot != {self._constant(facts['slot'])}",
        ]  # fmt: skip
        if facts["offset"] is None:
            conditions.append(f"{s}.nbytes == {x}.meta.nbytes")
        else:
            conditions += [f"{s}.nbytes != {x}.meta.nbytes", f"{x}.offset != {self._constant(facts['offset'])}"]
        for name, memory in (("memory", s), ("shared", f"{s}.array")):
            first = self._memories.setdefault(facts[name], memory)
            if first != memory:
                conditions.append(f"{memory} is not {first}")
        base = facts["base"]
        found = {"grad": facts["grad"], "_grad_fn": facts["grad_fn"], "base": -1 if base is None else base[0]}
        absent = [name for name, number in found.items() if number < 0]
        conditions += [f"{x}.{'history' if name == '_grad_fn' else name} is not None" for name in absent]
        if base is not None:
            _, creation, path, seen = base
            conditions += [f"{x}.creation != {self._constant(creation)}", f"{x}.path != {self._constant(path)}"]
            conditions.append(f"({x}.seen_version == {s}.version) is not {seen}")
        self._unless(*conditions)
        for name, number in found.items():
            if number >= 0:
                self._meet(number, f"{x}.{name}")

    def _distinct(self, names: list[str]) -> None:
        if len(names) > 1:
            self._unless(f"len({{{', '.join([f'id({name})' for name in names])}}}) != {len(names)}")
