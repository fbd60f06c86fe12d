"""PyTorch's tape over the device: views, what is written in place, several backwards, hooks, recomputation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .side_by_side import DEVICE, on_both


def leaf(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def test_gradients_pass_through_views_of_views() -> None:
    def lines(x: Any) -> Any:
        part = x[1:].t()[::2].unsqueeze(0).expand(3, -1, -1)
        (part * part).sum().backward()
        return part, x.grad

    on_both(lines, leaf(4, 6))


def test_gradients_pass_through_what_is_written_to_a_view() -> None:
    def lines(x: Any, y: Any) -> Any:
        z = x * 2
        z[1:3].mul_(y)
        z.select(0, 0).fill_(1.5)
        z[:, 2] = y[0, 0] ** 2
        z.sin().sum().backward()
        return z, x.grad, y.grad

    on_both(lines, leaf(4, 3), leaf(2, 3, seed=1))


@pytest.mark.parametrize("name", ["add_", "mul_", "sub_", "div_", "copy_"])
def test_gradients_pass_through_in_place_operations(name: str) -> None:
    def lines(x: Any, y: Any) -> Any:
        z = x.clone()
        getattr(z, name)(y.exp())
        (z * z).sum().backward()
        return z, x.grad, y.grad

    on_both(lines, leaf(3, 4), leaf(4, seed=1))


def test_versions_count_what_is_written() -> None:
    def lines(x: Any) -> Any:
        counts = [x._version]
        view = x[1:]
        view.add_(1)
        counts.append(x._version)
        x.zero_()
        counts.append(view._version)
        torch.add(x, 1, out=x)
        x[0] = 3
        counts.append(x._version)
        x.detach().mul_(2)
        counts.append(x._version)
        x.data.mul_(2)
        return [*counts, x._version]

    on_both(lines, leaf(3, 2).detach())


def test_backward_refuses_what_was_changed_since() -> None:
    x = leaf(3).to(DEVICE).detach().requires_grad_()
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_graph_can_be_kept_and_not_otherwise() -> None:
    def lines(x: Any) -> Any:
        y = (x.tanh() * x).sum()
        y.backward(retain_graph=True)
        first = x.grad.clone()
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()
        return first, x.grad

    on_both(lines, leaf(3, 4))


TWICE = {
    "product": lambda x: (x @ x.t()).sin(),
    "softmax": lambda x: F.softmax(x, -1) * x,
    "log_softmax": lambda x: F.log_softmax(x, 0).exp() * x,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": lambda x: x.tanh() * x.sigmoid(),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x.reshape(1, 4, 4), 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "convolution": lambda x: F.conv2d(x.reshape(1, 2, 4, 2), x.reshape(2, 2, 2, 2)),
    "average pool": lambda x: F.avg_pool2d(x.reshape(1, 1, 4, 4), 2) ** 2,
    "maximum pool": lambda x: F.max_pool2d(x.reshape(1, 1, 4, 4), 2) ** 2,
    "interpolation": lambda x: F.interpolate(x.reshape(1, 1, 4, 4), scale_factor=2.0, mode="bilinear") ** 2,
    "mse_loss": lambda x: F.mse_loss(x, x.t()),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x.t() * 2),
    "cross_entropy": lambda x: F.cross_entropy(x, x.softmax(-1)),
    "embedding": lambda x: F.embedding(torch.tensor([0, 2, 2], device=x.device), x) ** 3,
    "index": lambda x: x[torch.tensor([0, 2, 2], device=x.device)] ** 3,
    "scatter": lambda x: x.scatter_add(0, torch.zeros(1, 4, dtype=torch.long, device=x.device), x[1:2]) ** 3,
    "norm": lambda x: x.norm(dim=-1),
    "prod": lambda x: x.prod(-1),
    "cumprod": lambda x: x.cumprod(-1),
    "logsumexp": lambda x: x.logsumexp(-1) ** 2,
    "inverse": lambda x: torch.linalg.inv(x + 5 * torch.eye(4, device=x.device, dtype=x.dtype)),
    "determinant": lambda x: torch.linalg.det(x),
    "pad": lambda x: F.pad(x.reshape(1, 4, 4), (1, 1), mode="reflect") ** 2,
}


@pytest.mark.parametrize("name", TWICE)
def test_gradients_of_gradients(name: str) -> None:
    def lines(x: Any) -> Any:
        (grad,) = torch.autograd.grad(TWICE[name](x).sum(), x, create_graph=True)
        (again,) = torch.autograd.grad((grad * grad).sum(), x)
        return grad.detach().contiguous(), again.contiguous()

    on_both(lines, leaf(4, 4, dtype=torch.float64))


def test_attention_is_differentiated_twice() -> None:
    """The CPU's fused kernel is not; its parts are."""
    found = []
    query, key, value = (leaf(2, 3, 4, seed=i, dtype=torch.float64) for i in range(3))
    for place in ("cpu", DEVICE):
        q, k, v = (t.detach().to(place).requires_grad_() for t in (query, key, value))
        made = (
            torch.ops.aten._scaled_dot_product_attention_math(q, k, v, is_causal=True)[0]
            if place == "cpu"
            else F.scaled_dot_product_attention(q, k, v, is_causal=True)
        )
        grads = torch.autograd.grad(made.square().sum(), [q, k, v], create_graph=True)
        again = torch.autograd.grad(sum(g.square().sum() for g in grads), [q, k, v])
        found.append([t.detach().cpu() for t in (made, *grads, *again)])
    for theirs, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_hooks_see_and_replace_gradients() -> None:
    def lines(x: Any) -> Any:
        seen: list[Any] = []
        y = x * 3
        y.retain_grad()
        y.register_hook(lambda g: seen.append(g.clone()) or g * 2)
        x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
        y.sum().backward()
        return seen, y.grad, x.grad

    on_both(lines, leaf(2, 3))


def test_modules_hooks_are_called() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

    def lines(x: Any) -> Any:
        own = copy.deepcopy(net).to(x.device)
        seen: list[Any] = []
        own[1].register_forward_hook(lambda _m, _i, out: seen.append(out.detach()))
        own[1].register_full_backward_hook(lambda _m, given, _out: seen.append(given[0]))
        own(x).sum().backward()
        return seen, [p.grad for p in own.parameters()], x.grad

    on_both(lines, leaf(5, 3))


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_recomputed_has_the_same_gradients(reentrant: bool) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))

    def lines(x: Any) -> Any:
        own = copy.deepcopy(net).to(x.device)
        y = checkpoint(own, x, use_reentrant=reentrant)
        y.square().sum().backward()
        return y, [p.grad for p in own.parameters()], x.grad

    on_both(lines, leaf(5, 3))


def test_without_grad_nothing_is_recorded_on_the_tape() -> None:
    def lines(x: Any) -> Any:
        with torch.no_grad():
            y = x * 2
            x.add_(1)
        with torch.inference_mode():
            z = x.sin()
        return y, x, [y.requires_grad, z.requires_grad, z.is_inference()]

    on_both(lines, leaf(2, 3))


def test_a_function_of_the_programs_own_has_its_backward() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    def lines(x: Any) -> Any:
        y = Cube.apply(x)
        y.sum().backward()
        return y, x.grad

    on_both(lines, leaf(2, 3))


def test_gradients_accumulate_into_the_same_memory() -> None:
    def lines(x: Any) -> Any:
        (x * 2).sum().backward()
        first = x.grad
        (x * x).sum().backward()
        same = x.grad is first
        x.grad.zero_()
        return first, same

    on_both(lines, leaf(3))
