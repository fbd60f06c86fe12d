"""Layers that the device records as one operation, and steps of optimizers that PyTorch has as one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch.nn import functional as F

from .side_by_side import DEVICE, moved, on_both


def trained(made: torch.nn.Module, *given: torch.Tensor) -> None:
    """Compare results and gradients of a module in both places."""

    def lines(*inputs: Any) -> Any:
        own = copy.deepcopy(made).to(inputs[0].device)
        results = torch.utils._pytree.tree_leaves(own(*inputs))
        sum((r * r).sum() for r in results).backward()
        grads = [p.grad.contiguous() for p in own.parameters()]
        return [r.detach().contiguous() for r in results], grads, [t.grad for t in inputs], list(own.buffers())

    on_both(lines, *given)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_networks(kind: str, bidirectional: bool) -> None:
    torch.manual_seed(0)
    made = getattr(torch.nn, kind)(3, 4, 2, batch_first=True, bidirectional=bidirectional)
    trained(made, numbers(2, 5, 3))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_networks_over_packed_sequences(kind: str) -> None:
    torch.manual_seed(0)
    made = getattr(torch.nn, kind)(3, 4)

    def lines(x: Any) -> Any:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([4, 2, 1]))
        found, _ = copy.deepcopy(made).to(x.device)(packed)
        found.data.square().sum().backward()
        return found.data, x.grad, torch.nn.utils.rnn.pad_packed_sequence(found)[0]

    on_both(lines, numbers(4, 3, 3))


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells(kind: str) -> None:
    torch.manual_seed(0)
    trained(getattr(torch.nn, kind)(3, 4), numbers(2, 3))


LAYERS = {
    "layer norm": lambda: torch.nn.LayerNorm(4),
    "layer norm without parameters": lambda: torch.nn.LayerNorm(4, elementwise_affine=False),
    "rms norm": lambda: torch.nn.RMSNorm(4),
    "group norm": lambda: torch.nn.GroupNorm(3, 6),
    "batch norm": lambda: torch.nn.BatchNorm1d(6),
    "batch norm in evaluation": lambda: torch.nn.BatchNorm1d(6).eval(),
    "instance norm": lambda: torch.nn.InstanceNorm1d(6, affine=True),
    "weight norm": lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 2)),
    "spectral norm in evaluation": lambda: torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(4, 2)).eval(),
    "encoder layer": lambda: torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
    "embedded convolution": lambda: torch.nn.Conv1d(6, 3, 2, groups=3, dilation=2, padding="same"),
    "transposed convolution": lambda: torch.nn.ConvTranspose1d(6, 2, 3, stride=2, output_padding=1),
    "activations": lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Softplus(), torch.nn.Mish()),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_layers(name: str) -> None:
    torch.manual_seed(0)
    trained(LAYERS[name](), numbers(2, 6, 4))


@pytest.mark.parametrize(("causal", "masked"), [(False, False), (True, False), (False, True)])
def test_attention(causal: bool, masked: bool) -> None:
    mask = torch.rand(5, 5, generator=torch.Generator().manual_seed(3)) > 0.3

    def lines(q: Any, k: Any, v: Any) -> Any:
        given = mask.to(q.device) if masked else None
        made = F.scaled_dot_product_attention(q, k, v, attn_mask=given, is_causal=causal)
        made.square().sum().backward()
        return made.contiguous(), q.grad.contiguous(), k.grad.contiguous(), v.grad.contiguous()

    on_both(lines, *[numbers(2, 3, 5, 4, seed=i) for i in range(3)])


OPTIMIZERS = {
    "adam": (torch.optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
    "adam that climbs": (torch.optim.Adam, {"maximize": True}),
    "sgd": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "sgd with dampening": (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.5}),
    "adagrad": (torch.optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("how", ["fused", "foreach"])
def test_optimizers_step_as_on_the_cpu(name: str, how: str) -> None:
    kind, options = OPTIMIZERS[name]

    def lines(x: Any) -> Any:
        optimizer = kind([x], lr=0.1, **options, **{how: True})
        for _ in range(3):
            optimizer.zero_grad()
            (x.sin() * x).sum().backward()
            optimizer.step()
        return x

    on_both(lines, numbers(3, 4))


def test_a_scaler_skips_what_overflows() -> None:
    found = []
    for place in ("cpu", DEVICE):
        x = moved(numbers(3), place)
        scaler = torch.amp.GradScaler(place, init_scale=4.0, growth_interval=2)
        optimizer = torch.optim.SGD([x], lr=0.1)
        scales = []
        for factor in (1.0, 1.0, float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale((x * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        found.append((scales, x.detach().cpu()))
    assert found[0][0] == found[1][0]
    torch.testing.assert_close(found[1][1], found[0][1])


def attended(x: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x.sin(), x.cos(), is_causal=True)


def test_what_is_recomputed_attends_with_the_second_times_results() -> None:
    def lines(x: Any) -> Any:
        torch.utils.checkpoint.checkpoint(attended, x, use_reentrant=False).square().sum().backward()
        return x.grad.contiguous()

    on_both(lines, numbers(2, 3, 4))


def test_saved_tensors_may_be_kept_elsewhere() -> None:
    def lines(x: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
            made = attended(x)
        made.square().sum().backward()
        return x.grad.contiguous()

    on_both(lines, numbers(2, 3, 4))


def test_a_second_backward_is_refused_unless_the_graph_is_kept() -> None:
    x = numbers(2, 3, 4).detach().to(DEVICE).requires_grad_()
    made = attended(x).sum()
    made.backward(retain_graph=True)
    made.backward()
    with pytest.raises(RuntimeError, match="second time"):
        made.backward()


def test_transforms_go_through_the_parts() -> None:
    def lines(x: Any) -> Any:
        per_sample = torch.func.vmap(torch.func.grad(lambda one: attended(one).square().sum()))(x)
        _, tangent = torch.func.jvp(attended, (x,), (torch.ones_like(x),))
        return per_sample.contiguous(), tangent.contiguous()

    x = numbers(2, 3, 4).detach()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        wanted, found = lines(x), [t.cpu() for t in lines(x.to(DEVICE))]
    for theirs, ours in zip(wanted, found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("how", ["plain", "recomputed"])
def test_backward_drops_what_attention_dropped(how: str) -> None:
    x, steps = (numbers(2, 6, 4, seed=i).detach().to(DEVICE) for i in range(2))
    value = torch.eye(6, device=DEVICE).expand(2, 6, 6).contiguous().requires_grad_()

    def attend(v: Any) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, steps, v, dropout_p=0.5)

    weights = attend(value) if how == "plain" else torch.utils.checkpoint.checkpoint(attend, value, use_reentrant=False)
    weights.sum().backward()
    dropped = (weights == 0).cpu()
    assert dropped.any() and not dropped.all()
    torch.testing.assert_close(value.grad.cpu()[..., 0], weights.detach().cpu().sum(1))


def test_attention_with_dropout_is_not_differentiated_twice() -> None:
    x = numbers(2, 3, 4).detach().to(DEVICE).requires_grad_()
    made = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5).sum()
    with pytest.raises(RuntimeError, match="dropout"):
        torch.autograd.grad(made, x, create_graph=True)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        made = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5).sum()
    (first,) = torch.autograd.grad(made, x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].isfinite().all()
