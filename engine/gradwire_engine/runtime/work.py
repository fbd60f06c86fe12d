"""How much work an op is, from what is known before it runs; what is too much is refused.

An op declares its cost in steps (:mod:`gradwire_protocol.costs`). A machine of 20 billion steps a second needs five
seconds for 100 billion.

Memory bounds how many elements an ordinary operand has. It does not bound those of an operand whose elements share
memory (``expand``, overlapping ``as_strided``): :data:`SHARED` is what each of these costs. Products that BLAS does not
compute take :data:`SLOW` times their steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from gradwire_protocol.costs import OpCall, numel
from gradwire_protocol.dtypes import FLOATING
from gradwire_protocol.errors import TimeExceeded
from gradwire_protocol.meta import Inference, Meta
from gradwire_protocol.table import Op

from .memory import MemoryAccount

SHARED: Final = 200
"""Steps for an element that has no memory of its own. An array library passes over a nanosecond's worth of elements
one by one, so the default limit allows about a minute of them."""

SLOW: Final = 20
"""How many times the steps of BLAS the loops take that array libraries have for integers, and for matrices whose
elements share memory."""


def _held(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Places in memory that elements of this layout can occupy, at most as many as there are elements."""
    reach = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, stride, strict=True))
    return min(prod(shape), reach)


def shared(tensor: Meta) -> int:
    """Elements of a tensor beyond the places in memory that it occupies."""
    return numel(tensor) - _held(tensor.shape, tensor.stride) if tensor.numel > 0 else 0


def _blas_computes(matrix: Meta) -> bool:
    rows = matrix.shape[-2:], matrix.stride[-2:]
    return matrix.dtype.category >= FLOATING and (matrix.numel <= 0 or _held(*rows) == prod(rows[0]))


def steps(op: Op, values: list[Any], inferred: Inference) -> int:
    """How many steps an op takes; ``values`` are those that its rule saw."""
    call = OpCall(op.positions, values, inferred.outs)
    cost, metas = op.cost, call.metas
    count = call.elements if cost is None else max(cost.steps(call), 0)
    if cost is not None and cost.product and not all(map(_blas_computes, metas)):
        count *= SLOW
    return count + SHARED * sum(map(shared, metas))


def check(
    op: Op, values: list[Any], inferred: Inference, account: MemoryAccount, count: int | None = None
) -> int | None:  # fmt: skip
    """Check that an op is no more work than it may be. Returns its steps, where there is a limit.

    Args:
        count: its steps, where they are known.

    Raises:
        LimitExceeded: when already its results are too large.
        TimeExceeded: naming the work, the limit and its setting.
    """
    most = account.limits.max_op_work
    if not most or inferred.offsets is not None:
        return None
    if count is None:
        count = steps(op, values, inferred)
    if count > most:
        account.check_op(op.name, inferred.outs, inferred.scratch)
        check_steps(op.name, count, most)
    return count


def check_steps(name: str, count: int, most: int) -> None:
    """Check a count that is known.

    Raises:
        TimeExceeded: naming the work, the limit and its setting.
    """
    if most and count > most:
        raise TimeExceeded(
            f"{name} needs {count:,} units of work; the limit of an op is {most:,} (GRADWIRE_MAX_OP_WORK)",
            setting="GRADWIRE_MAX_OP_WORK", limit=most, value=count,
        )  # fmt: skip
