"""Samples of random numbers; the checks are range, mean and repeatability."""

from __future__ import annotations

from typing import Any

import torch

from tests.samples import BOOL, COMPLEXES, FLOATS, HALVES, INTS, REALS, Make, Sample, samples

from .pointwise import Samplings, one

CONTINUOUS = (*REALS, *COMPLEXES)
MANY = (50, 60)


def _mean_near(wanted: float, spread: float, low: float = -float("inf"), high: float = float("inf")) -> Any:
    """A check that many numbers have this mean, within five standard errors, and lie in [low, high)."""

    def check(results: list[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        value = results[0]
        parts = torch.view_as_real(value) if value.is_complex() else value.double()
        if value.numel() >= 1000:
            assert abs(parts.mean() - wanted) < 5 * spread / value.numel() ** 0.5 + 0.01, parts.mean()
        if value.numel():
            assert parts.min() >= low
            assert parts.max() < high

    return check


@samples("rand", ref=None, dtypes=CONTINUOUS, check=_mean_near(0.5, 0.29, 0, 1))
def rand(make: Make) -> Samplings:
    yield Sample(MANY, dtype=make.dtype)
    yield Sample((), dtype=make.dtype)
    yield Sample((0, 3), dtype=make.dtype)
    yield Sample((3,))
    yield Sample((3,), dtype=torch.int64).fails()
    yield Sample((-1,)).fails()


@samples("randn", ref=None, dtypes=CONTINUOUS, check=_mean_near(0, 1))
def randn(make: Make) -> Samplings:
    yield Sample(MANY, dtype=make.dtype)
    yield Sample((5,), dtype=make.dtype)
    yield Sample((0, 3), dtype=make.dtype)
    yield Sample((3,), dtype=torch.int64).fails()


@samples("rand_like", ref=None, dtypes=CONTINUOUS, check=_mean_near(0.5, 0.29, 0, 1))
@samples("randn_like", ref=None, dtypes=CONTINUOUS, check=_mean_near(0, 1))
def like(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    yield Sample(make(2, 3, 2, 4), channels_last=True)
    yield Sample(make(*MANY))
    yield Sample(make(2, dtype="int64")).fails()


@samples("randint", ref=None, dtypes=(*INTS, *REALS), check=_mean_near(4, 2, 1, 8))
def randint(make: Make) -> Samplings:
    yield Sample(1, 8, MANY, dtype=make.dtype)
    yield Sample(1, 8, (3,))
    yield Sample(3, 3, (3,)).fails()


@samples("randint", ref=None, dtypes=("uint8", "int8", *BOOL))
def randint_too_wide(make: Make) -> Samplings:
    yield Sample(0, 300, (3,), dtype=make.dtype).fails()
    yield Sample(0, 2, (3,), dtype=make.dtype)


@samples("randint_like", ref=None, dtypes=(*INTS, *REALS), check=_mean_near(4, 2, 1, 8))
def randint_like(make: Make) -> Samplings:
    yield Sample(make(*MANY), 1, 8)
    yield Sample(make(3, 2, transposed=True), 1, 8)


@samples(
    "randperm", ref=None, dtypes=("int64", "int32", "float32"),
    check=lambda results, n, *_, **__: torch.testing.assert_close(
        results[0].sort().values, torch.arange(n, dtype=results[0].dtype)
    ),
)  # fmt: skip
def randperm(make: Make) -> Samplings:
    yield Sample(100, dtype=make.dtype)
    yield Sample(0, dtype=make.dtype)
    yield Sample(-1).fails()


@samples("normal", ref=None, dtypes=REALS, check=_mean_near(3, 2))
def normal(make: Make) -> Samplings:
    yield Sample(3.0, 2.0, MANY, dtype=make.dtype)
    yield Sample(torch.full(MANY, 3, dtype=make.dtype, requires_grad=True), 2)
    yield Sample(3.0, torch.full(MANY, 2, dtype=make.dtype))
    yield Sample(torch.full(MANY, 3, dtype=make.dtype), torch.full((60,), 2, dtype=make.dtype, requires_grad=True))
    yield Sample(0.0, -1.0, (3,)).fails()
    yield Sample(0.0, torch.tensor([1, -1], dtype=make.dtype)).fails()
    yield Sample(0.0, 1.0).fails()


@samples("bernoulli", ref=None, dtypes=REALS, check=_mean_near(0.25, 0.5, 0, 1.01))
def bernoulli(make: Make) -> Samplings:
    yield Sample(torch.full(MANY, 0.25, dtype=make.dtype, requires_grad=True))
    yield Sample(make(*MANY), 0.25)
    yield Sample(make(3, 2, transposed=True), 0.25)
    yield Sample(make(3), 1.5).fails()
    yield Sample(torch.tensor([0.5, 1.5], dtype=make.dtype)).fails()
    yield Sample(make(3, dtype="int64")).fails()


def _check_drawn(results: list[torch.Tensor], weights: torch.Tensor, count: int, replacement: bool = False) -> None:
    drawn = results[0]
    assert drawn.min() >= 0
    assert drawn.max() < weights.shape[-1]
    if not replacement:
        assert all(len(set(row)) == count for row in drawn.reshape(-1, count).tolist())
    assert (torch.gather(weights, -1, drawn) > 0).all() or count > int((weights > 0).sum(-1).min())
    if count >= 1000:
        share = (drawn == weights.shape[-1] - 1).double().mean()
        wanted = (weights[..., -1] / weights.sum(-1)).double().mean()
        assert abs(share - wanted) < 0.1


@samples("multinomial", ref=None, dtypes=REALS, check=_check_drawn)
def multinomial(make: Make) -> Samplings:
    yield Sample(make(5, low=0.1), 3)
    yield Sample(make(4, 5, low=0.1), 5)
    yield Sample(make(5, low=0.1), 2000, replacement=True)
    yield Sample(make(3, 5, low=0.1), 2000, True)
    yield Sample(torch.tensor([0.0, 1.0, 0.0, 3.0], dtype=make.dtype), 50, True)
    yield Sample(torch.tensor([0.0, 1.0, 0.0, 3.0], dtype=make.dtype), 2)
    yield Sample(make(5, low=-3, high=-1), 2).fails()
    yield Sample(torch.zeros(3, dtype=make.dtype), 1).fails()
    yield Sample(make(5, low=0.1), 6).fails()
    yield Sample(make(5, low=0.1), 0).fails()
    yield Sample(make(2, 2, 2, low=0.1), 1).fails()


@samples("uniform_", "normal_", ref=None, dtypes=CONTINUOUS)
@samples("exponential_", "random_", ref=None, dtypes=REALS)
@samples("bernoulli_", ref=None, dtypes=(*BOOL, *INTS, *REALS))
def in_place(make: Make) -> Samplings:
    plain = make.plain()
    yield Sample(plain(2, 3))
    yield Sample(plain(3, 2, transposed=True))
    yield Sample(plain(4, 6)[::2])


@samples("log_normal_", "cauchy_", ref=None, dtypes=REALS)
def continuous_in_place(make: Make) -> Samplings:
    plain = make.plain()
    yield Sample(plain(2, 3))
    yield Sample(plain(3, 2, transposed=True), 0.5, 1.5)
    yield Sample(plain(2), 0.0, -1.0).fails()
    yield Sample(make(2, dtype="int64")).fails()


@samples("geometric_", ref=None, dtypes=(*INTS, *REALS))
def geometric_(make: Make) -> Samplings:
    plain = make.plain()
    yield Sample(plain(2, 3), 0.3)
    yield Sample(plain(3, 2, transposed=True), 0.9)
    yield Sample(plain(2), 1.5).fails()
    yield Sample(plain(2), 0.0).fails()


@samples("bernoulli_", ref=None, dtypes=FLOATS)
def bernoulli_(make: Make) -> Samplings:
    yield Sample(make.plain()(2, 3), 0.25)
    yield Sample(make.plain()(2, 3), make.plain()(3, low=0, high=1))
    yield Sample(make.plain()(3), make.plain()(2, 3, low=0, high=1)).fails()
    yield Sample(make.plain()(3), 1.5).fails()


@samples("random_", ref=None, dtypes=(*BOOL, *INTS))
def random_(make: Make) -> Samplings:
    yield Sample(make(4))
    yield Sample(make(4), 0, 2)
    yield Sample(make(4), 3, 2).fails()


@samples("uniform_", ref=None, dtypes=HALVES)
def uniform_(make: Make) -> Samplings:
    yield Sample(make.plain()(4), 2.0, 3.0)
    yield Sample(make.plain()(4), 3.0, 2.0).fails()
