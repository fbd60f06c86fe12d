"""Frames in JSON form, record by record."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gradwire_protocol.records import encode_args
from gradwire_protocol.table import lookup

from .table import spelled


class Ref(int):
    """A reference to a result of the frame."""


class FrameMaker:
    """Collects the parts of a frame in JSON form."""

    def __init__(self) -> None:
        self.ops: list[Any] = []
        self.reads: list[int] = []
        self.scalars: list[Any] = []
        self.payloads: list[Any] = []
        self.made = 0
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """Ops and their arguments by name."""

    def upload(self, dtype: str, shape: list[int], values: Any) -> Ref:
        """A tensor of these values."""
        self.payloads.append({"values": values})
        self.ops.append(["upload", ["payload", dtype, shape]])
        return self._results(1)[0]

    def record(self, name: str, /, *args: Any, results: int | None = None, **kwargs: Any) -> list[Ref]:
        """An op; references are :class:`Ref`. ``results`` where the op leaves their number open."""
        op = lookup(name)
        self.calls.append((name, dict(zip((param.name for param in op.params), args, strict=False)) | kwargs))
        scalars: list[Any] = []
        given = encode_args(op, op.bind(args, kwargs), lambda v: isinstance(v, Ref), int, scalars, [])
        self.scalars += [[*map(spelled, v)] if isinstance(v, list) else spelled(v) for v in scalars]
        self.ops.append([name, json.loads(msgspec.json.encode(given))])
        if op.results is None:
            self.ops[-1].append(results or 0)
        return self._results(op.results if op.results is not None else results or 0)

    def _results(self, count: int) -> list[Ref]:
        self.made += count
        return [Ref(self.made - count + i) for i in range(count)]

    def frame(self) -> dict[str, Any]:
        """The frame."""
        # A frame that is heard leaves no failure for the next one to report.
        structure = {"ops": self.ops} | ({"reads": self.reads} if self.reads else {"heard": True})
        found: dict[str, Any] = {"structure": structure}
        return found | {n: v for n, v in (("scalars", self.scalars), ("payloads", self.payloads)) if v}
