"""Type checkers know what the public API returns. ``mypy --strict`` reads one program that asserts it."""

from __future__ import annotations

from pathlib import Path

from tools import typed_documents

PRELUDE = """
from typing import Any, assert_type
from collections.abc import Iterator
import gradwire as torch
import gradwire.nn.functional as F
from gradwire import Tensor, distributions, nn, optim
from gradwire.autograd import functional as of
from gradwire.distributions import constraints
from gradwire.utils.data import DataLoader, Subset, TensorDataset, random_split

x = torch.randn(3, 4)
layer = nn.Linear(4, 5)
adam = optim.Adam(layer.parameters())
normal = distributions.Normal(0.0, x)
rows = TensorDataset(x, x)

def closure() -> Tensor:
    return layer(x).sum()  # type: ignore[no-any-return]

def total(a: Tensor) -> Tensor:
    return a.sum()

def both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a, b

@torch.no_grad()
def unrecorded(count: int) -> str:
    return str(count)

@torch.compile
def compiled(a: Tensor) -> Tensor:
    return a + 1

class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("offset", torch.zeros(3))
        self.count = nn.Buffer(torch.zeros(()))
"""
TYPES = {
    "Tensor": """
        x.relu() | x + 1 | 1 + x | x[0] | next(iter(x)) | x.to("cpu") | x.max() | torch.max(x) | torch.unique(x)
        x.unique() | torch.atleast_1d(x) | torch.where(x > 0, x, 1.0) | torch.fft.fft2(x) | torch.linalg.norm(x)
        F.max_pool2d(x, 2) | F.adaptive_max_pool2d(x, 2) | F.cross_entropy(x, x) | F.dropout(x)
        layer.forward(x) | nn.CrossEntropyLoss().forward(x, x) | nn.Embedding(3, 4).forward(x)
        normal.sample() | normal.rsample((2,)) | normal.log_prob(x) | normal.mean | normal.loc | normal.entropy()
        distributions.kl_divergence(normal, normal) | distributions.Categorical(logits=x).probs
        distributions.LogNormal(0.0, 1.0).scale | adam.step(closure) | compiled(x) | torch.vmap(compiled)(x)
        torch.amp.GradScaler().scale(x) | torch.utils.checkpoint.checkpoint(closure) | torch.signal.windows.hann(3)
        constraints.positive.check(x) | normal.support.check(x) | of.jacobian(total, x) | of.hessian(total, x)
        torch.func.vjp(total, x)[0] | torch.func.linearize(total, x)[1](x)
        torch.autograd.grad(x, x)[0] | nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    """,
    "nn.Parameter": """
        nn.Parameter(x) | layer.weight | layer.bias | nn.Conv2d(1, 2, 3).weight | nn.LayerNorm(3).weight
        nn.BatchNorm2d(3).weight | nn.Embedding(3, 4).weight | Net().scale
    """,
    "tuple[Tensor, Tensor]": """
        of.vjp(total, x) | of.hvp(total, x) | torch.func.jvp(total, (x,), (x,))
        F.max_pool2d(x, 2, return_indices=True) | torch.unique(x, return_inverse=True) | torch.lu(x)
    """,
    "tuple[Tensor, ...]": """
        torch.autograd.grad(x, [x]) | torch.split(x, 2) | torch.meshgrid(x, x) | torch.broadcast_tensors(x, x) | rows[0]
        of.jacobian(both, x) | of.jacobian(total, (x, x)) | torch.gradient(x) | Subset(rows, [1])[0]
    """,
    "tuple[tuple[Tensor, ...], ...]": "of.hessian(total, (x, x)) | of.jacobian(both, (x, x))",
    "tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]": "of.jvp(both, (x, x))",
    "constraints.Constraint": "distributions.Uniform(0.0, 1.0).support | distributions.AffineTransform(0, 1).domain",
    "distributions.Transform": "distributions.biject_to(constraints.positive)",
    "list[float | Tensor]": "optim.lr_scheduler.StepLR(adam, 3).get_last_lr()",
    "nn.Parameter | None": "nn.Conv2d(1, 2, 3).bias",
    "int": "layer.in_features | x.dtype.itemsize",
    "list[dict[str, Any]]": "adam.param_groups",
    "nn.Linear": """
        layer.to(torch.float64) | layer.to('cpu') | layer.train() | torch.compile(layer)
        nn.utils.parametrizations.weight_norm(layer)
    """,
    "nn.Module": "nn.Sequential(layer)[0] | nn.ModuleList([layer])[0]",
    "nn.Sequential": "nn.Sequential(layer)[:1]",
    "str": "unrecorded(2)",
    "None": "adam.step() | adam.zero_grad() | x.backward()",
    "torch.no_grad": "torch.no_grad()",
    "DataLoader[tuple[Tensor, ...]]": "DataLoader(rows, batch_size=2)",
    "list[Subset[tuple[Tensor, ...]]]": "random_split(rows, [1, 2])",
    "nn.Buffer": "Net().count",
}
"""Expressions by their type."""


def test_what_expressions_return_is_known() -> None:
    lines = [
        f"assert_type({expression.strip()}, {kind})"
        for kind, text in TYPES.items()
        for line in text.strip().splitlines()
        for expression in line.split(" | ")
    ]
    status, messages = typed_documents.check([("program", Path("program.py"), "\n".join([PRELUDE, *lines]) + "\n")])
    assert status == 0, messages
