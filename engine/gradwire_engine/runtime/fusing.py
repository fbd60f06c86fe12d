"""What a run of elementwise ops is to whoever computes it in one pass over memory.

Plans find the runs and describe them by these words; the compiled kernels put the function that computes one into
:data:`MACHINES` when they are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final, NamedTuple

OPERATIONS: Final = (
    "add", "subtract", "multiply", "divide", "negate", "sqrt", "relu", "cut", "leak", "pass_above", "tanh_slope",
    "sigmoid_slope", "tanh", "sigmoid", "silu", "silu_slope", "gelu_by_erf", "gelu_by_tanh", "gelu_slope_by_erf",
    "gelu_slope_by_tanh",
)  # fmt: skip
"""What a step of a run may be. Each is what an op's own kernel computes, to the last bit."""


class Layout(NamedTuple):
    """How an array lies in memory; strides in bytes, the dtype by NumPy's character."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class RunStep(NamedTuple):
    """One step of a run: ``reads`` are numbers of slots, which are first the arrays, then the numbers, then the
    results of the steps before."""

    operation: str
    reads: tuple[int, ...]


class Run(NamedTuple):
    """Elementwise steps whose results have one layout.

    Attributes:
        out: the layout of every result.
        arrays: the layouts of the arrays read, which broadcast to the result's shape.
        numbers: how many numbers are read.
        steps: in order.
        kept: the steps whose results are needed afterwards, in the order in which they are returned.
    """

    out: Layout
    arrays: tuple[Layout, ...]
    numbers: int
    steps: tuple[RunStep, ...]
    kept: tuple[int, ...]


MACHINES: Final[dict[str, Callable[[Run], Callable[..., Any]]]] = {}
"""By kind of device, what makes a function of a run. That takes the arrays and the numbers, and returns what is kept:
an array, or several."""


def order_of(layout: Layout) -> tuple[int, ...] | None:
    """The dimensions from the slowest to the fastest; ``None`` where the elements do not fill memory without gaps."""
    dims = range(len(layout.shape))
    order = tuple(sorted(dims, key=lambda d: (layout.shape[d] == 1, -layout.strides[d], d)))
    step = prod(layout.shape) * _SIZES[layout.dtype]
    for d in order:
        if layout.shape[d] != 1:
            step //= layout.shape[d]
            if layout.strides[d] != step:
                return None
    return order


_SIZES: Final = {"f": 4, "d": 8}


def walk(out: Layout, order: tuple[int, ...], operand: Layout) -> tuple[tuple[int, int], ...]:
    """How to reach an operand's elements in the order in which the result lies in memory.

    Returns:
        (extent, stride in elements) from the slowest dimension to the fastest, as few as possible; one pair with the
        stride 1 for an operand that lies as the result does.
    """
    lead = len(out.shape) - len(operand.shape)
    size = _SIZES[operand.dtype]
    found: list[tuple[int, int]] = []
    for d in order:
        extent = out.shape[d]
        if extent == 1:
            continue
        stride = 0 if d < lead or operand.shape[d - lead] == 1 else operand.strides[d - lead] // size
        if found and found[-1][1] == stride * extent:
            found[-1] = (found[-1][0] * extent, stride)
        else:
            found.append((extent, stride))
    return tuple(found) or ((1, 1),)
