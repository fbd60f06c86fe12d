"""Placements are plain values, as PyTorch's are, and nothing is distributed by them."""

from __future__ import annotations

import copy

import pytest
import torch.distributed._tensor as their_former_place
import torch.distributed.tensor.placement_types as theirs

import gradwire.distributed._tensor as former_place
import gradwire.distributed.tensor.placement_types as ours
from gradwire import distributed as dist
from gradwire_protocol.errors import Unsupported

MAKE = {
    "shard": lambda m: m.Shard(1), "last": lambda m: m.Shard(dim=-1), "replicate": lambda m: m.Replicate(),
    "sum": lambda m: m.Partial(), "avg": lambda m: m.Partial("avg"), "strided": lambda m: m._StridedShard(0, sf=2),
}  # fmt: skip


@pytest.mark.parametrize("kind", MAKE)
def test_a_placement_says_what_pytorchs_says(kind):
    def told(module):
        made = MAKE[kind](module)
        kinds = [made.is_shard(), made.is_shard(1), made.is_replicate(), made.is_partial(), made.is_partial("avg")]
        same = {name: made == make(module) for name, make in MAKE.items()}
        return repr(made), str(made), kinds, same, made.__fx_repr__(), isinstance(made, module.Placement)

    assert told(ours) == told(theirs)
    assert hash(MAKE[kind](ours)) == hash(MAKE[kind](theirs))
    assert copy.deepcopy(MAKE[kind](ours)) == MAKE[kind](ours)


@pytest.mark.parametrize("call", [lambda m: m.Shard(), lambda m: m.Shard("x"), lambda m: m.Partial(3)])
def test_wrong_arguments_raise_what_pytorch_raises(call):
    for module in (ours, theirs):
        with pytest.raises(TypeError):
            call(module)


@pytest.mark.parametrize("extent", [0, 5, 8])
def test_the_chunk_of_a_rank(extent):
    sizes = [[m.Shard.local_shard_size_and_offset(extent, 4, k) for k in range(4)] for m in (ours, theirs)]
    assert sizes[0] == sizes[1]


def test_the_former_place_has_the_same_classes():
    for name in ("Shard", "Replicate", "Partial", "Placement"):
        assert getattr(former_place, name) is getattr(ours, name)
        assert getattr(their_former_place, name) is getattr(theirs, name)


def test_to_distribute_is_refused_where_it_is_called():
    with pytest.raises(Unsupported, match=r"distributed\.tensor\.distribute_tensor"):
        dist.tensor.distribute_tensor(None, None, [ours.Shard(0)])
