"""What PyTorch's CPU refuses, the device refuses with the same class of exception."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from .side_by_side import DEVICE, both_refuse


def index_of(x: Any, *values: int) -> Any:
    return torch.tensor(values, device=x.device)


CALLS = {
    "shapes that do not broadcast": lambda x: x + x.new_ones(5),
    "matrices that do not fit": lambda x: x @ x,
    "a dimension beyond": lambda x: x.sum(3),
    "an index beyond": lambda x: x[7],
    "indices beyond": lambda x: x[index_of(x, 7)],
    "a view of another size": lambda x: x.view(5),
    "a reshape of another size": lambda x: x.reshape(5, 2),
    "a view across strides": lambda x: x.t().view(-1),
    "cat of other shapes": lambda x: torch.cat([x, x.t()], 0),
    "stack of other shapes": lambda x: torch.stack([x, x.t()]),
    "a float as an index": lambda x: x[x],
    "gather beyond": lambda x: x.gather(0, index_of(x, 9).view(1, 1)),
    "gather with floats": lambda x: x.gather(0, x),
    "index_select of floats": lambda x: x.index_select(0, x[0]),
    "a kernel larger than the image": lambda x: F.conv2d(x[None, None], x.new_ones(1, 1, 5, 5)),
    "channels that do not match": lambda x: F.conv1d(x[None], x.new_ones(1, 5, 1)),
    "a target beyond the classes": lambda x: F.cross_entropy(x, index_of(x, 0, 9)),
    "a table's row beyond": lambda x: F.embedding(index_of(x, 4), x),
    "a norm of another shape": lambda x: F.layer_norm(x, (4,)),
    "a singular matrix": lambda x: torch.linalg.inv(x.new_zeros(2, 2)),
    "a matrix that is not positive definite": lambda x: torch.linalg.cholesky(-torch.eye(2, device=x.device)),
    "bits of floats": lambda x: x & 1,
    "a negative probability": lambda x: torch.bernoulli(x - 100),
    "floats written to integers": lambda x: x.long().add_(x),
    "a wider shape written in place": lambda x: x[:1].add_(x),
    "squeezing a dimension beyond": lambda x: x.squeeze(4),
    "split into other sizes": lambda x: x.split([1, 5], 1),
    "topk beyond": lambda x: x.topk(9),
    "expanded to less": lambda x: x.expand(3),
    "the number of several": lambda x: x.item(),
    "the truth of several": lambda x: bool(x),
    "max of nothing": lambda x: x[:0].max(),
    "dropout beyond 1": lambda x: F.dropout(x, 2.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_class_of_the_exception_is_the_cpus(name: str) -> None:
    both_refuse(CALLS[name], torch.randn(2, 3, generator=torch.Generator().manual_seed(0)))


def test_tensors_of_two_devices_do_not_meet() -> None:
    x = torch.ones(3, device=DEVICE)
    with pytest.raises((RuntimeError, TypeError), match="cpu"):
        x + torch.ones(3)


def test_a_refused_call_leaves_the_device_usable() -> None:
    x = torch.ones(2, 2, device=DEVICE)
    with pytest.raises(RuntimeError):
        x.view(3)
    assert (x + x).tolist() == [[2.0, 2.0], [2.0, 2.0]]


LAYOUTS = {
    "sparse": lambda x: x.to_sparse(),
    "compressed": lambda x: x.to_sparse_csr(),
    "quantized": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "a sparse gradient": lambda x: F.embedding(index_of(x, 0, 1), x, sparse=True).sum().backward(),
}


@pytest.mark.filterwarnings("ignore::gradwire_torch.host.ComputedHere", "ignore:Sparse")
@pytest.mark.parametrize("name", LAYOUTS)
def test_other_layouts_are_refused(name: str) -> None:
    x = torch.ones(3, 4, device=DEVICE).requires_grad_(name == "a sparse gradient")
    with pytest.raises(NotImplementedError, match=r"tensors of gradwire are not (sparse|quantized)"):
        LAYOUTS[name](x)
