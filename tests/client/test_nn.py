"""``gradwire.nn`` against ``torch.nn``: the same modules, with the same weights, on the same inputs."""

from __future__ import annotations

import copy

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
    ours.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()})
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
def test_the_arguments_that_reduction_replaced_are_refused(make):
    with pytest.raises(NotImplementedError, match="reduction="):
        getattr(gnn, make)(size_average=False)


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


class Net(gnn.Module):
    """A small model with everything that a module can hold."""

    def __init__(self, nn=gnn):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 2)
        self.scale = nn.Parameter(gw.ones(2))
        self.register_buffer("offset", gw.zeros(2))
        self.register_buffer("scratch", gw.zeros(2), persistent=False)
        self.register_parameter("absent", None)

    def forward(self, x):
        return self.head(self.body(x)) * self.scale + self.offset


class TorchNet(tnn.Module):
    def __init__(self):
        super().__init__()
        self.body = tnn.Sequential(tnn.Linear(3, 4), tnn.BatchNorm1d(4))
        self.head = tnn.Linear(4, 2)
        self.scale = tnn.Parameter(torch.ones(2))
        self.register_buffer("offset", torch.zeros(2))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)
        self.register_parameter("absent", None)


@pytest.mark.parametrize(
    "walk",
    [
        lambda m: [n for n, _ in m.named_parameters()],
        lambda m: [n for n, _ in m.named_parameters(prefix="p", recurse=False)],
        lambda m: [n for n, _ in m.named_buffers()],
        lambda m: [n for n, _ in m.named_modules()],
        lambda m: [n for n, _ in m.named_children()],
        lambda m: [type(c).__name__ for c in m.modules()][1:],
        lambda m: list(m.state_dict()),
        lambda m: list(m.state_dict(prefix="x.")),
        lambda m: [tuple(p.shape) for p in m.parameters()],
    ],
)
def test_members_are_found_in_torchs_order(walk):
    assert walk(Net()) == walk(TorchNet())


def test_a_shared_parameter_is_listed_once():
    net = gnn.Sequential(gnn.Linear(2, 2), gnn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_attributes_move_between_the_tables():
    net = gnn.Module()
    net.x = 3
    net.x = gnn.Parameter(gw.ones(2))
    assert [n for n, _ in net.named_parameters()] == ["x"]
    with pytest.raises(TypeError, match="'x'"):
        net.x = gw.ones(2)
    net.x = None
    assert net.x is None
    assert list(net.parameters()) == []
    net.x = gnn.Linear(1, 1)
    assert [n for n, _ in net.named_children()] == ["x"]
    assert "x" not in net._parameters
    del net.x
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        net.x
    net.y = gnn.Buffer(gw.ones(2), persistent=False)
    assert [n for n, _ in net.named_buffers()] == ["y"]
    assert net.state_dict() == {}
    net.y = gw.zeros(2)
    assert [n for n, _ in net.named_buffers()] == ["y"]


def test_assigning_before_init_is_refused():
    class Early(gnn.Module):
        def __init__(self):
            self.weight = gnn.Parameter(gw.ones(1))

    with pytest.raises(AttributeError, match="__init__"):
        Early()


@pytest.mark.parametrize("name, error", [("a.b", KeyError), ("", KeyError), ("training", KeyError), (3, TypeError)])
def test_a_name_that_cannot_be_is_refused(name, error):
    with pytest.raises(error):
        gnn.Module().register_buffer(name, None)


def test_a_computed_tensor_is_no_parameter():
    made = gnn.Parameter(gw.ones(2)) * 2
    with pytest.raises(TypeError):
        gnn.Module().register_parameter("w", made)


def test_loading_reports_what_does_not_fit():
    net = Net()
    state = net.state_dict()
    del state["head.bias"]
    state["extra"] = gw.ones(1)
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["head.bias"]
    assert found.unexpected_keys == ["extra"]
    with pytest.raises(RuntimeError, match=r"(?s)'extra'.*'head\.bias'"):
        net.load_state_dict(state)
    assert str(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    state = net.state_dict()
    state["scale"] = gw.ones(3)
    with pytest.raises(RuntimeError, match=r"scale has shape \[3\], the module's has \[2\]"):
        net.load_state_dict(state)
    with pytest.raises(RuntimeError, match="not a tensor"):
        net.load_state_dict({"scale": "one"}, strict=False)


def test_loading_copies_and_assigning_does_not():
    net, other = gnn.Linear(2, 2), gnn.Linear(2, 2)
    weight = net.weight
    net.load_state_dict(other.state_dict())
    assert net.weight is weight
    np.testing.assert_array_equal(values(net.weight), values(other.weight))
    state = {"weight": gw.zeros(2, 2, dtype=gw.float64), "bias": gnn.Parameter(gw.ones(2))}
    net.load_state_dict(state, assign=True)
    assert net.weight.dtype is gw.float64
    assert isinstance(net.weight, gnn.Parameter)
    assert net.weight.requires_grad
    assert net.bias is state["bias"]


def test_a_state_dict_shares_memory_with_the_module():
    net = gnn.Linear(2, 2)
    state = net.state_dict()
    assert not state["bias"].requires_grad
    state["bias"].fill_(7.0)
    assert net.bias.tolist() == [7.0, 7.0]
    assert net.state_dict(keep_vars=True)["bias"] is net.bias


def test_a_module_can_save_state_of_its_own():
    class Counting(gnn.Linear):
        seen = 0

        def get_extra_state(self):
            return {"seen": self.seen}

        def set_extra_state(self, state):
            self.seen = state["seen"]

    first, second = Counting(1, 1), Counting(1, 1)
    first.seen = 5
    second.load_state_dict(first.state_dict())
    assert second.seen == 5


def test_train_and_eval_reach_every_module():
    net = Net().eval()
    assert not any(m.training for m in net.modules())
    assert all(m.training for m in net.train().modules())
    with pytest.raises(ValueError):
        net.train("yes")


def test_a_cast_keeps_the_parameters_objects_and_the_integer_buffers():
    net = Net()
    before = list(net.parameters())
    net(gw.ones(4, 3)).sum().backward()
    assert net.double() is net
    assert all(a is b for a, b in zip(before, net.parameters(), strict=True))
    assert {p.dtype for p in net.parameters()} == {gw.float64} == {p.grad.dtype for p in net.parameters()}
    assert net.body[1].num_batches_tracked.dtype is gw.int64
    net(gw.ones(4, 3, dtype=gw.float64)).sum().backward()
    assert net.to(gw.float32).scale.dtype is gw.float32
    assert net.half().scale.dtype is gw.float16
    with pytest.raises(TypeError):
        net.to(gw.int64)


def test_casting_does_not_change_results():
    ours, theirs = both(lambda nn, tensor: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    x = drawn(5, 3).detach().double()
    np.testing.assert_allclose(values(ours.double()(as_ours(x))), values(theirs.double()(x)), rtol=1e-12)


def test_apply_visits_children_first():
    seen = []
    net = gnn.Sequential(gnn.Linear(1, 1), gnn.Sequential(gnn.ReLU()))
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_requires_grad_freezes_and_zero_grad_forgets():
    net = gnn.Linear(2, 1)
    net(gw.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [[0.0, 0.0]]
    net.zero_grad()
    assert net.weight.grad is None
    net.requires_grad_(False)
    assert not net(gw.ones(1, 2)).requires_grad


def test_a_deep_copy_is_independent():
    net = Net()
    net(gw.randn(4, 3)).sum().backward()
    twin = copy.deepcopy(net)
    assert isinstance(twin.scale, gnn.Parameter)
    assert twin.scale is not net.scale
    assert twin.scale.grad is None
    with gw.no_grad():
        twin.scale.mul_(3)
    assert net.scale.tolist() == [1.0, 1.0]
    assert twin.scale.tolist() == [3.0, 3.0]
    assert list(twin.state_dict()) == list(net.state_dict())
    tied = gnn.Sequential(gnn.Linear(2, 2), gnn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    twin = copy.deepcopy(tied)
    assert twin[0].weight is twin[1].weight


def test_members_are_reached_by_path():
    net = Net()
    assert net.get_submodule("body.0") is net.body[0]
    assert net.get_submodule("") is net
    assert net.get_parameter("body.0.weight") is net.body[0].weight
    assert net.get_buffer("body.1.running_mean") is net.body[1].running_mean
    for path in ("nothing", "scale", "body.7"):
        with pytest.raises(AttributeError):
            net.get_submodule(path)
    with pytest.raises(AttributeError):
        net.get_parameter("offset")
    net.set_submodule("body.0", gnn.Identity())
    assert isinstance(net.body[0], gnn.Identity)


def test_forward_hooks_see_and_replace():
    net, seen = gnn.Linear(1, 1, bias=False), []
    with gw.no_grad():
        net.weight.fill_(2.0)
    pre = net.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    post = net.register_forward_hook(lambda module, args, result: seen.append(args[0].item()) or result * 10)
    first = net.register_forward_pre_hook(
        lambda m, args, kwargs: ((args[0] * 3,), kwargs), with_kwargs=True, prepend=True
    )
    assert net(gw.tensor([1.0])).item() == 80.0
    assert seen == [4.0]
    for handle in (pre, post, first):
        handle.remove()
    assert net(gw.tensor([1.0])).item() == 2.0
    with pytest.raises(NotImplementedError):
        net.register_full_backward_hook(lambda *a: None)


def test_a_hook_that_is_always_called_sees_a_failure():
    seen = []
    net = gnn.Linear(2, 1)
    net.register_forward_hook(lambda m, args, result: seen.append(result), always_call=True)
    with pytest.raises(gw.ShapeError):
        net(gw.ones(3))
    assert seen == [None]


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="forward"):
        gnn.Module()(1)


def test_sequential_is_a_list_of_named_modules():
    net = gnn.Sequential(gnn.Linear(1, 2), gnn.ReLU(), gnn.Linear(2, 3))
    assert len(net) == 3
    assert isinstance(net[-2], gnn.ReLU)
    assert len(net[1:]) == 2
    assert list(net[1:]._modules) == ["1", "2"]
    del net[1]
    assert list(net._modules) == ["0", "1"]
    assert isinstance(net[1], gnn.Linear)
    net.append(gnn.Tanh()).insert(0, gnn.Identity())
    assert [type(m).__name__ for m in net] == ["Identity", "Linear", "Linear", "Tanh"]
    assert isinstance(net.pop(-1), gnn.Tanh)
    assert len(net + net) == 6
    assert len(net * 2) == 6
    named = gnn.Sequential({"first": gnn.Linear(1, 1)})
    assert named.first is named[0]
    named[0] = gnn.Identity()
    assert isinstance(named.first, gnn.Identity)
    with pytest.raises(IndexError):
        net[9]


def test_module_list_and_dict_register_what_they_hold():
    net = gnn.ModuleList([gnn.Linear(1, 1)])
    net += [gnn.Linear(1, 2)]
    net.insert(1, gnn.ReLU())
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(net + net) == 6
    assert isinstance(net[:2], gnn.ModuleList)
    table = gnn.ModuleDict({"a": gnn.Linear(1, 1)})
    table.update([("b", gnn.ReLU())])
    assert list(table) == ["a", "b"]
    assert "b" in table
    assert isinstance(table.pop("b"), gnn.ReLU)
    assert [n for n, _ in table.named_parameters()] == ["a.weight", "a.bias"]


def test_parameter_list_and_dict_register_what_they_hold():
    held = gnn.ParameterList([gw.ones(1), gw.zeros(2)])
    held.append(gnn.Parameter(gw.ones(3)))
    assert [tuple(p.shape) for p in held.parameters()] == [(1,), (2,), (3,)]
    assert len(held[1:]) == 2
    table = gnn.ParameterDict({"a": gw.ones(1)}) | {"b": gw.ones(2)}
    assert [n for n, _ in table.named_parameters()] == ["a", "b"]
    assert table.pop("a").shape == (1,)
    assert list(table.keys()) == ["b"]
    assert table.get("a") is None


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
