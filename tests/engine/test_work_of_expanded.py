"""An operand with shared elements costs what is computed over it, for every op."""

from __future__ import annotations

from typing import Any

import pytest

from gradwire_engine.autograd import registry
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime import work
from gradwire_engine.runtime.memory import Limits, MemoryAccount
from gradwire_protocol import dtypes
from gradwire_protocol.errors import GradwireError, LimitExceeded, TimeExceeded
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import TABLE, Kind, Op

SHAPES = [
    (1 << 44,),
    (1 << 22, 1 << 22),
    (4, 1 << 20, 1 << 20),
    (1, 4, 1 << 20, 1 << 20),
    (1, 4, 1 << 10, 1 << 15, 1 << 15),
]
"""Some 10**13 elements each; there is one in memory."""

DTYPES = [dtypes.float32, dtypes.int64, dtypes.complex64, dtypes.BY_NAME["bool"]]
GUESSES: list[Any] = [None, 0, 1, (0,), (1,), (2, 2), 1.0, False, dtypes.float32, "mean", "sum"]
"""What a required argument that is no tensor may be."""


def expanded(shape: tuple[int, ...], dtype: dtypes.DType) -> Meta:
    return meta(shape, dtype, "cpu", (0,) * len(shape))


def calls(op: Op) -> Any:
    """Arguments for an op's rule, all tensors among them expanded."""
    for shape in SHAPES:
        for dtype in DTYPES:
            for guess in GUESSES:
                tensor = expanded(shape, dtype)
                values: list[Any] = []
                for param in op.params:
                    if param.kind is Kind.TENSOR and not param.optional:
                        values.append(tensor)
                    elif param.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS) and param.required:
                        values.append((tensor, tensor))
                    elif param.kind is Kind.OPERAND and param.required:
                        values.append(tensor)
                    elif param.kind is Kind.SCALAR and param.required:
                        values.append(ScalarKind.of(1))
                    else:
                        values.append(guess if param.required else param.default)
                yield values


def accepted(op: Op) -> tuple[list[Any], Any] | None:
    """The first arguments that the rule accepts, and what it says of them, unless the result is a view."""
    for values in calls(op):
        try:
            inferred = op.infer(values)
        except (GradwireError, TypeError, ValueError, AttributeError, ArithmeticError, LookupError):
            continue
        return None if inferred.offsets is not None else (values, inferred)
    return None


def computing() -> list[Op]:
    """Ops that compute over operands: no views, and none that only tell or set something of a tensor."""
    return [
        op for name, op in sorted(TABLE.items())
        if not op.internal and not op.control and op.base is None and name in registry.ROWS
        and any(param.kind in (Kind.TENSOR, Kind.TENSORS) and not param.optional for param in op.params)
    ]  # fmt: skip


def test_no_op_computes_over_more_elements_than_work_allows() -> None:
    account, walked, let_through = MemoryAccount(Limits()), [], []
    Engine()  # fills the registry
    for op in computing():
        found = accepted(op)
        if found is None:
            continue
        walked.append(op.name)
        try:
            work.check(op, *found, account)
            account.check_op(op.name, found[1].outs, found[1].scratch)
        except (TimeExceeded, LimitExceeded):
            continue
        let_through.append(op.name)
    assert let_through == []
    assert len(walked) > 250


@pytest.mark.parametrize("ops", [("sum",), ("mean",), ("amax", (0,)), ("any",), ("count_nonzero",), ("nansum",)])
def test_a_reduction_of_one_element_expanded_to_many_is_refused_at_once(ops: tuple[Any, ...]) -> None:
    engine = Engine()
    wide = engine.call("expand", engine.call("ones", (1,)), (1 << 44,))
    with pytest.raises(TimeExceeded, match="GRADWIRE_MAX_OP_WORK"):
        engine.call(ops[0], wide, *ops[1:])


def test_overlapping_views_cost_their_elements_too() -> None:
    engine = Engine()
    wide = engine.call("as_strided", engine.call("ones", (1 << 21,)), (1 << 20, 1 << 20), (1, 1))
    with pytest.raises(TimeExceeded):
        engine.call("sum", wide)


def test_products_that_blas_does_not_compute_cost_more() -> None:
    engine = Engine(Limits(max_op_work=30 * 40 * 50))
    whole = [engine.call("ones", shape, dtype=dtypes.int64) for shape in ((30, 40), (40, 50))]
    with pytest.raises(TimeExceeded):
        engine.call("matmul", *whole)
    row = engine.call("expand", engine.call("ones", (1, 40)), (30, 40))
    with pytest.raises(TimeExceeded):
        engine.call("matmul", row, engine.call("ones", (40, 50)))


def test_ordinary_broadcasting_stays_cheap() -> None:
    engine = Engine()
    bias = engine.call("expand", engine.call("ones", (1, 512)), (4096, 512))
    assert engine.call("add", bias, engine.call("ones", (4096, 512))).shape == (4096, 512)
    heads = engine.call("expand", engine.call("ones", (1, 64, 64)), (8, 64, 64))
    assert engine.call("matmul", heads, heads).shape == (8, 64, 64)


@pytest.mark.parametrize(("name", "more"), [("split", (1,)), ("chunk", (1 << 44,)), ("unbind", ())])
def test_an_expanded_tensor_is_not_taken_apart_into_any_number_of_views(name: str, more: tuple[Any, ...]) -> None:
    engine = Engine()
    wide = engine.call("expand", engine.call("ones", (1,)), (1 << 44,))
    with pytest.raises(LimitExceeded, match=name):
        engine.call(name, wide, *more)
