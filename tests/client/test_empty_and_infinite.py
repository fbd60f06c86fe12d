"""Losses, tables and activations in corner cases: no elements, infinities, offsets that end early."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.side_by_side import Claims, name_of, same

claim = Claims()


@claim
def nll_loss_of_no_samples(t: Any) -> Any:
    found = []
    for shape in ((0, 3), (2, 3, 0, 7), (0, 3, 4), (2, 3, 0)):
        for reduction in ("mean", "sum", "none"):
            x = t.zeros(shape, requires_grad=True)
            target = t.zeros((shape[0], *shape[2:]), dtype=t.int64)
            loss = t.nn.functional.nll_loss(x, target, reduction=reduction)
            loss.sum().backward()
            found.append((loss, x.grad))
    return found


@claim
def margins_of_no_samples(t: Any) -> Any:
    x = t.zeros(0, 10, requires_grad=True)
    t.nn.MultiMarginLoss()(x, t.zeros(0, dtype=t.int64)).backward()
    return x.grad


@claim
def softsign_at_infinity(t: Any) -> Any:
    x = t.tensor([math.inf, -math.inf, math.nan, 1.0, -2.0, 0.0], requires_grad=True)
    y = t.nn.functional.softsign(x)
    (gradient,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = t.autograd.grad(gradient[3:].sum(), x)
    return y, gradient, second[3:]


@claim
def bags_whose_offsets_end_early(t: Any) -> Any:
    found = []
    for mode in ("sum", "mean", "max"):
        table = t.arange(12.0).reshape(4, 3).requires_grad_()
        indices, offsets = t.tensor([0, 1, 2, 3, 1]), t.tensor([0, 2, 4])
        bags = t.nn.functional.embedding_bag(indices, table, offsets, mode=mode, include_last_offset=True)
        bags.sum().backward()
        found.append((bags, table.grad if mode != "sum" else None))  # PyTorch's is made of memory that it never wrote
    return found


@claim
def no_bags(t: Any) -> Any:
    table = t.arange(12.0).reshape(4, 3).requires_grad_()
    bags = t.nn.functional.embedding_bag(t.tensor([0, 1]), table, t.tensor([0]), mode="mean", include_last_offset=True)
    bags.sum().backward()
    return bags, table.grad


@claim
def offsets_that_fall(t: Any) -> Any:
    table, indices = t.ones(4, 3), t.tensor([0, 1, 2])
    return t.nn.functional.embedding_bag(indices, table, t.tensor([0, 3, 1]), mode="sum", include_last_offset=True)


@claim
def unravel_index_of_floats(t: Any) -> Any:
    return t.unravel_index(t.tensor([1.0]), (2, 3))


@claim
def unravel_index_of_bools(t: Any) -> Any:
    return t.unravel_index(t.tensor([True]), (2, 3))


@claim
def unravel_index_of_a_negative_extent(t: Any) -> Any:
    return t.unravel_index(t.tensor([1]), (-2, 3))


@claim
def lbfgs_that_never_ends(t: Any) -> Any:
    x = t.ones(3, requires_grad=True)
    optimizer = t.optim.LBFGS([x], tolerance_grad=-math.inf, max_iter=5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return x


@claim
def medians_of_no_elements(t: Any) -> Any:
    dtypes = (t.int8, t.uint8, t.int16, t.int32, t.int64, t.float16, t.float64)
    return [(t.median(t.zeros(0, dtype=d)), t.nanmedian(t.zeros(2, 0, dtype=d))) for d in dtypes]


@claim
def logit_beyond_its_bounds(t: Any) -> Any:
    found = []
    for eps in (None, 0.0, 0.3, 0.5, 0.7, 1.0, 1.5, -0.5):
        x = t.tensor([-math.inf, -0.2, 0.0, 0.25, 0.625, 0.75, 1.0, 1.2, math.inf], requires_grad=True)
        y = t.logit(x, eps)
        found.append((y, t.autograd.grad(y.sum(), x)))
    return found


@claim
def the_slope_of_logit_at_a_nan(t: Any) -> Any:
    found = []
    for eps in (None, 0.0, 0.3, 0.7, -0.5):
        x = t.tensor([0.5, math.nan], requires_grad=True)
        found.append(t.autograd.grad(t.logit(x, eps).sum(), x))
    return found


@claim
def block_diagonals_with_one_number(t: Any) -> Any:
    number = t.tensor(1 + 2j)
    small = t.ones(2, dtype=t.int32)
    return [
        t.block_diag(t.ones(2, 2), number), t.block_diag(t.ones(2, dtype=t.float64), number),
        t.block_diag(small, t.tensor(3)), t.block_diag(small, t.tensor(0.5, dtype=t.float64)),
        t.block_diag(t.tensor(0.5), t.tensor(0.5, dtype=t.float64)),
    ]  # fmt: skip


@pytest.mark.parametrize("what", list(claim), ids=name_of)
def test_it_comes_out_as_in_pytorch(session: Any, what: Any) -> None:
    same(what)
