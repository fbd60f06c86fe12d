"""``gradwire.nn.Module`` registers, finds, saves, casts and calls like torch's."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn as tnn

import gradwire as gw
from gradwire import nn as gnn


def values(tensor) -> np.ndarray:
    return tensor.detach().numpy()


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
