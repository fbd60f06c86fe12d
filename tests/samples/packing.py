"""Samples of packing and padding sequences."""

from __future__ import annotations

import torch
from torch.nn.utils import rnn

from tests.samples import ALL, BOOL, COMPLEXES, FLOATS, HALVES, INTS, Sample, samples

STEPS = (3, 2, 2, 1)


def _pack(x, batch_sizes):
    lengths = [sum(b > k for b in batch_sizes) for k in range(batch_sizes[0])]
    return rnn.pack_padded_sequence(x, torch.tensor(lengths)).data


def _pad(x, batch_sizes, padding_value=0, length=None):
    packed = rnn.PackedSequence(x, torch.tensor(batch_sizes))
    return rnn.pad_packed_sequence(packed, padding_value=padding_value, total_length=length)[0]


@samples("pack_padded", dtypes=ALL, ref=_pack, grad_fn=False)
def pack_padded(make):
    yield Sample(make(4, 3, 2), STEPS)
    yield Sample(make(4, 3), STEPS)
    yield Sample(make(6, 3, 2), STEPS)
    yield Sample(make(4, 3, 2, transposed=True), STEPS)


@samples("pad_packed", dtypes=ALL, ref=_pad, grad_fn=False, strides=False)
def pad_packed(make):
    yield Sample(make(8, 2), STEPS)
    yield Sample(make(8, 2), STEPS, 1)
    yield Sample(make(8, 2, 2), STEPS, length=6)


@samples("pad_sequence", dtypes=(*HALVES, *FLOATS, *COMPLEXES, *INTS, *BOOL), ref=rnn.pad_sequence, grad_fn=False,
         strides=False)  # fmt: skip
def pad_sequence(make):
    for batch_first in (False, True):
        yield Sample([make(3, 2), make(1, 2), make(4, 2)], batch_first)
        yield Sample([make(3), make(2)], batch_first, 1, "left")
        yield Sample([make(2, 3, 2)], batch_first)
