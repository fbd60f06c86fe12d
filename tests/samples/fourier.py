"""Samples of the basic Fourier transforms."""

from __future__ import annotations

from typing import Any

import torch

from tests.samples import COMPLEXES, FLOATS, Make, Sample, samples

from .pointwise import Samplings

CODES = {"none": 0, "root": 1, "count": 2}
DIMS: tuple[tuple[int, ...], ...] = ((0,), (-1,), (1,), (0, 1), (2, 0), (0, 1, 2))


def counted(x: torch.Tensor, dim: tuple[int, ...]) -> list[int]:
    """Dimensions counted from the front: torch's primitives take no others."""
    return [d % x.ndim for d in dim]


def _c2c(x: torch.Tensor, dim: Any, scale: str, forward: bool) -> torch.Tensor:
    return torch._fft_c2c(x, counted(x, dim), CODES[scale], forward)


def _r2c(x: torch.Tensor, dim: Any, scale: str, onesided: bool) -> torch.Tensor:
    return torch._fft_r2c(x, counted(x, dim), CODES[scale], onesided)


def _c2r(x: torch.Tensor, dim: Any, scale: str, last_size: int) -> torch.Tensor:
    return torch._fft_c2r(x, counted(x, dim), CODES[scale], last_size)


def operands(make: Make) -> Any:
    yield make(3, 4, 5), DIMS
    yield make(3, 5, 4).permute(2, 0, 1).detach().requires_grad_(), DIMS[:5]
    yield make(6, 4)[::2, 1:].detach().requires_grad_(), ((0,), (1,), (0, 1))
    yield make(1), ((0,),)
    yield make(2), ((0,),)


@samples("fft_c2c", dtypes=COMPLEXES, ref=_c2c)
def complex_numbers(make: Make) -> Samplings:
    for x, dims in operands(make):
        for dim in dims:
            for scale in CODES:
                yield Sample(x, dim, scale, True)
                yield Sample(x, dim, scale, False)
    yield Sample(make(2, 0), (1,), "none", True).fails()


@samples("fft_r2c", dtypes=FLOATS, ref=_r2c)
def real_numbers(make: Make) -> Samplings:
    for x, dims in operands(make):
        for dim in dims:
            for scale in CODES:
                yield Sample(x, dim, scale, True)
        yield Sample(x, dims[0], "none", False)


@samples("fft_c2r", dtypes=COMPLEXES, ref=_c2r)
def to_real_numbers(make: Make) -> Samplings:
    for x, dims in operands(make):
        for dim in dims:
            for scale in CODES:
                most = 2 * x.shape[dim[-1]] - 2
                for size in (most, most + 1):
                    if size > 0:
                        yield Sample(x, dim, scale, size)
    yield Sample(make(3), (0,), "none", 0).fails()


def _overlapping(x: torch.Tensor, step: int, start: int = 0, end: int | None = None, least: float = 0.0) -> Any:
    frames, size = x.shape[-2:]
    length = size + step * (frames - 1)
    signal = sum(torch.nn.functional.pad(x[..., i, :], (i * step, length - size - i * step)) for i in range(frames))
    found = signal[..., start:end]
    if bool((found.abs() <= least).any()) and least:
        raise RuntimeError("too small")
    return found.clone()


@samples("overlap_add", dtypes=(*FLOATS, *COMPLEXES), ref=_overlapping, grad_fn=False)
def overlap_add(make: Make) -> Samplings:
    for step in (1, 2, 5):
        yield Sample(make(4, 3), step)
        yield Sample(make(2, 4, 3), step, 1, -1)
        yield Sample(make(1, 3), step, 2)
    yield Sample(make(2, 3).detach() * 0, 1, 0, None, 1e-11).fails()
