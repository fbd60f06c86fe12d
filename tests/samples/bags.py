"""Samples of embedding bags."""

from __future__ import annotations

import torch

from tests.samples import FLOATS, HALVES, Sample, samples

MODES = {"sum": 0, "mean": 1, "max": 2}


def _embedding_bag(
    weight, indices, offsets, mode="mean", scale_grad_by_freq=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=-1,
):  # fmt: skip
    bags = torch.embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, MODES[mode], False, per_sample_weights, include_last_offset,
        padding_idx if padding_idx != -1 else None,
    )  # fmt: skip
    # What else there is in PyTorch depends on the path it took; ours always says.
    count = offsets.numel() - include_last_offset
    ends = torch.cat([offsets, offsets.new_tensor([indices.numel()])])[: count + 1]
    bag = torch.repeat_interleave(torch.arange(count), torch.diff(ends).long())
    sizes = torch.zeros(count, dtype=torch.int64).index_add_(0, bag, (indices != padding_idx).long())
    rows = bags[3].long() if mode == "max" else torch.zeros(count, 0, dtype=torch.int64)
    return bags[0], bag, sizes, rows


@samples("embedding_bag", dtypes=(*HALVES, *FLOATS), ref=_embedding_bag, gradgrad=False)
def embedding_bag(make):
    indices = make.index(9, high=5)
    offsets = torch.tensor([0, 3, 3, 7])
    for mode in MODES:
        yield Sample(make.distinct(5, 4), indices, offsets, mode)
        yield Sample(make.distinct(5, 4), indices.int(), offsets.int(), mode)
        yield Sample(make.distinct(5, 4), indices, torch.tensor([0, 4, 9]), mode, include_last_offset=True)
    for mode in ("sum", "mean"):
        # Every row is named twice: PyTorch divides by the count of another row where counts differ.
        yield Sample(make(5, 4), torch.cat([make.permutation(5), make.permutation(5)]), offsets, mode, True)
        yield Sample(make(5, 4), indices, offsets, mode, padding_idx=2)
    yield Sample(make(5, 4), indices, offsets, "sum", False, make(9))
    yield Sample(make(5, 4), indices, torch.tensor([1, 3]), "sum").fails()
    yield Sample(make(5, 4), indices + 3, offsets, "sum").fails()
    yield Sample(make(5, 4), indices.short(), offsets.short(), "sum").fails()


@samples("embedding_renorm_", dtypes=FLOATS, grad=False)
def embedding_renorm_(make):
    table = make.plain()
    for norm_type in (2.0, 1.0, float("inf")):
        yield Sample(table(5, 4), make.index(3, high=5), 1.5, norm_type)
    yield Sample(table(5, 4), make.index(2, 3, high=5), 100.0, 2.0)
