"""``ReduceOp``: how the values of several ranks become one."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError, Unsupported


class ReduceOp(Enum):
    """The reductions of collectives. Their values are the names that the op table has for them."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
    PREMUL_SUM = "premul_sum"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # its members are what PyTorch calls so

UNSUPPORTED: Final = frozenset({ReduceOp.PREMUL_SUM})
"""What PyTorch has for NCCL alone, and gradwire does not have."""


def name_of(op: Any) -> str:
    """The reduction's name in the op table.

    Raises:
        ArgumentTypeError: for anything that is no reduction.
        Unsupported: for one that gradwire lacks.
    """
    if not isinstance(op, ReduceOp):
        raise ArgumentTypeError(f"op is a torch.distributed.ReduceOp, not {op!r:.40}")
    if op in UNSUPPORTED:
        raise Unsupported(f"ReduceOp.{op.name} is not supported: multiply the tensors, then reduce with ReduceOp.SUM")
    return op.value
