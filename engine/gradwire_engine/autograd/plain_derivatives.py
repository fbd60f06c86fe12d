"""The short way through a derivative, for nodes of which metas and numbers decide everything.

A derivative is written in differentiable ops, and each of its ops goes through the pipeline: bind, describe, look up,
compute, wrap. For most nodes the calls that this comes to follow from the metas of the operands, the numbers among them
and which gradients are wanted. So they are watched when such a node is met the second time, and written down as a
function of arrays that does the same calls of the same kernels. What is watched must be plain calls and views alone
(:mod:`.plain_calls`); anything unusual, an error above all, goes the long way, which does it once more: these kernels
change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.table import Op

from ..runtime.arrays import Array, Native
from ..runtime.backends import Backend
from ..runtime.numpy_views import way_to
from .operands import UNDONE
from .registry import Kernel, Row
from .tape import Node, Saved, SavedTensor
from .tensor import Tensor
from .written_functions import laid_out, written

if TYPE_CHECKING:
    from .engine_context import EngineContext

Gradients = list[Tensor | None]
Program = Callable[["EngineContext", Node, Gradients], Gradients | None]
"""The gradients of a node, or None where they have to be computed the long way."""
Derivative = Callable[[Node, "EngineContext", Gradients, list[bool]], Gradients]

MOST_KINDS: Final = 8_192
MOST_TRIES: Final = 4
MOST_STEPS: Final = 40
LONGEST_ARGUMENT: Final = 64


class _Kind:
    """The nodes of one op with the same metas, attributes and numbers, of which the same gradients are wanted.

    Attributes:
        met: how often one of them went the long way.
        program: what is written down of their derivative.
        hopeless: nothing ever will be.
    """

    __slots__ = ("hopeless", "met", "program")

    def __init__(self) -> None:
        self.met = 0
        self.program: Program | None = None
        self.hopeless = False


KINDS: Final[dict[tuple[Any, ...], _Kind]] = {}
"""The kinds of nodes that were met, for all sessions of the process: nothing of a session is in a program."""


def _kind(engine: EngineContext, node: Node, grads: Gradients, needed: list[bool]) -> _Kind | None:
    """The kind of a node, where a derivative of that kind may have a short way."""
    row, values = node.row, node.values
    if (
        engine.grad_enabled or engine.inference or engine.tracer is not None or engine.dual_levels
        or engine.batched or engine.region is not None or not engine.takes_short_ways or node.outs[0].device != "cpu"
    ):  # fmt: skip
        return None
    key = (
        row, engine.compiled, engine.default_dtype, *needed, *[None if g is None else g.meta for g in grads],
        *node.outs, *values, *[_apart(values[i]) for i in row.fractions_at],
    )  # fmt: skip
    found = KINDS.get(key)
    if found is None:
        if len(KINDS) >= MOST_KINDS:  # of programs whose numbers never repeat
            KINDS.clear()
        found = KINDS[key] = _Kind()
        found.hopeless = any(type(v) in (tuple, str) and len(v) > LONGEST_ARGUMENT for v in values)
    return None if found.hopeless else found


def _apart(value: Any) -> Any:
    """What tells numbers apart that are equal: 1 and 1.0, 0.0 and -0.0."""
    return type(value) if value and type(value) is not complex else repr(value)


class Recorder:
    """Watches a derivative that goes the long way, as the engine's tracer. It must not outlive the derivative: backward
    looks at who else holds a gradient.

    Attributes:
        failed: there will be no program.
        again: another node of the kind may have one: here two operands were one tensor.
    """

    def __init__(self, engine: EngineContext, grads: Gradients) -> None:
        self.engine = engine
        self.failed = False
        self.again = False
        self._lines: list[str] = []
        self._names: dict[str, Any] = {}
        self._arrays: dict[int, int] = {}
        self._kept: list[Any] = []
        self._sources: list[str] = []
        self._tensors: set[int] = set()
        self._largest = 0
        self._grads = list(grads)
        self._pending: list[Any] | None = None
        self._call: tuple[str, list[int], bool] | None = None
        for k, gradient in enumerate(grads):
            if gradient is not None:
                self._bring(gradient, f"grad {k}", f"grads[{k}]", None)

    # What the engine tells

    def stop(self, reason: str) -> None:
        """Give up."""
        self.failed = True
        if self.engine.tracer is self:
            self.engine.tracer = None

    def record(self, op: Op, args: list[Any], values: list[Any]) -> None:
        self.stop("a record")

    def payload(self, op: Op, values: list[Any], at: int) -> None:
        self.stop("a payload")

    def took(self, values: list[Any]) -> bool:
        taken, self._pending = self._pending is values, None
        return taken

    def run(self, row: Row, values: list[Any]) -> Any:
        op = row.op
        if op.control or op.mutates is not None or op.random or len(self._sources) > MOST_STEPS:
            self.stop(f"op {op.name}")
        else:
            self._pending = values
        return self.engine.run(row, values)

    def numbers_checked(self) -> None:
        self.stop("numbers are looked at")

    def placed(self, tensor: Tensor) -> None:
        self.stop("a place in memory is looked at")

    def called(
        self, row: Row, compiled: Kernel | None, values: list[Any], arguments: list[Any],
        casts: tuple[Native | None, Native | None], inferred: Inference, result: Any, fused: bool = False,
        applies: bool = False,
    ) -> None:  # fmt: skip
        if not self.engine.is_plain(row, values):
            self.stop(f"op {row.op.name}")
            return
        at = len(self._sources)
        self._names[f"f{at}"] = compiled if applies else row.kernel
        used: list[int] = []
        words = [self._word(at, k, argument, used) for k, argument in enumerate(arguments)]
        if not self.failed:
            self._call = f"f{at}({', '.join(words)})", used, applies

    def laid_out(self, i: int, raw: Array, data: Array, out: Meta, operands: list[Tensor]) -> None:
        if self._call is None:
            return
        (expression, used, machine), self._call = self._call, None
        at = self._add(data, "step")
        self._largest = max(self._largest, out.nbytes)
        self._lines.append(f"a{at} = {expression}")
        if machine:  # it may decline arrays that lie in another way than their metas say
            self._lines += [f"if a{at} is NotImplemented:", "    return None"]
        self._lines += laid_out(at, out, [f"a{k}" for k in used], self._names)

    def written(self, target: Array, raw: Array) -> None:
        self.stop("a write")

    def viewed(
        self, row: Row, source: Tensor, rule_args: list[Any], inferred: Inference, results: list[Tensor]
    ) -> None:
        origin = self._arrays.get(id(source.array))
        host = type(source.array) is np.ndarray
        if origin is None or not host:
            self.stop("a view of what came from nowhere")
            return
        for result, delta in zip(results, inferred.offsets or (), strict=True):
            way = way_to(source.array, result.array)
            at = self._add(result.array, f"view {origin}")
            self._names |= {f"r{at}": row, f"m{at}": result.meta, f"o{at}": delta}
            if way:
                self._lines.append(f"a{at} = a{origin}{way}")
            else:
                self._show(at)

    def computed(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        self.stop(name)

    def constant(self, host: Array, array: Array, backend: Backend) -> None:
        self.stop("a constant")

    def noded(self, node: Node) -> None:
        self.stop("a node")

    def saved(self, node: Node, needed: list[bool]) -> Saved:
        return _WatchedSaved(node, needed, self)

    # What is written down

    def kept(self, node: Node, name: str, found: Any) -> None:
        """A derivative was given what the node kept under this name."""
        if type(found) is list or name in node.row.dispensable:
            self.stop(name)
        elif type(found) is Tensor and not self.failed:
            self._bring(found, f"saved {name}", f"node.saved.get({name!r})", found.meta)

    def _bring(self, tensor: Tensor, source: str, expression: str, expected: Meta | None) -> None:
        """Have a tensor that was there before."""
        known = self._arrays.get(id(tensor.array))
        if known is not None:
            if self._sources[known] != source:
                self.again = True
                self.stop("one tensor as two operands")
            return
        at = self._add(tensor.array, source)
        self._tensors.add(at)
        self._lines.append(f"t{at} = {expression}")
        if expected is not None:
            name = source.removeprefix("saved ")
            self._names[f"m{at}"] = expected
            self._lines += [
                f"if type(t{at}) is not SavedTensor:",
                "    return None",
                f"t{at} = t{at}.unpack(node, {name!r})",
                f"if t{at}.meta is not m{at}:",
                "    return None",
            ]
        self._lines.append(f"a{at} = t{at}.array")

    def _add(self, array: Array, source: str) -> int:
        at = len(self._sources)
        self._arrays[id(array)] = at
        self._sources.append(source)
        self._kept.append(array)  # so that no other array has its id
        return at

    def _word(self, at: int, k: int, argument: Any, used: list[int]) -> str:
        """An argument of a kernel, in the words of the program."""
        if type(argument) is list:
            return f"[{', '.join(self._word(at, 1000 * (k + 1) + j, each, used) for j, each in enumerate(argument))}]"
        if type(argument) is not np.ndarray:
            self._names[f"c{at}_{k}"] = argument
            return f"c{at}_{k}"
        known = self._arrays.get(id(argument))
        if known is None:
            self.stop("an array came from nowhere")
            return ""
        used.append(known)
        return f"a{known}"

    def _show(self, at: int) -> None:
        """Have what is an array so far as a tensor."""
        if at in self._tensors:
            return
        self._tensors.add(at)
        source = self._sources[at]
        if source == "step":
            self._lines.append(f"t{at} = Tensor(engine, a{at}, m{at}, Storage(a{at}, account))")
            return
        origin = int(source.removeprefix("view "))
        self._show(origin)
        self._lines += [f"t{at} = engine.view(r{at}, t{origin}, m{at}, o{at})", f"a{at} = t{at}.array"]

    def program(self, results: Gradients, high: int) -> Program | None:
        """What was watched, as a function; None where it cannot be one.

        Args:
            high: the bytes that were held at once beside what was there before.
        """
        if self.failed:
            return None
        words = [self._result(result) for result in results]
        if "" in words:
            return None
        self._names |= {"largest": self._largest, "high": high}
        body = [
            "account = engine.account",
            "high_mark = account.live + high",
            "if largest > account.limits.max_tensor_bytes or high_mark > account.limits.max_session_bytes:",
            "    return None",
            "if high_mark > account.peak:",
            "    account.peak = high_mark",
            *self._lines,
            f"return [{', '.join(words)}]",
        ]
        program: Program = written("engine, node, grads", body, self._names)
        return program

    def _result(self, result: Tensor | None) -> str:
        if result is None:
            return "None"
        for k, gradient in enumerate(self._grads):
            if result is gradient:
                return f"grads[{k}]"
        at = self._arrays.get(id(result.array))
        if at is None or not self._sources[at].startswith(("step", "view")):
            return ""
        self._show(at)
        return f"t{at}"


class _WatchedSaved(Saved):
    """Tells a recorder what a derivative looks at."""

    __slots__ = ("_recorder",)

    def __init__(self, node: Node, needed: list[bool], recorder: Recorder) -> None:
        super().__init__(node, needed)
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        kept = self._node.saved
        if kept is not None and type(kept.get(name)) in (SavedTensor, list):
            self._recorder.kept(self._node, name, found)
        return found


def by_short_way(
    engine: EngineContext, node: Node, grads: Gradients, needed: list[bool], long_way: Derivative
) -> Gradients:
    """The gradients of a node: by a program, where there is one for its kind. Where there may be, one is made."""
    kind = _kind(engine, node, grads, needed)
    if kind is None:
        return long_way(node, engine, grads, needed)
    if kind.program is not None:
        try:
            found = kind.program(engine, node, grads)
        except UNDONE:
            found = None
        return long_way(node, engine, grads, needed) if found is None else found
    kind.met += 1
    if kind.met == 1:  # most that are met once are not met again
        return long_way(node, engine, grads, needed)
    recorder = Recorder(engine, grads)
    if not recorder.failed:
        engine.tracer = recorder
    account = engine.account
    before, peak = account.live, account.peak
    account.reset_peak()
    try:
        results = long_way(node, engine, grads, needed)
    finally:
        engine.tracer = None
        high, account.peak = account.peak - before, max(account.peak, peak)
    kind.program = recorder.program(results, high)
    kind.hopeless = kind.program is None and (not recorder.again or kind.met >= MOST_TRIES)
    return results
