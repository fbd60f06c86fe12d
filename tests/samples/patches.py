"""Samples of image patches."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

from tests.samples import BOOL, COMPLEXES, FLOATS, HALVES, Sample, samples
from tests.samples.pooling import last


@samples("im2col", dtypes=(*BOOL, *HALVES, *FLOATS, *COMPLEXES), ref=nnf.unfold)
def im2col(make):
    yield Sample(make(2, 3, 5, 4), 2)
    yield Sample(make(2, 3, 5, 6), (3, 2), (1, 2), (1, 0), (2, 1))
    yield Sample(make(3, 5, 4), (2, 2), stride=2)
    yield Sample(make(0, 3, 5, 4), 2)
    yield Sample(make(2, 3, 5, 4, transposed=True), 2, padding=1)


@samples("im2col", dtypes=("float32", "int64"), ref=nnf.unfold)
def im2col_refusals(make):
    yield Sample(make(2, 3, 5, 4), 6).fails()
    yield Sample(make(2, 3, 5, 4), 0).fails()
    yield Sample(make(2, 3, 5, 4), 2, 0).fails()
    yield Sample(make(2, 3, 5, 4), 2, stride=0).fails()
    yield Sample(make(1, 1, 1, 5, 4), 2).fails()
    yield Sample(make(2, 0, 5, 4), 2).fails()


@samples("col2im", dtypes=(*HALVES, *FLOATS, *COMPLEXES), ref=nnf.fold)
def col2im(make):
    yield Sample(make(2, 12, 12), (5, 4), 2)
    yield Sample(make(2, 12, 4), (4, 4), (2, 2), stride=2)
    yield Sample(make(12, 6), (3, 2), 2, padding=(1, 1), stride=(1, 2), dilation=(2, 1))
    yield Sample(make(12, 12), (5, 4), 2)
    yield Sample(make(0, 12, 12), (5, 4), 2)


@samples("col2im", dtypes=("float32", "int64"), ref=nnf.fold)
def col2im_refusals(make):
    yield Sample(make(2, 11, 12), (5, 4), 2).fails()
    yield Sample(make(2, 12, 11), (5, 4), 2).fails()
    yield Sample(make(12), (5, 4), 2).fails()


@samples("pixel_shuffle")
def pixel_shuffle(make):
    yield Sample(make(2, 8, 3, 2), 2)
    yield Sample(make(9, 3, 2), 3)
    yield Sample(make(1, 2, 4, 3, 2), 1)
    yield Sample(last(make(2, 8, 3, 2)), 2)
    yield Sample(make(0, 8, 3, 2), 2).values_only()
    yield Sample(make(2, 7, 3, 2), 2).fails()
    yield Sample(make(3, 2), 1).fails()
    yield Sample(make(2, 8, 3, 2), 0).fails()


@samples("pixel_unshuffle")
def pixel_unshuffle(make):
    yield Sample(make(2, 2, 6, 4), 2)
    yield Sample(make(1, 6, 3), 3)
    yield Sample(last(make(2, 2, 6, 4)), 2)
    yield Sample(make(2, 2, 5, 4), 2).fails()
    yield Sample(make(5, 4), 1).fails()
    yield Sample(make(2, 2, 6, 4), 0).fails()


@samples("channel_shuffle", ref=torch.channel_shuffle)
def channel_shuffle(make):
    yield Sample(make(2, 6, 3, 2), 2)
    yield Sample(make(2, 6, 3, 2), 3)
    yield Sample(make(2, 6, 3), 1)
    yield Sample(last(make(2, 6, 3, 2)), 3)
    yield Sample(make(2, 6, 3, 2), 4).fails()
    yield Sample(make(2, 6), 2).fails()
    yield Sample(make(2, 6, 3, 2), 0).fails()
