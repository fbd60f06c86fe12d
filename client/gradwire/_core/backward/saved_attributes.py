"""``grad_fn._saved_self`` and its kin: what a node keeps for backward, and the arguments that it was recorded with.

``saved_attributes.json`` has, by node, the names that PyTorch gives them and where each is found here:

================= =============================================================================================
``"dim"``         the argument of that name: a number as it was given, a tensor if the node keeps it
``"result0"``     a result that the node keeps
``"self.shape"``  a fact about a tensor argument: ``shape``, ``stride``, ``numel``, ``ndim``, ``dtype``, or ``shape[0]``
``"dim.tuple"``   an argument as PyTorch keeps it: a number as a tuple, ``padding.to2`` as one of two numbers,
                  ``scales.at0`` the first of several, ``reduction.code`` a word as its number
================= =============================================================================================

The file is written by ``python -m tests.saved_attributes --record``, which compares with PyTorch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from gradwire_protocol import dtypes
from gradwire_protocol.errors import GraphError
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import TABLE

from ..graph.graph_mirror import LATER, AccumulateGrad, Node
from ..graph.node_hooks import place_of
from ..graph.save_policy import KEPT, describe
from ..tensor.saved_tensors import Packed
from ..tensor.tensor import Tensor
from .checkpoint_regions import CheckpointRegion
from .client_backward import running_has
from .raw_saved_tensors import RawSavedTensor, saved_under

FILE: Final = Path(__file__).with_name("saved_attributes.json")
_SAVED, _RAW = "_saved_", "_raw_saved_"
_CODES: Final[dict[str, dict[str, int]]] = {
    "reduction": {"none": 0, "mean": 1, "sum": 2},
    "scale": {"none": 0, "root": 1, "count": 2},
    "mode": {"sum": 0, "mean": 1, "max": 2, "bilinear": 0, "nearest": 1, "bicubic": 2},
    "padding_mode": {"zeros": 0, "border": 1, "reflection": 2},
}
"""The numbers that PyTorch has for words, by argument."""
_DTYPES: Final = {
    ScalarKind.BOOL: dtypes.bool_, ScalarKind.INT: dtypes.int64, ScalarKind.FLOAT: dtypes.float64,
    ScalarKind.COMPLEX: dtypes.complex128,
}  # fmt: skip


@cache
def sources() -> dict[str, dict[str, str]]:
    """By node, the names of what it keeps and where each is found."""
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def names(node: Node) -> list[str]:
    """The attributes that tell what a node keeps."""
    return [_SAVED + name for name, source in sources().get(node.label, {}).items() if _has(node, source)]


def _has(node: Node, source: str) -> bool:
    """Whether the operation that was recorded has this source: several may make nodes of one name."""
    if node.recipe is None:
        return False
    name = source.partition(".")[0]
    return name in node.recipe.entry.op.positions or name.removeprefix("result").isdigit()


def attribute(node: Node, name: str) -> Any:
    """The value of such an attribute.

    Raises:
        AttributeError: when there is none of this name.
        GraphError: when backward has freed what the node kept, or a tensor among it was changed in place since.
    """
    raw = name.startswith(_RAW)
    source = sources().get(node.label, {}).get(name.removeprefix(_RAW if raw else _SAVED))
    if source is None or not _has(node, source):
        raise AttributeError(f"{node.label!r} object has no attribute {name!r}")
    if not raw:
        return find(node, source)
    found = _raw(node, source)
    if found is None:
        raise AttributeError(f"{node.label!r} object has no attribute {name!r}: {source} is no tensor")
    return found


def _raw(node: Node, source: str) -> Any:
    op, described = node.recipe.entry.op, node.recipe.described
    if source not in op.positions:
        if "." in source:
            return None
        number = int(source.removeprefix("result"))
        return OpSavedTensor(node, source if op.results != 1 or number else "result", -1 - number)
    at = op.positions[source]
    if type(described[at]) is tuple:
        return tuple(OpSavedTensor(node, source, at, i) for i in range(len(described[at])))
    return OpSavedTensor(node, source, at) if type(described[at]) is Meta else None


def find(node: Node, source: str) -> Any:
    """What a source of the table stands for."""
    name, _, fact = source.partition(".")
    op, described = node.recipe.entry.op, node.recipe.described
    if name not in op.positions:
        number = int(name.removeprefix("result"))
        return _kept(node, name if op.results != 1 or number else "result", -1 - number, node.outs[number])
    at = op.positions[name]
    value = described[at]
    if fact == "code":
        return _CODES[name][value]
    if fact == "tuple":
        return (value,) if type(value) is int else value
    if fact.startswith("to"):
        return _repeated(value, int(fact.removeprefix("to")))
    if fact.startswith("at"):
        return None if value is None else value[int(fact.removeprefix("at"))]
    if fact:
        return _fact(value, fact)
    if type(value) is Meta:
        return _kept(node, name, at, value)
    if type(value) is tuple and any(type(v) is Meta for v in value):
        return tuple(None if v is None else _kept(node, name, at, v, i) for i, v in enumerate(value))
    if type(value) is ScalarKind:
        read = _read(node, name, meta((), _DTYPES[value]))
        return read if name in op.wrapped else read.item()
    return value


def _repeated(value: Any, count: int) -> Any:
    """A number for all of several dimensions as one for each; nothing where none was given."""
    if value is None:
        return ()
    return (value,) * count if type(value) is int else value


def _fact(value: Any, fact: str) -> Any:
    if type(value) is not Meta:
        return None
    fact, _, index = fact.partition("[")
    found = getattr(value, fact)
    return found[int(index.rstrip("]"))] if index else found


def _kept(node: Node, name: str, at: int, described: Meta, item: int = -1) -> Any:
    """A tensor that the node keeps; ``None`` where no gradient needs it."""
    if node.saved is None:
        raise GraphError(
            f"what {describe(node)} had kept was freed by an earlier backward; pass retain_graph=True there"
        )
    if node.part is not None and node.part.packed is not None and node.part.packed.has(name, item):
        return node.part.packed.find(name, item)
    if all(entry is KEPT or entry[2] != at for entry in node.saved):
        return None
    made = _read(node, name, described, item)
    if at < 0:
        made._node, made._slot = node, -1 - at
        return made
    edge = _edge(node, at, max(item, 0))
    if edge is None:
        return made
    if isinstance(edge[0], AccumulateGrad):
        return edge[0].variable
    made._node, made._slot = edge
    return made


class OpSavedTensor(RawSavedTensor):
    """A tensor that the node of an op keeps."""

    __slots__ = ("_at", "_item", "_name", "_node")

    def __init__(self, node: Node, name: str, at: int, item: int = -1) -> None:
        self._node, self._name, self._at, self._item = node, name, at, item

    def _pack(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        node = self._node
        place = place_of(node)
        part = node.part
        assert part is not None
        if part.packed is not None and part.packed.has(self._name, self._item):
            raise GraphError(f"{self._name} of {describe(node)} has hooks already: they are registered once")
        described: Any = node.outs[-1 - self._at] if self._at < 0 else node.recipe.described[self._at]
        value = _kept(node, self._name, self._at, described if self._item < 0 else described[self._item], self._item)
        if value is None:
            raise GraphError(f"{describe(node)} keeps no tensor as {self._name}")
        saved = saved_under(pack_hook, unpack_hook, value, node, self._at < 0)
        if part.packed is None:
            part.packed = Packed(place, [])
        part.packed.add(self._name, self._item, saved)
        assert node.saved is not None
        node.saved = (*(entry for entry in node.saved if entry is KEPT or entry[2] != self._at), KEPT)


def _edge(node: Node, at: int, item: int) -> Any:
    """The edge for an operand."""
    place = 0
    for position in node.recipe.entry.keeping.at:
        value = node.recipe.described[position]
        count = len(value) if type(value) is tuple else 1
        if position == at:
            return node.edges[place + item]
        place += count
    return None


def _read(node: Node, name: str, described: Meta, item: int = -1) -> Any:
    place = place_of(node)
    values = [place, name, described.shape, described.stride, described.dtype, item]
    with _computed_again(node):
        number = place._session.record(TABLE["saved_of"], values, 1)
    return Tensor._make(place._session, number, described)


@contextmanager
def _computed_again(node: Node) -> Iterator[None]:
    """Where the node is a checkpointed function's: with what it keeps there, for as long as it is looked at."""
    region = None if node.part is None else node.part.region
    if region is None or running_has(region):
        yield
        return
    repetitions: dict[CheckpointRegion, CheckpointRegion] = {}
    try:
        for each in region.chain:
            each.compute_again(repetitions)
        yield
    finally:
        for each in repetitions:
            each.forget()


LATER["saved"] = attribute
LATER["names"] = names
