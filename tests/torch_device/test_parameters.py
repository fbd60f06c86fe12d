"""What programs expect of parameters, views and dtypes on a device of PyTorch, and libraries rely on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import gradwire_torch

gradwire_torch.register()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
        self.head.weight = self.embedding.weight


def test_shared_weights_stay_shared() -> None:
    model = Tied()
    weight = model.head.weight
    for place in ("gradwire", "cpu", "gradwire"):
        model.to(place)
        assert model.head.weight is model.embedding.weight is weight
        assert weight.device.type == place


def test_an_optimizer_made_before_the_move_trains_the_module() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.detach().clone()
    model(torch.ones(1, 3)).sum().backward()
    model.to("gradwire")
    assert model.weight.grad is not None and model.weight.grad.device.type == "gradwire"
    optimizer.step()
    torch.testing.assert_close(model.weight.detach().cpu(), before - 1)


def test_data_is_set_from_the_other_side() -> None:
    weight = nn.Parameter(torch.ones(2))
    weight.data = weight.data.to("gradwire", torch.float64)
    assert isinstance(weight, nn.Parameter) and weight.requires_grad
    assert (weight.device.type, weight.dtype, weight.tolist()) == ("gradwire", torch.float64, [1.0, 1.0])
    result = weight * 2
    with pytest.raises(RuntimeError):
        result.data = torch.ones(2)


def test_views_in_inference_mode_are_of_the_mode_of_their_base() -> None:
    plain = torch.arange(6.0, device="gradwire")
    with torch.inference_mode():
        made = plain + 1
        for base in (plain, made):
            for view in (base.view(2, 3), base[1:], base.view(torch.int32), base.unfold(0, 2, 2)):
                assert view.is_inference() == base.is_inference()
        assert nn.Linear(6, 2).to("gradwire")(plain).shape == (2,)
    assert made.view(3, 2).is_inference() and not made.view(3, 2).requires_grad


def test_memory_of_the_cpu_is_pinned_as_it_is() -> None:
    tensor = torch.ones(2)
    assert tensor.pin_memory() is tensor and tensor.is_pinned() is False
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(4)), 2, pin_memory=True)
    assert [batch.tolist() for (batch,) in loader] == [[0, 1], [2, 3]]


def test_the_default_dtype_is_what_integers_become() -> None:
    integers = torch.arange(3, device="gradwire")
    assert (integers / 2).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert (integers / 2).dtype is integers.sqrt().dtype is torch.arange(2.0, device="gradwire").dtype
        assert (integers / 2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (integers / 2).dtype is torch.float32


def test_the_biases_of_a_recurrent_layer_have_gradients_of_their_own() -> None:
    layer = nn.LSTM(3, 2).to("gradwire")
    layer(torch.ones(4, 1, 3, device="gradwire"))[0].sum().backward()
    other = layer.bias_hh_l0.grad.clone()
    layer.bias_ih_l0.grad.mul_(2)
    assert torch.equal(layer.bias_hh_l0.grad, other)
