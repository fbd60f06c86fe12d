"""``gradwire.nn`` against ``torch.nn``: the same modules, with the same weights, on the same inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn as tnn

import gradwire as gw
from gradwire import nn as gnn

F32 = dict(rtol=2e-5, atol=2e-6)


def both(make):
    """A module made twice by one function: ours and torch's, ours with torch's weights."""
    torch.manual_seed(0)
    theirs, ours = make(tnn, torch.tensor), make(gnn, gw.tensor)
    ours.load_state_dict({name: gw.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    return ours, theirs


def as_ours(tensor: torch.Tensor):
    return gw.tensor(tensor.detach().numpy(), requires_grad=tensor.requires_grad)


def values(tensor) -> np.ndarray:
    return tensor.detach().numpy()


def drawn(*shape: int, seed: int = 0, positive: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(*shape, generator=generator)
    return (made.abs() + 0.1 if positive else made).requires_grad_()


def compare(ours, theirs, *inputs: torch.Tensor, **tolerance) -> None:
    """Forward and backward agree: result, gradients of the inputs and of the parameters, and buffers."""
    given = [as_ours(i) for i in inputs]
    expected, found = theirs(*inputs), ours(*given)
    np.testing.assert_allclose(values(found), values(expected), **(tolerance or F32))
    assert tuple(found.shape) == tuple(expected.shape)
    if expected.requires_grad:
        weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(9))
        (expected * weights).sum().backward()
        (found * gw.tensor(weights.numpy())).sum().backward()
        pairs = [*zip(given, inputs), *zip(ours.parameters(), theirs.parameters())]
        for ours_one, theirs_one in pairs:
            if theirs_one.grad is not None:
                np.testing.assert_allclose(values(ours_one.grad), values(theirs_one.grad), **(tolerance or F32))
    for (name, buffer), (_, expected_buffer) in zip(ours.named_buffers(), theirs.named_buffers()):
        np.testing.assert_allclose(values(buffer), values(expected_buffer), err_msg=name, **F32)


LAYERS = [
    (lambda nn, tensor: nn.Identity(), (2, 3)),
    (lambda nn, tensor: nn.Linear(3, 4), (5, 3)),
    (lambda nn, tensor: nn.Linear(3, 4, bias=False), (2, 5, 3)),
    (lambda nn, tensor: nn.Linear(3, 4), (3,)),
    (lambda nn, tensor: nn.Conv1d(2, 4, 3, padding=1, stride=2), (2, 2, 9)),
    (lambda nn, tensor: nn.Conv1d(2, 4, 3, padding="same"), (2, 2, 9)),
    (lambda nn, tensor: nn.Conv2d(2, 4, 3), (2, 2, 7, 8)),
    (
        lambda nn, tensor: nn.Conv2d(
            4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2, bias=False
        ),
        (2, 4, 7, 8),
    ),
    (lambda nn, tensor: nn.Conv2d(2, 4, 3), (2, 7, 8)),
    (lambda nn, tensor: nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1), (2, 2, 4, 5)),
    (lambda nn, tensor: nn.MaxPool1d(2), (2, 3, 9)),
    (lambda nn, tensor: nn.MaxPool2d(2), (2, 3, 6, 7)),
    (lambda nn, tensor: nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), (2, 3, 6, 7)),
    (lambda nn, tensor: nn.AvgPool1d(3, 2, 1), (2, 3, 9)),
    (lambda nn, tensor: nn.AvgPool2d(2), (2, 3, 6, 7)),
    (lambda nn, tensor: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), (2, 3, 6, 7)),
    (lambda nn, tensor: nn.AdaptiveAvgPool1d(4), (2, 3, 9)),
    (lambda nn, tensor: nn.AdaptiveAvgPool2d((1, None)), (2, 3, 6, 7)),
    (lambda nn, tensor: nn.AdaptiveMaxPool2d(2), (2, 3, 6, 7)),
    (lambda nn, tensor: nn.LayerNorm(5), (2, 3, 5)),
    (lambda nn, tensor: nn.LayerNorm((3, 5), eps=1e-3), (2, 3, 5)),
    (lambda nn, tensor: nn.LayerNorm(5, bias=False), (2, 3, 5)),
    (lambda nn, tensor: nn.LayerNorm(5, elementwise_affine=False), (2, 3, 5)),
    (lambda nn, tensor: nn.BatchNorm1d(3), (6, 3)),
    (lambda nn, tensor: nn.BatchNorm1d(3, momentum=None), (6, 3, 4)),
    (lambda nn, tensor: nn.BatchNorm2d(3, momentum=0.3), (4, 3, 5, 5)),
    (lambda nn, tensor: nn.BatchNorm2d(3, affine=False, track_running_stats=False), (4, 3, 5, 5)),
    (lambda nn, tensor: nn.BatchNorm2d(3).eval(), (4, 3, 5, 5)),
    (lambda nn, tensor: nn.GroupNorm(2, 4), (3, 4, 5)),
    (lambda nn, tensor: nn.RMSNorm(5), (2, 3, 5)),
    (lambda nn, tensor: nn.InstanceNorm1d(3, affine=True, track_running_stats=True), (2, 3, 5)),
    (lambda nn, tensor: nn.InstanceNorm2d(3), (3, 4, 5)),
    (lambda nn, tensor: nn.ZeroPad2d((1, 2, 0, 1)), (2, 3, 4, 4)),
    (lambda nn, tensor: nn.ConstantPad1d(2, 0.5), (2, 3, 4)),
    (lambda nn, tensor: nn.ReflectionPad2d(1), (2, 3, 4, 4)),
    (lambda nn, tensor: nn.ReplicationPad1d((0, 3)), (2, 3, 4)),
    (lambda nn, tensor: nn.CircularPad2d((1, 2, 0, 1)), (2, 3, 4, 4)),
    (lambda nn, tensor: nn.Dropout(0.4).eval(), (3, 4)),
    (lambda nn, tensor: nn.Dropout(0.0), (3, 4)),
    (lambda nn, tensor: nn.Dropout2d(0.4).eval(), (2, 3, 4, 4)),
    (lambda nn, tensor: nn.Flatten(), (2, 3, 4)),
    (lambda nn, tensor: nn.Flatten(0, 1), (2, 3, 4)),
    (lambda nn, tensor: nn.Unflatten(1, (2, -1)), (2, 6, 3)),
    (lambda nn, tensor: nn.ReLU(), (3, 4)),
    (lambda nn, tensor: nn.LeakyReLU(0.2), (3, 4)),
    (lambda nn, tensor: nn.GELU(), (3, 4)),
    (lambda nn, tensor: nn.GELU(approximate="tanh"), (3, 4)),
    (lambda nn, tensor: nn.SiLU(), (3, 4)),
    (lambda nn, tensor: nn.Sigmoid(), (3, 4)),
    (lambda nn, tensor: nn.Tanh(), (3, 4)),
    (lambda nn, tensor: nn.Softplus(beta=2.0, threshold=1.0), (3, 4)),
    (lambda nn, tensor: nn.Softmax(dim=1), (3, 4)),
    (lambda nn, tensor: nn.LogSoftmax(dim=-1), (3, 4)),
    (lambda nn, tensor: nn.Softmin(dim=0), (3, 4)),
    (lambda nn, tensor: nn.Softmax2d(), (2, 3, 4, 4)),
    (lambda nn, tensor: nn.ELU(0.7), (3, 4)),
    (lambda nn, tensor: nn.CELU(0.7), (3, 4)),
    (lambda nn, tensor: nn.SELU(), (3, 4)),
    (lambda nn, tensor: nn.ReLU6(), (3, 4)),
    (lambda nn, tensor: nn.Hardtanh(-0.5, 0.7), (3, 4)),
    (lambda nn, tensor: nn.Hardswish(), (3, 4)),
    (lambda nn, tensor: nn.Hardsigmoid(), (3, 4)),
    (lambda nn, tensor: nn.Mish(), (3, 4)),
    (lambda nn, tensor: nn.LogSigmoid(), (3, 4)),
    (lambda nn, tensor: nn.Softsign(), (3, 4)),
    (lambda nn, tensor: nn.Tanhshrink(), (3, 4)),
    (lambda nn, tensor: nn.Hardshrink(0.3), (3, 4)),
    (lambda nn, tensor: nn.Softshrink(0.3), (3, 4)),
    (lambda nn, tensor: nn.Threshold(0.1, -2.0), (3, 4)),
    (lambda nn, tensor: nn.GLU(), (3, 4)),
    (lambda nn, tensor: nn.PReLU(), (3, 4)),
    (lambda nn, tensor: nn.PReLU(4, init=0.1), (3, 4)),
    (lambda nn, tensor: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (3, 4)),
]


@pytest.mark.parametrize("make, shape", LAYERS, ids=[f"{make(tnn, torch.tensor)} on {s}" for make, s in LAYERS])
def test_a_layer_computes_what_torch_computes(make, shape):
    ours, theirs = both(make)
    compare(ours, theirs, drawn(*shape))


def test_distances_and_angles():
    for make in (lambda nn, tensor: nn.PairwiseDistance(p=1.5), lambda nn, tensor: nn.CosineSimilarity(dim=0)):
        ours, theirs = both(make)
        compare(ours, theirs, drawn(3, 4), drawn(3, 4, seed=1))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_a_convolution_pads_in_every_mode(mode):
    ours, theirs = both(lambda nn, tensor: nn.Conv2d(2, 3, 3, padding=(2, 1), padding_mode=mode))
    compare(ours, theirs, drawn(2, 2, 6, 5))


def test_a_transposed_convolution_reaches_the_size_it_is_asked_for():
    ours, theirs = both(lambda nn, tensor: nn.ConvTranspose2d(2, 3, 3, stride=2))
    x = drawn(1, 2, 4, 4)
    expected = theirs(x, output_size=[10, 9])
    np.testing.assert_allclose(values(ours(as_ours(x), output_size=[10, 9])), values(expected), **F32)


def test_max_pool_returns_indices_when_asked():
    x = drawn(2, 3, 6, 6)
    found, where = gnn.MaxPool2d(2, return_indices=True)(as_ours(x))
    expected, expected_where = tnn.MaxPool2d(2, return_indices=True)(x)
    np.testing.assert_array_equal(values(found), values(expected))
    np.testing.assert_array_equal(values(where), values(expected_where))


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"scale_grad_by_freq": True}, {"max_norm": 1.0}])
def test_embedding(options):
    ours, theirs = both(lambda nn, tensor: nn.Embedding(6, 3, **options))
    index = torch.tensor([[0, 1, 5], [1, 1, 2]])
    found, expected = ours(gw.tensor(index.numpy())), theirs(index)
    np.testing.assert_allclose(values(found), values(expected), **F32)
    found.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(values(ours.weight.grad), values(theirs.weight.grad), **F32)
    np.testing.assert_allclose(values(ours.weight), values(theirs.weight), **F32)


LOSSES = [
    (lambda nn, tensor: nn.MSELoss(), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.MSELoss(reduction="none"), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.L1Loss(reduction="sum"), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.SmoothL1Loss(beta=0.5), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.SmoothL1Loss(beta=0.0), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.HuberLoss(delta=0.7), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.BCEWithLogitsLoss(), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.BCEWithLogitsLoss(pos_weight=tensor([1.0, 2.0, 3.0, 0.5]), reduction="sum"), (3, 4), (3, 4)),
    (lambda nn, tensor: nn.CrossEntropyLoss(), (5, 4), "classes"),
    (lambda nn, tensor: nn.CrossEntropyLoss(weight=tensor([1.0, 2.0, 3.0, 0.5]), ignore_index=2), (5, 4), "classes"),
    (lambda nn, tensor: nn.CrossEntropyLoss(label_smoothing=0.2), (5, 4), "classes"),
    (lambda nn, tensor: nn.CrossEntropyLoss(reduction="none"), (5, 4, 2), "classes"),
    (lambda nn, tensor: nn.CrossEntropyLoss(), (5, 4), "probabilities"),
    (lambda nn, tensor: nn.NLLLoss(), (5, 4), "classes"),
    (lambda nn, tensor: nn.NLLLoss(weight=tensor([1.0, 2.0, 3.0, 0.5]), reduction="sum"), (5, 4), "classes"),
    (lambda nn, tensor: nn.KLDivLoss(reduction="batchmean"), (5, 4), "probabilities"),
    (lambda nn, tensor: nn.KLDivLoss(reduction="sum", log_target=True), (5, 4), (5, 4)),
]


@pytest.mark.parametrize("make, shape, kind", LOSSES, ids=[f"{make(tnn, torch.tensor)} {k}" for make, _, k in LOSSES])
def test_a_loss_computes_what_torch_computes(make, shape, kind):
    ours, theirs = both(make)
    if kind == "classes":
        extents = (shape[0], *shape[2:])
        target = torch.randint(0, shape[1], extents, generator=torch.Generator().manual_seed(1))
    elif kind == "probabilities":
        target = drawn(*shape, seed=1).detach().softmax(1)
    else:
        target = drawn(*kind, seed=1).detach()
        if "BCE" in repr(theirs):
            target = target.sigmoid()
    compare(ours, theirs, drawn(*shape), target)


def test_binary_cross_entropy_of_probabilities():
    ours, theirs = both(lambda nn, tensor: nn.BCELoss(weight=tensor([1.0, 2.0, 3.0, 0.5])))
    compare(ours, theirs, drawn(3, 4).detach().sigmoid().requires_grad_(), drawn(3, 4, seed=1).detach().sigmoid())


@pytest.mark.parametrize("make", ["L1Loss", "MSELoss", "BCELoss", "NLLLoss", "CrossEntropyLoss"])
def test_the_arguments_that_reduction_replaced_warn(make):
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert getattr(gnn, make)(size_average=False).reduction == "sum"


TEXTS = [
    *[make for make, _ in LAYERS],
    lambda nn, tensor: nn.Conv2d(
        4, 8, 3, padding=1, stride=2, dilation=2, groups=2, bias=False, padding_mode="reflect"
    ),
    lambda nn, tensor: nn.Conv1d(1, 2, 3, padding="same"),
    lambda nn, tensor: nn.ConvTranspose1d(2, 3, 4, output_padding=1, stride=2),
    lambda nn, tensor: nn.Embedding(3, 4, padding_idx=1, max_norm=2.0, norm_type=1.0, scale_grad_by_freq=True),
    lambda nn, tensor: nn.ReLU(inplace=True),
    lambda nn, tensor: nn.Hardtanh(-2, 2, True),
    lambda nn, tensor: nn.Threshold(1, 2, True),
    lambda nn, tensor: nn.ELU(1.0, True),
    lambda nn, tensor: nn.Hardswish(True),
    lambda nn, tensor: nn.Bilinear(2, 3, 4),
    lambda nn, tensor: nn.CrossEntropyLoss(),
    lambda nn, tensor: nn.Sequential(),
    lambda nn, tensor: nn.Sequential(nn.Sequential(nn.Linear(1, 2)), nn.ReLU()),
    lambda nn, tensor: nn.ModuleList([nn.Linear(2, 2) for _ in range(3)] + [nn.ReLU()]),
    lambda nn, tensor: nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(2)]),
    lambda nn, tensor: nn.ModuleList(),
    lambda nn, tensor: nn.ModuleDict({"a": nn.ReLU(), "b": nn.Sequential(nn.Tanh())}),
    lambda nn, tensor: nn.ParameterList([tensor([[1.0]]), tensor(2.0), 3]),
    lambda nn, tensor: nn.ParameterDict({"a": tensor([1.0, 2.0]), "b": 3}),
    lambda nn, tensor: nn.ParameterDict({"a": tensor([1.0, 2.0])}),
    lambda nn, tensor: nn.ParameterDict(),
]


@pytest.mark.parametrize("make", TEXTS)
def test_a_module_prints_as_torch_prints_it(make):
    assert repr(make(gnn, gw.tensor)) == repr(make(tnn, torch.tensor))


def test_a_parameter_prints_as_torch_prints_it():
    made, expected = gnn.Parameter(gw.tensor([1.0, -2.5])), tnn.Parameter(torch.tensor([1.0, -2.5]))
    assert repr(made) == repr(expected)
    frozen, expected = gnn.Parameter(gw.ones(2), requires_grad=False), tnn.Parameter(torch.ones(2), requires_grad=False)
    assert repr(frozen) == repr(expected)


def test_casting_does_not_change_results():
    ours, theirs = both(lambda nn, tensor: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    x = drawn(5, 3).detach().double()
    np.testing.assert_allclose(values(ours.double()(as_ours(x))), values(theirs.double()(x)), rtol=1e-12)


def test_dropout_drops_and_scales():
    gw.manual_seed(3)
    found = values(gnn.Dropout(0.25)(gw.ones(4000)))
    assert set(np.unique(found.round(4))) == {0.0, np.float32(1 / 0.75).round(4)}
    assert abs((found == 0).mean() - 0.25) < 0.03
    channels = values(gnn.Dropout2d(0.5)(gw.ones(30, 10, 2, 2)))
    assert np.all(channels.reshape(300, 4).std(1) == 0)
    assert 0.3 < (channels == 0).mean() < 0.7
    x = gw.ones(100)
    assert gnn.functional.dropout(x, 0.5, inplace=True) is x
    assert 0 < (x == 0).sum().item() < 100
    with pytest.raises(ValueError):
        gnn.Dropout(1.5)


def test_running_statistics_are_not_touched_in_evaluation():
    net = gnn.BatchNorm1d(3).eval()
    net(gw.randn(5, 3))
    assert net.num_batches_tracked.item() == 0
    assert net.running_mean.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError):
        gnn.BatchNorm2d(3)(gw.ones(2, 3))


def test_an_inplace_activation_overwrites_its_input():
    x = gw.tensor([-1.0, 2.0])
    assert gnn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0.0, 2.0]


def test_a_step_of_a_model_needs_no_round_trip(round_trips):
    net = gnn.Sequential(gnn.Linear(4, 8), gnn.LayerNorm(8), gnn.GELU(), gnn.Dropout(0.1), gnn.Linear(8, 3))
    loss = gnn.CrossEntropyLoss()(net(gw.ones(5, 4)), gw.tensor([0, 1, 2, 0, 1]))
    loss.backward()
    net.zero_grad()
    assert round_trips() == 0
