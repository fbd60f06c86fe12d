"""Samples of ``view(dtype)``."""

from __future__ import annotations

import torch

from tests.samples import Sample, samples

DTYPES = ("uint8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "float64", "complex64", "complex128")


@samples("view_dtype", dtypes=DTYPES, ref=lambda x, dtype: x.view(dtype))
def view_dtype(make):
    for wanted in (torch.uint8, torch.int16, torch.float32, torch.float64, torch.complex128):
        yield Sample(make(2, 16), wanted)
        if make.dtype.itemsize <= wanted.itemsize:
            yield Sample(make(16)[:0], wanted)
    yield Sample(make(3, 2), make.dtype)
    yield Sample(make(4, 2, transposed=True), torch.uint8).expecting(make.dtype.itemsize > 1)
    yield Sample(make(), torch.uint8).expecting(make.dtype.itemsize > 1)
    yield Sample(make(3), torch.complex128).expecting(make.dtype is not torch.complex128)
