"""What a batching rule works with, and the table of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.errors import ArgumentError
from gradwire_protocol.meta import Inference, Meta, meta

from ..functional import F
from ..registry import Row
from ..tensor import Tensor
from .batched import Batched

if TYPE_CHECKING:
    from ..engine_context import EngineContext

Rule = Callable[..., Any]
RULES: Final[dict[str, Rule]] = {}
"""``f(x, *values)`` by op: computes the op for all samples. See :class:`VmapLevel`."""


class VmapLevel:
    """One op, applied at one level of mapping.

    A rule gets it with the op's values, in which tensors look as their samples do, and returns the results either as
    tensors with the mapped dimension in front, or wrapped (where it is a composition of ops on wrapped tensors).
    The rule of the table has run on the samples' metas before: shapes fit.

    Attributes:
        engine, entry: where it runs, and the op's row.
        inferred: what the rule says of one sample.
        level, size, randomness: of the map.
    """

    __slots__ = ("engine", "entry", "inferred", "level", "randomness", "size")

    def __init__(self, engine: EngineContext, entry: Row, inferred: Inference, tensors: list[Tensor]) -> None:
        batched = [t for t in tensors if type(t) is Batched]
        first = max(batched, key=lambda t: t.level)
        self.engine = engine
        self.entry = entry
        self.inferred = inferred
        self.level = first.level
        self.randomness = first.randomness
        self.size = first.size
        for tensor in batched:
            if tensor.level == self.level and tensor.size != self.size:
                raise ArgumentError(
                    f"{entry.op.name}: tensors mapped over {self.size} and {tensor.size} samples meet at level "
                    f"{self.level}: was one kept from another vmap?"
                )

    def has(self, value: Any) -> bool:
        """Whether it is mapped at this level."""
        return type(value) is Batched and value.level == self.level

    def inside(self, value: Any) -> Any:
        """The tensor with the mapped dimension in front; what is not mapped here as it is."""
        return value.value if type(value) is Batched and value.level == self.level else value

    def front(self, value: Any) -> Any:
        """The tensor with the mapped dimension in front, for certain; what is no tensor as it is."""
        if type(value) is Batched and value.level == self.level:
            return value.value
        if isinstance(value, Tensor):
            return F.expand(F.unsqueeze(value, 0), (self.size, *value.shape))
        if type(value) in (list, tuple) and any(isinstance(v, Tensor) for v in value):
            return [self.front(v) for v in value]
        return value

    def aligned(self, value: Any, rank: int) -> Any:
        """Like :meth:`inside`, with ones after the mapped dimension so that samples of ``rank`` broadcast."""
        if not self.has(value):
            return value
        inner, missing = value.value, rank - value.ndim
        return F.reshape(inner, (self.size, *(1,) * missing, *value.shape)) if missing > 0 else inner

    def call(self, *values: Any) -> Any:
        """The op itself, on other values."""
        return self.engine.run(self.entry, list(values))

    def wrap(self, value: Tensor, out: Meta | None = None) -> Batched:
        """A result mapped at this level, with the meta that the table's rule gave one sample."""
        if type(value) is Batched and value.level == self.level:
            return value
        if out is None or not out.known:
            out = meta(value.shape[1:], value.dtype, value.device)
        wanted = (self.size, *out.shape)
        if value.shape != wanted:
            value = F.reshape(value, wanted)
        if value.dtype is not out.dtype:
            value = F.to(value, dtype=out.dtype)
        return Batched(value, self.level, self.randomness, out)


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register how these ops are computed for all samples at once."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register


def composed(*names: str) -> Callable[[Rule], Rule]:
    """Register ``f(*values)``: these ops as compositions of others, on wrapped tensors."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = _wrapping(function)
        return function

    return register


def _wrapping(function: Rule) -> Rule:
    def apply(x: VmapLevel, *values: Any) -> Tensor:
        # A result that came out without the mapped operand is the same for all samples.
        return x.front(function(*values))

    return apply


# Sample by sample


def sample_by_sample(x: VmapLevel, values: list[Any], same_numbers: bool = False) -> Any:
    """Run the op once per sample and stack the results. Right for every op, and no faster than a loop."""
    op, engine = x.entry.op, x.engine
    columns = [_samples(x, v, op.mutates is not None) for v in values]
    start = engine.generator.get_state()
    rows: list[tuple[Any, ...]] = []
    for i in range(x.size):
        if same_numbers:
            engine.generator.set_state(start)
        result = engine.run(x.entry, [c[i] if type(c) is _Column else c for c in columns])
        rows.append(result if type(result) is tuple else (result,))
    if op.mutates is not None:
        return values[0]
    if not rows:
        outs = x.inferred.outs if op.results is None else x.inferred.outs[: op.results]
        return [engine.call("zeros", (0, *o.shape), dtype=o.dtype, device=o.device) for o in outs]
    return [F.stack(list(column)) for column in zip(*rows, strict=True)]


class _Column(list[Any]):
    """One argument, sample by sample."""


def _samples(x: VmapLevel, value: Any, written: bool) -> Any:
    if x.has(value):
        if written:  # views that may be written to, unlike those of unbind
            return _Column([F.select(value.value, 0, i) for i in range(x.size)])
        return _Column(F.unbind(value.value, 0))
    if type(value) in (list, tuple) and any(x.has(v) for v in value):
        parts = [_samples(x, v, written) for v in value]
        return _Column([[p[i] if type(p) is _Column else p for p in parts] for i in range(x.size)])
    return value
