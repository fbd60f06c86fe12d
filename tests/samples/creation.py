"""Samples of creation functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.samples import ALL, COMPLEXES, FLOATS, INTS, REALS, Make, Sample, samples

from .copying import memory_format, orders
from .pointwise import Samplings, one

OWN = ("float32",)
INF, NAN = float("inf"), float("nan")


@samples("zeros", "ones", dtypes=ALL)
def sized(make: Make) -> Samplings:
    yield Sample((2, 3), dtype=make.dtype)
    yield Sample((), dtype=make.dtype)
    yield Sample((0, 2), dtype=make.dtype)
    yield Sample((2,))
    yield Sample((2, -1)).fails()


def _empty(size: Any, dtype: Any = None, channels_last: bool = False) -> torch.Tensor:
    order = torch.channels_last if channels_last else torch.contiguous_format
    return torch.empty(size, dtype=dtype, memory_format=order).zero_()


@samples("empty", ref=_empty, dtypes=ALL)
def empty(make: Make) -> Samplings:
    yield Sample((2, 3), dtype=make.dtype)
    yield Sample((2,))
    yield Sample((2, 3, 2, 4), dtype=make.dtype, channels_last=True)
    yield Sample((2, 3), dtype=make.dtype, channels_last=True).fails()


@samples("full", dtypes=ALL)
def full(make: Make) -> Samplings:
    yield Sample((2, 3), 2)
    yield Sample((2,), 2.5)
    yield Sample((2,), True)
    yield Sample((2,), 1 + 2j)
    yield Sample((), 3, dtype=make.dtype)
    yield Sample((2,), 1.5, dtype=make.dtype)
    yield Sample((2,), 1j, dtype=make.dtype).expecting(not make.is_complex and not make.is_bool)
    if make.is_int and make.dtype is not torch.int64:
        yield Sample((2,), 1 << 40, dtype=make.dtype).fails()
    yield Sample((2,), -1, dtype=make.dtype)


def in_order(make_like: Any) -> Any:
    """The oracle with a memory order as the table's ops take it."""

    def made(x: torch.Tensor, *args: Any, row_major: bool = False, channels_last: bool = False, **named: Any) -> Any:
        return make_like(x, *args, memory_format=memory_format(x, row_major, channels_last), **named)

    return made


@samples("zeros_like", ref=in_order(torch.zeros_like), dtypes=ALL)
@samples("ones_like", ref=in_order(torch.ones_like), dtypes=ALL)
def like(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
        yield Sample(x, dtype=torch.int32)
    yield from orders(make)


@samples("empty_like", ref=in_order(torch.zeros_like), dtypes=ALL)
def empty_like(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x)
    yield from orders(make)


@samples("full_like", ref=in_order(torch.full_like), dtypes=ALL)
def full_like(make: Make) -> Samplings:
    for x in one(make):
        yield Sample(x, 2)
    yield Sample(make(2, 3, 2, 4), 2, channels_last=True)
    yield Sample(make(2, 3), 1.5)
    yield Sample(make(2, 3), 1.5, dtype=torch.float64)
    yield Sample(make(2), 1j).expecting(not make.is_complex and not make.is_bool)


@samples("arange", dtypes=(*INTS, *REALS))
def arange(make: Make) -> Samplings:
    yield Sample(0, 5, dtype=make.dtype)
    yield Sample(2, 11, 3, dtype=make.dtype)
    yield Sample(0.5, 3.7, dtype=make.dtype)
    yield Sample(9, 1, -2, dtype=make.dtype)
    yield Sample(3, 3, dtype=make.dtype)


@samples("arange", dtypes=OWN)
def arange_of_its_own_dtype(make: Make) -> Samplings:
    yield Sample(0, 5)
    yield Sample(0, 5.0)
    yield Sample(0, 1, 0.3)
    yield Sample(0, 1, 0.1)
    yield Sample(5, 0, -0.7)
    yield Sample(0, 5, -1).fails()
    yield Sample(0, 5, 0).fails()
    yield Sample(0, INF).fails()
    yield Sample(0, NAN).fails()
    yield Sample(0, 1j).fails()
    yield Sample(0, 3, 0.5, dtype=torch.int64).fails()
    yield Sample(True)


@samples("arange", ref=lambda n, **kwargs: torch.arange(n, **kwargs), dtypes=OWN)
def arange_to(make: Make) -> Samplings:
    yield Sample(4)
    yield Sample(4.5)
    yield Sample(4, dtype=torch.float64)


@samples("linspace", dtypes=(*INTS, *REALS, *COMPLEXES), tol=(1e-5, 1e-6))
def linspace(make: Make) -> Samplings:
    for start, end, steps in ((0, 10, 5), (0, 10, 4), (3, 3, 3), (9, 1, 6), (0, 1, 1), (0, 1, 0)):
        yield Sample(start, end, steps, dtype=make.dtype)
    yield Sample(0, 1, -1).fails()
    yield Sample(0.5, 2.5, 7)
    if make.is_complex:
        yield Sample(0, 1j, 5)
        yield Sample(1 - 1j, 2j, 4, dtype=make.dtype)
    else:
        yield Sample(0, 1j, 5, dtype=make.dtype).fails()


@samples("logspace", dtypes=(*FLOATS, "float16", "int64"), tol=(1e-5, 1e-6))
def logspace(make: Make) -> Samplings:
    yield Sample(0, 2, 3, dtype=make.dtype)
    yield Sample(0, 3, 4, 2.0, dtype=make.dtype)
    yield Sample(0, 1, -1).fails()


@samples("eye", dtypes=ALL)
def eye(make: Make) -> Samplings:
    yield Sample(3, dtype=make.dtype)


@samples("eye", dtypes=OWN, ref=lambda n, m=None, **kwargs: torch.eye(n, n if m is None else m, **kwargs))
def eye_of_other_shapes(make: Make) -> Samplings:
    yield Sample(3, 2)
    yield Sample(2, 4)
    yield Sample(0)
    yield Sample(-1).fails()


@samples("tril_indices", "triu_indices", dtypes=("int64", "int32"))
def triangles(make: Make) -> Samplings:
    for row, col in ((3, 3), (4, 2), (2, 4), (0, 3), (3, 0)):
        for offset in (-5, -2, -1, 0, 1, 2, 5):
            yield Sample(row, col, offset, dtype=make.dtype)
    yield Sample(-1, 2).fails()


@samples("upload", ref=None, check=lambda results, data, dtype, size, *_: _check_upload(results[0], data))
def upload(make: Make) -> Samplings:
    from tests.engine.test_parity import to_numpy

    values = to_numpy(make(2, 3, requires_grad=False))
    yield Sample(values.tobytes(), make.dtype, (2, 3))
    yield Sample(memoryview(values.tobytes()), make.dtype, (3, 2), "cpu")
    yield Sample(values, make.dtype, (2, 3))
    yield Sample(values.tobytes(), make.dtype, (2, 4)).fails()


def _check_upload(result: torch.Tensor, data: Any) -> None:
    from tests.engine.test_parity import to_numpy

    given = data.tobytes() if isinstance(data, np.ndarray) else bytes(data)
    assert to_numpy(result).tobytes() == given
