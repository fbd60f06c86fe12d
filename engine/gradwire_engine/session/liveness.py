"""The last use of each dropped result in a frame, after which its memory is freed."""

from __future__ import annotations

from gradwire_protocol.frames import Structure
from gradwire_protocol.table import TABLE, Kind, Op

Frees = list[tuple[int, ...]]
"""Per record, the results to free after it has run."""

_SINGLE = (Kind.TENSOR, Kind.OPERAND)
_LISTS = (Kind.TENSORS, Kind.OPTIONAL_TENSORS)
_PLACES: dict[Op, tuple[tuple[int, bool], ...]] = {}
"""By op the places of the arguments that refer to tensors, and whether one is a list."""


def last_uses(structure: Structure) -> Frees:
    """For each record, the dropped results that no later record, read or name uses.

    Malformed records are skipped; running them reports the error.
    """
    waiting = set(structure.drops).difference(structure.reads, structure.keeps.values())
    if not waiting:
        return [()] * len(structure.ops)
    frees: list[list[int]] = [[] for _ in structure.ops]
    last: dict[int, int] = {}
    made = 0
    for index, record in enumerate(structure.ops):
        name, args, count = (*record, None)[:3]
        op = TABLE.get(name) if isinstance(name, str) else None
        if op is None or not isinstance(args, list) or (op.results is None and count is None):
            return [()] * len(structure.ops)  # the number of results is unknown
        places = _PLACES.get(op)
        if places is None:
            places = _PLACES[op] = _places(op)
        given = len(args)
        for at, listed in places:
            arg = args[at] if at < given else None
            if type(arg) is int:
                if not listed and arg in waiting:
                    last[arg] = index
            elif listed and isinstance(arg, list):
                for entry in arg:
                    if type(entry) is int and entry in waiting:
                        last[entry] = index
        results = op.results if op.results is not None else count
        for slot in range(made, made + (results if isinstance(results, int) else 1)):
            if slot in waiting:
                last[slot] = index  # until a later record uses it
        made += results if isinstance(results, int) else 1
    for slot, index in last.items():
        frees[index].append(slot)
    return [tuple(slots) for slots in frees]


def _places(op: Op) -> tuple[tuple[int, bool], ...]:
    return tuple((i, param.kind in _LISTS) for i, param in enumerate(op.params) if param.kind in (*_SINGLE, *_LISTS))
