"""A plan holds for every number and value of its structure: what a kernel returns has the same form for all of them.

A plan is made with the numbers and values of a sample and runs with others; the tape is the oracle.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pytest
import torch

from gradwire_protocol.errors import GradwireError
from gradwire_protocol.table import TABLE, Kind, Op
from tests.hostile_arguments import over_tensors
from tests.samples import Sample, load

from .planned_calls import Call, Side

COMPILED: Final = bool(os.environ.get("GRADWIRE_TEST_COMPILED"))
DTYPES: Final = ("bool", "int64", "float32", "complex64")
MOST: Final = 3
"""Samples of a generator in a dtype."""
INTS: Final = (0, 1, -1, 2, 3, 1 << 40)
FLOATS: Final = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, float("inf"), float("nan"), 1e300)
OTHERS: Final[dict[type, tuple[Any, ...]]] = {
    bool: (True, False), int: INTS, float: FLOATS, list: ([0.0, 0.0], [1.0, 0.0], [0.5, -1.0])
}  # fmt: skip
"""By the type of a number in a frame; a complex one is a list."""
EVERY_SECOND: Final = (0.0, float("nan"), 1.0, float("inf"), -1.0)
NUMBERS: Final = (Kind.SCALAR, Kind.POSITION, Kind.OPERAND)
"""Kinds of parameters that take a number as data."""


def takes_numbers(op: Op) -> bool:
    return any(param.kind in NUMBERS for param in op.params)


CALLED: Final = [name for name, op in sorted(TABLE.items()) if not (op.internal or op.control)]


def has_number(op: Op, sample: Sample) -> bool:
    values = op.bind(list(sample.args), dict(sample.kwargs))
    return any(
        param.kind in NUMBERS and isinstance(value, (int, float, complex)) and value != param.default
        for param, value in zip(op.params, values, strict=True)
    )


def one_of_each(op: Op, dtypes: Sequence[str], numbered: bool) -> Iterator[tuple[str, Sample]]:
    """From each generator and for each dtype, one sample of each choice of parameters, as it is and transposed.
    Tensors of no dimension are another choice. ``numbered``: only samples with a number that is data."""
    for samples in load().get((op.base or op).name, []):
        for dtype in (dtype for dtype in dtypes if dtype in samples.dtypes):
            seen: set[Any] = set()
            for sample in samples.draw(dtype, 0):
                kinds = (*((type(a), getattr(a, "ndim", 1) == 0) for a in sample.args), *sample.kwargs)
                if numbered and not has_number(op, sample):
                    continue
                if not sample.expects_error and len(seen) < MOST and kinds not in seen:
                    seen.add(kinds)
                    yield dtype, sample
                    if any(t.ndim > 1 for t in sample.args if isinstance(t, torch.Tensor)):
                        yield dtype, changed(sample, transposed)


def changed(sample: Sample, change: Any) -> Sample:
    """The sample with its tensors replaced; one that is used twice stays one."""
    found: dict[int, torch.Tensor] = {}

    def once(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in found:
            found[id(tensor)] = change(tensor)
        return found[id(tensor)]

    made = Sample(*[over_tensors(once, a) for a in sample.args])
    made.kwargs = {name: over_tensors(once, value) for name, value in sample.kwargs.items()}
    return made


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in column-major order."""
    order = tuple(reversed(range(tensor.ndim)))
    return tensor.detach().permute(order).contiguous().permute(order).requires_grad_(tensor.requires_grad)


def special(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with zeros, ones, NaNs and infinities among its values, in the same layout."""
    flat = tensor.detach().reshape(-1).clone()
    if not (tensor.is_floating_point() or tensor.is_complex()) or not flat.numel() or 0 in tensor.stride():
        return tensor
    for i in range(flat.numel() % 2, flat.numel(), 2):
        flat[i] = EVERY_SECOND[i // 2 % len(EVERY_SECOND)]
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return made.copy_(flat.reshape(tensor.shape)).requires_grad_(tensor.requires_grad)


def zero(tensor: torch.Tensor) -> torch.Tensor:
    if not (tensor.is_floating_point() or tensor.is_complex()) or 0 in tensor.stride():
        return tensor
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return made.zero_().requires_grad_(tensor.requires_grad)


def replaced(numbers: list[Any]) -> list[list[Any]]:
    return [
        [*numbers[:i], other, *numbers[i + 1 :]] for i, number in enumerate(numbers) for other in OTHERS[type(number)]
    ]


def calls(op: Op, dtypes: Sequence[str], orders: int, numbered: bool = False) -> Iterator[tuple[str, Sample, Call]]:
    for dtype, sample in one_of_each(op, dtypes, numbered):
        try:
            yield dtype, sample, Call(op, sample, orders)
        except (GradwireError, LookupError):
            continue  # refused in this dtype; a payload


def held(call: Call, numbers: list[Any]) -> Side | None:
    """A session with a plan of this call."""
    side = Side(by_plan=True, compiled=COMPILED)
    side.apply(call, numbers)
    return side if side.hold() else None


@pytest.mark.parametrize("name", [name for name in CALLED if takes_numbers(TABLE[name])])
def test_a_plan_holds_for_all_numbers(name: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype, sample, call in calls(TABLE[name], DTYPES, orders=1, numbered=True):
            if not call.numbers:
                continue
            others = replaced(call.numbers)
            tape = Side(compiled=COMPILED)
            expected = [tape.apply(call, numbers) for numbers in others]
            for captured in (call.numbers, others[0]):
                side = held(call, captured)
                for numbers, wanted in zip(others if side else (), expected, strict=False):
                    where = f"{name}, {dtype}: {sample!r}, captured with {captured}, run with {numbers}"
                    try:
                        found = side.apply(call, numbers)
                    except AssertionError as unlike:
                        raise AssertionError(f"{where}: {unlike}") from None
                    assert found == wanted, where


@pytest.mark.parametrize("name", [name for name in CALLED if TABLE[name].base is None and not TABLE[name].dynamic])
def test_a_plan_holds_for_all_values(name: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _, sample, call in calls(TABLE[name], ("float32",), orders=2):
            if (side := held(call, call.numbers)) is None:
                continue
            for change in (special, zero):
                operands = [change(t) for t in call.operands]
                expected = Side(compiled=COMPILED).apply(call, call.numbers, operands)
                try:
                    found = side.apply(call, call.numbers, operands)
                except AssertionError as unlike:
                    raise AssertionError(f"{name}, {change.__name__}: {sample!r}: {unlike}") from None
                assert found == expected, f"{name}, {change.__name__}: {sample!r}"
