"""The short way through the pipeline, for calls of which the metas of the operands decide everything.

Most calls need no cast, draw no random numbers, and make one new array of known shape in host memory. What the pipeline
would find out about such a call follows from what the rule was given, so it is found out once and kept beside the
rule's answer. Anything unusual, an error above all, goes the long way (:meth:`.engine.Engine.run`), which does the call
once more: these kernels change nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.promotion import ScalarKind

from ..runtime.arrays import Native, native, widened_native
from ..runtime.backends import NumpyBackend
from .engine_context import EngineContext
from .operands import UNDONE, lay_out, wrapped_number
from .recording import any_requires_grad, keep_results, make_node
from .registry import Row
from .tensor import Storage, Tensor


class PlainCall:
    """A call of one op on operands of these metas.

    Attributes:
        out, wanted: the meta of its result, and the dtype of its array.
        before: the arguments of the kernel before the op's own.
        tensors, lists, integers: which arguments are tensors, lists of them, and integers that the dtype may wrap.
        derived: whether its result has a history where an operand has.
    """

    __slots__ = ("before", "derived", "inferred", "integers", "lists", "out", "row", "tensors", "wanted")

    def __init__(self, row: Row, described: list[Any], inferred: Inference) -> None:
        self.row = row
        self.inferred = inferred
        self.out: Meta = inferred.outs[0]
        self.wanted: Native = native(self.out.dtype)
        self.before: tuple[Any, ...] = (np, self.out) if row.announced else (np,)
        places = row.tensor_at
        self.tensors = tuple([i for i in places if type(described[i]) is Meta])
        self.lists = tuple([i for i in places if type(described[i]) is tuple])
        self.integers = tuple([i for i in places if described[i] is ScalarKind.INT])
        self.derived = row.has_derivative and self.out.dtype.carries_gradient

    def run(self, engine: EngineContext, values: list[Any], rule_args: list[Any]) -> Tensor | None:
        """The result, or None where the call has to go the long way. ``rule_args`` may become the node's own."""
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
        try:
            compiled = row.compiled if engine.compiled else None
            array = NotImplemented if compiled is None else compiled(*arguments)
            if array is NotImplemented and row.kernel is not None:
                array = row.kernel(*arguments)
        except UNDONE:
            return None
        if (
            type(array) is not np.ndarray or array.dtype is not self.wanted or array.base is not None
            or array.shape != out.shape or not array.flags.c_contiguous or not out.contiguous
        ):  # fmt: skip
            operands = [values[i].array for i in self.tensors]
            for i in self.lists:
                operands.extend([v.array for v in values[i] if v is not None])
            try:
                array = lay_out(array, out, engine.backends["cpu"], operands)
            except MemoryError:
                return None
        result = Tensor(engine, array, out, Storage(array, account))
        if self.derived and engine.grad_enabled and any_requires_grad(row, values):
            node = result.history = make_node(engine, row, rule_args, values, self.inferred, self.inferred.outs)
            if row.keeps_results:
                keep_results(node, [result])
        if engine.inference:
            result.inference = True
        return result


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
