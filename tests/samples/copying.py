"""Samples of copies and of writes of values."""

from __future__ import annotations

from typing import Any

import torch

from tests.samples import ALL, Make, Sample, samples

from .pointwise import Samplings, one


def memory_format(x: torch.Tensor, row_major: bool, channels_last: bool) -> torch.memory_format:
    if channels_last:
        return torch.channels_last if x.ndim == 4 else torch.channels_last_3d
    return torch.contiguous_format if row_major else torch.preserve_format


def _cloned(x: torch.Tensor, row_major: bool = False, channels_last: bool = False) -> torch.Tensor:
    return x.clone(memory_format=memory_format(x, row_major, channels_last))


def orders(make: Make) -> Samplings:
    """Tensors whose memory order is changed, or kept where it is the one that is asked for."""
    yield Sample(make(2, 3, 2, 4), channels_last=True)
    yield Sample(make(2, 3, 2, 2, 4), channels_last=True)
    yield Sample(make(2, 3, 2, 4, transposed=True), channels_last=True)
    yield Sample(make(2, 1, 1, 4), channels_last=True)
    yield Sample(make(3, 2, transposed=True), row_major=True)
    yield Sample(make(2, 3), channels_last=True).fails()


@samples("clone", ref=_cloned)
def clone(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    yield Sample(make(3, 2, transposed=True), True)
    yield Sample(make(1, 3, transposed=True), True)
    yield Sample(make(1, 3, transposed=True))
    yield from orders(make)


@samples("contiguous")
def contiguous(make: Make) -> Samplings:
    yield Sample(make(3, 2, transposed=True))
    yield Sample(make(4, 6)[::2, 1::2])
    yield Sample(make(3, 1).expand(3, 2))
    yield Sample(make(2, 3).detach())


def _to(
    x: torch.Tensor, dtype: Any = None, device: Any = None, copy: bool = False, row_major: bool = False,
    channels_last: bool = False,
) -> torch.Tensor:  # fmt: skip
    order = memory_format(x, row_major, channels_last)
    return x.to(dtype=dtype or x.dtype, copy=copy or row_major or channels_last, memory_format=order)


@samples("to", ref=_to)
def to(make: Make) -> Samplings:
    for name in ALL:
        wanted = getattr(torch, name)
        if wanted is not make.dtype:
            # What a negative float becomes in an unsigned type is nobody's promise.
            low = 0 if name == "uint8" else None
            for x in one(make, low):
                yield Sample(x, wanted)
    yield Sample(make(2, 3), copy=True)
    yield Sample(make(3, 2, transposed=True), make.dtype, "cpu", True)
    yield Sample(make(2, 3, 2, 4), torch.float64 if make.is_float else make.dtype, channels_last=True)
    yield from orders(make)


def inplace(name: str) -> Any:
    """The oracle of an op that only exists in place: it writes into a clone, which keeps the graph."""
    method = getattr(torch.Tensor, name)
    return lambda x, *args, **kwargs: method(x, *args, **kwargs)


@samples("copy_", ref=inplace("copy_"))
def copy_(make: Make) -> Samplings:
    for x in one(make.plain()):
        if x.stride()[-1:] != (0,):
            yield Sample(x, make(*x.shape))
    yield Sample(make.plain()(2, 3), make(3))
    yield Sample(make.plain()(3, 2), make(3, 2, transposed=True))
    yield Sample(make.plain()(2, 3), make(2, 3, dtype="float64" if make.is_float else "int32"))
    yield Sample(make.plain()(2), make(2, dtype="complex64", requires_grad=False))
    yield Sample(make.plain()(2), make(3)).fails()
    yield Sample(make.plain()(3), make(2, 3)).fails()


@samples("fill_", ref=inplace("fill_"))
def fill_(make: Make) -> Samplings:
    for x in one(make.plain()):
        if x.stride()[-1:] != (0,):
            yield Sample(x, 2)
    yield Sample(make.plain()(2), 1.5)
    yield Sample(make.plain()(2), make())
    yield Sample(make.plain()(2, 3), torch.tensor(2))
    yield Sample(make.plain()(2), make(2)).fails()
    yield Sample(make.plain()(2), 1j).expecting(not make.is_complex and not make.is_bool)


@samples("fill_", ref=inplace("fill_"), dtypes=("uint8", "int8", "int32"))
def fill_with_too_much(make: Make) -> Samplings:
    yield Sample(make(2), 1 << 40).fails()
    yield Sample(make(2), float("nan")).fails()


@samples("zero_", ref=inplace("zero_"))
def zero_(make: Make) -> Samplings:
    for x in one(make.plain()):
        if x.stride()[-1:] != (0,):
            yield Sample(x)
