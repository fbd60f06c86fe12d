"""The short way through the pipeline, for calls of which the metas of the operands decide everything.

Most calls need no cast, draw no random numbers, and make one new array of known shape in host memory. What the pipeline
would find out about such a call follows from what the rule was given, so it is found out once and kept beside the
rule's answer. Anything unusual, an error above all, goes the long way (:meth:`.engine.Engine.run`), which does the call
once more: these kernels change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.promotion import ScalarKind

from ..runtime.arrays import native, widened_native
from ..runtime.backends import NumpyBackend
from .engine_context import EngineContext
from .operands import UNDONE, lay_out, wrapped_number
from .recording import any_requires_grad, keep_results, make_node
from .registry import Row
from .tensor import Storage, Tensor
from .written_functions import laid_out, written

Function = Callable[[EngineContext, list[Any], list[Any]], Tensor | None]

WORTH_WRITING: Final = 3
"""Calls after which a function is written: programs whose shapes never repeat make each call once or twice."""


class PlainCall:
    """A call of one op on operands of these metas.

    Attributes:
        out: the meta of its result.
        before: the arguments of the kernel before the op's own.
        tensors, lists, integers: which arguments are tensors, lists of them, and integers that the dtype may wrap.
        carrying: which arguments may have a history.
        derived: whether its result has a history where an operand has.
        met: how often it was called before that.
        written: the same as a function, with compiled kernels and without, once it has been called some times.
    """

    __slots__ = (
        "before",
        "carrying",
        "derived",
        "inferred",
        "integers",
        "lists",
        "met",
        "out",
        "row",
        "tensors",
        "written",
    )

    def __init__(self, row: Row, described: list[Any], inferred: Inference) -> None:
        self.row = row
        self.inferred = inferred
        self.out: Meta = inferred.outs[0]
        self.before: tuple[Any, ...] = (np, self.out) if row.announced else (np,)
        places = row.tensor_at
        self.tensors = tuple([i for i in places if type(described[i]) is Meta])
        self.lists = tuple([i for i in places if type(described[i]) is tuple])
        self.integers = tuple([i for i in places if described[i] is ScalarKind.INT])
        self.carrying = tuple(
            [i for i in row.differentiable if i in self.tensors and described[i].dtype.carries_gradient]
        )
        self.derived = row.has_derivative and self.out.dtype.carries_gradient
        self.met = 0
        self.written: dict[bool, Function] = {}

    def run(self, engine: EngineContext, values: list[Any], rule_args: list[Any]) -> Tensor | None:
        """The result, or None where the call has to go the long way. ``rule_args`` may become the node's own."""
        function = self.written.get(engine.compiled)
        if function is None:
            self.met += 1
            if self.met <= WORTH_WRITING:
                return self._unwritten(engine, values, rule_args)
            function = self.written[engine.compiled] = self._function(engine.compiled)
        try:
            return function(engine, values, rule_args)
        except UNDONE:
            return None

    def _unwritten(self, engine: EngineContext, values: list[Any], rule_args: list[Any]) -> Tensor | None:
        """What the function does that :meth:`_function` writes."""
        row, out, account = self.row, self.out, engine.account
        if not account.fits(out.nbytes):
            return None
        arguments = [*self.before, *values]
        shift = len(self.before)
        for i in self.tensors:
            arguments[i + shift] = values[i].array
        for i in self.lists:
            arguments[i + shift] = [None if v is None else v.array for v in values[i]]
        compute = self.inferred.compute
        if compute is not None:
            for i in self.integers:
                arguments[i + shift] = wrapped_number(values[i], compute)
        operands = [values[i].array for i in self.tensors]
        for i in self.lists:
            operands.extend([v.array for v in values[i] if v is not None])
        try:
            compiled = row.compiled if engine.compiled else None
            array = NotImplemented if compiled is None else compiled(*arguments)
            if array is NotImplemented and row.kernel is not None:
                array = row.kernel(*arguments)
            array = lay_out(array, out, engine.backends["cpu"], operands)
        except UNDONE:
            return None
        result = Tensor(engine, array, out, Storage(array, account))
        if self.derived and engine.grad_enabled and any_requires_grad(row, values):
            node = result.history = make_node(engine, row, rule_args, values, self.inferred, self.inferred.outs)
            keep_results(node, [result])
        if engine.inference:
            result.inference = True
        return result

    def _function(self, compiled: bool) -> Function:
        row, out, inferred = self.row, self.out, self.inferred
        names: dict[str, Any] = {
            "row": row, "kernel": row.kernel, "compiled": row.compiled, "inferred": inferred, "outs": inferred.outs,
            "compute": inferred.compute, "nbytes": out.nbytes, "any_requires_grad": any_requires_grad,
            "keep_results": keep_results, "make_node": make_node, "wrapped_number": wrapped_number,
            "name": inferred.grad_fn or row.op.grad_fn or row.op.name,
        }  # fmt: skip
        arguments = ["np", "m"][: len(self.before)]
        beside: list[str] = []
        for i in range(len(row.op.params)):
            if i in self.tensors:
                arguments.append(f"v{i}.array")
                beside.append(arguments[-1])
            elif i in self.lists:
                arguments.append(f"[None if v is None else v.array for v in v{i}]")
                beside.append(f"*[v.array for v in v{i} if v is not None]")
            elif i in self.integers and inferred.compute is not None:
                arguments.append(f"wrapped_number(v{i}, compute)")
            else:
                arguments.append(f"v{i}")
        given = ", ".join(arguments)
        call = [f"a = kernel({given})"]
        if compiled and row.compiled is not None:
            call = [f"a = compiled({given})", "if a is NotImplemented:", f"    {call[0]}"]
        body = [
            "account = engine.account",
            "limits = account.limits",
            "if nbytes > limits.max_tensor_bytes or account.live + nbytes > limits.max_session_bytes:",
            "    return None",
            f"[{', '.join(f'v{i}' for i in range(len(row.op.params)))}] = values",
            *call,
            *laid_out("", out, beside, names),
            "result = Tensor(engine, a, m, Storage(a, account))",
            *(self._history() if self.derived else ()),
            "if engine.inference:",
            "    result.inference = True",
            "return result",
        ]
        function: Function = written("engine, values, rule_args", body, names)
        return function

    def _history(self) -> list[str]:
        """Lines that make the node: what :func:`.recording.make_node` and :func:`.recording.keep_results` do."""
        row = self.row
        if row.has_lists:
            lines = ["if engine.grad_enabled and any_requires_grad(row, values):"]
            lines += ["    node = result.history = make_node(engine, row, rule_args, values, inferred, outs)"]
            return [*lines, "    keep_results(node, [result])"] if row.keeps_results else lines
        given = [i for i in row.differentiable if i in self.tensors]
        requires = [f"v{i}.requires_grad_flag or v{i}.history is not None" for i in given]
        requires += [f"v{i}.base is not None and v{i}.requires_grad" for i in given]
        if not given:
            return []
        lines = [f"if engine.grad_enabled and ({' or '.join(requires)}):"]
        for i in self.carrying:
            lines += [
                f"    h{i} = v{i}.history",
                f"    if h{i} is None or v{i}.base is not None or type(h{i}) is tuple:",
                f"        e{i} = edge_of(v{i})",
                "    else:",
                f"        e{i} = (h{i}, v{i}.slot)",
            ]
        edges = [f"e{i}" if i in self.carrying else "None" for i in row.differentiable]
        lines += [f"    rule_args[{i}] = v{i}" for i in row.number_like_at if i not in self.tensors]
        lines += [
            "    engine._seq += 1",
            f"    edges = ({', '.join(edges)},)",
            "    node = Node(name, row, rule_args, edges, outs, engine._seq, account, engine.position)",
            "    if account.nodes > limits.max_graph_nodes:",
            "        account.check_nodes()",
            "    node.saved = saved = {}",
            *self._kept(),
            "    if engine.region is not None:",
            "        engine.region.note(node)",
            "    result.history = node",
        ]
        return lines

    def _kept(self) -> list[str]:
        row = self.row
        lines = []
        for name, needing in row.needed_saved():
            at = row.op.positions.get(name)
            if at is None:
                result = int(name.removeprefix("result") or 0)
                entry = f"SavedTensor(result, {result not in row.op.constant})"
            elif at in self.tensors:
                entry = f"SavedTensor(v{at})"
            elif name in row.op.wrapped:
                entry = f"v{at}"
            else:
                continue
            keep = f"saved[{name!r}] = {entry}"
            if needing is None:
                lines.append(f"    {keep}")
            elif wanted := [f"e{i} is not None" for i in needing if i in self.carrying]:
                lines += [f"    if {' or '.join(wanted)}:", f"        {keep}"]
        return lines


def plain_call(engine: EngineContext, row: Row, described: list[Any], inferred: Inference) -> PlainCall | None:
    """The short way of a call, if it has one.

    Args:
        described: what the rule was given.
        inferred: what it answered.
    """
    op, compute = row.op, inferred.compute
    if (
        row.kernel is None or row.composite is not None or row.measure is not None or row.across or op.control
        or op.random or op.mutates is not None or op.results != 1 or inferred.offsets is not None or inferred.scratch
        or len(inferred.outs) != 1 or not inferred.outs[0].known or type(engine.backends["cpu"]) is not NumpyBackend
    ):  # fmt: skip
        return None
    metas = list(inferred.outs)
    for i in row.tensor_at:
        given = described[i]
        metas.extend([m for m in (given if type(given) is tuple else (given,)) if type(m) is Meta])
    if any(m.device != "cpu" for m in metas):
        return None
    if compute is not None:
        if not row.half and widened_native(compute) is not native(compute):
            return None
        if any(m.dtype is not compute for m in metas[1:]):
            return None
    return PlainCall(row, described, inferred)
