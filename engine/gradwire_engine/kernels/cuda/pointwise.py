"""Every elementwise op of the table of expressions, as one kernel a call."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.table import lookup

from ...autograd.registry import row
from ...numerics.expressions import EXPRESSIONS, expression_of
from ...runtime.arrays import Array, Namespace
from ...runtime.cuda.registry import fused
from . import fusion


def _register(name: str) -> None:
    names = tuple(p.name for p in lookup(name).params)
    announced = row(name).announced

    @fused(name, half=True)
    def run(xp: Namespace, *arguments: Any) -> Array:
        values = dict(zip(names, arguments[1:] if announced else arguments, strict=True))
        found = expression_of(name, values)
        return NotImplemented if found is None else fusion.single(xp, found.text, values)


for _name in EXPRESSIONS:
    _register(_name)
