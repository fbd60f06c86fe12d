"""Type promotion against PyTorch, over every pair of dtypes, every rank and every kind of number.

One difference is known: PyTorch's complex32 does not exist here, so float16 with complex gives complex64.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import DTypeError
from gradwire_protocol.promotion import DEFAULT_FLOAT, Promote, ScalarKind, can_cast, join, promote, result_type

NUMBERS = (True, 3, 2.5, 1 + 2j)
RANKS = (0, 1)
PAIRS = list(itertools.product(dtypes.ALL, dtypes.ALL))


def theirs(dtype: DType) -> torch.dtype:
    return getattr(torch, dtype.name)


def ours(dtype: torch.dtype) -> DType:
    return dtypes.complex64 if dtype is torch.complex32 else dtypes.BY_NAME[str(dtype).removeprefix("torch.")]


def tensor(dtype: DType, rank: int) -> torch.Tensor:
    return torch.ones([2] * rank, dtype=theirs(dtype))


def agree(ask: Callable[[], DType], oracle: Callable[[], torch.dtype], about: Any) -> None:
    """Check that both give the same dtype, or both refuse."""
    try:
        wanted = ours(oracle())
    except RuntimeError:
        with pytest.raises(DTypeError):
            ask()
    else:
        assert ask() is wanted, about


@pytest.mark.parametrize("a", dtypes.ALL, ids=lambda d: d.name)
def test_two_dtypes_join_as_in_pytorch(a: DType) -> None:
    for b in dtypes.ALL:
        agree(partial(join, a, b), partial(torch.promote_types, theirs(a), theirs(b)), (a, b))


@pytest.mark.parametrize("ranks", list(itertools.product(RANKS, RANKS)), ids=str)
@pytest.mark.parametrize("a", dtypes.ALL, ids=lambda d: d.name)
def test_two_tensors_promote_as_in_pytorch(a: DType, ranks: tuple[int, int]) -> None:
    for b in dtypes.ALL:
        oracle = partial(torch.result_type, tensor(a, ranks[0]), tensor(b, ranks[1]))
        agree(partial(result_type, [(a, ranks[0]), (b, ranks[1])]), oracle, (a, b))


@pytest.mark.parametrize("default", [dtypes.float32, dtypes.float64], ids=lambda d: d.name)
@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("a", dtypes.ALL, ids=lambda d: d.name)
def test_a_tensor_and_a_number_promote_as_in_pytorch(a: DType, rank: int, default: DType) -> None:
    torch.set_default_dtype(theirs(default))
    token = DEFAULT_FLOAT.set(default)
    try:
        for number in NUMBERS:
            kind = ScalarKind.of(number)
            assert kind is not None
            agree(partial(result_type, [(a, rank), kind]), partial(torch.result_type, tensor(a, rank), number), number)
    finally:
        DEFAULT_FLOAT.reset(token)
        torch.set_default_dtype(torch.float32)


def test_two_numbers_promote_as_in_pytorch() -> None:
    for a, b in itertools.product(NUMBERS, NUMBERS):
        kinds = [kind for kind in (ScalarKind.of(a), ScalarKind.of(b)) if kind is not None]
        assert result_type(kinds) is ours(torch.result_type(a, b)), (a, b)


@pytest.mark.parametrize("ranks", list(itertools.product(RANKS, RANKS, RANKS)), ids=str)
def test_three_tensors_promote_as_in_pytorch(ranks: tuple[int, int, int]) -> None:
    numeric = [d for d in dtypes.COMPUTED if d is not dtypes.bool_]
    for trio in itertools.product(numeric, numeric, numeric):
        result = torch.addcmul(*[tensor(d, r).to("meta") for d, r in zip(trio, ranks, strict=True)])
        assert result_type(zip(trio, ranks, strict=True)) is ours(result.dtype), trio


def _as_in(op: Any, kind: Promote, a: DType, b: DType) -> None:
    try:
        wanted = op(tensor(a, 1), tensor(b, 1)).dtype
    except (RuntimeError, NotImplementedError):
        return  # an op that PyTorch does not have for these
    assert promote(kind, [(a, 1), (b, 1)])[1] is ours(wanted), (a, b)


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        (torch.add, Promote.DEFAULT), (torch.true_divide, Promote.INT_TO_FLOAT), (torch.eq, Promote.ALWAYS_BOOL),
        (torch.logaddexp, Promote.NO_OPMATH),
    ],
)  # fmt: skip
def test_kinds_of_promotion_of_two_operands(op: Any, kind: Promote) -> None:
    for a, b in PAIRS:
        _as_in(op, kind, a, b)


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        (torch.neg, Promote.DEFAULT), (torch.sin, Promote.INT_TO_FLOAT), (torch.abs, Promote.COMPLEX_TO_FLOAT),
        (torch.isnan, Promote.ALWAYS_BOOL),
    ],
)  # fmt: skip
def test_kinds_of_promotion_of_one_operand(op: Any, kind: Promote) -> None:
    for a in dtypes.ALL:
        _as_in(lambda x, _: op(x), kind, a, a)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_writes_in_place_may_narrow_within_a_category(source: DType, target: DType) -> None:
    assert can_cast(source, target) == torch.can_cast(theirs(source), theirs(target))
