"""Lazy modules, which infer the number of features from their first input."""

from __future__ import annotations

import copy

import pytest
from tests.side_by_side import Claims, leaf, name_of, same

import gradwire

nn = gradwire.nn
claim = Claims()

KINDS = {
    "LazyLinear": ((4,), (2, 3)), "LazyConv1d": ((4, 3), (2, 6, 5)), "LazyConv2d": ((4, 3), (2, 6, 5, 5)),
    "LazyConv3d": ((4, 2), (2, 6, 3, 3, 3)), "LazyConvTranspose1d": ((4, 3), (2, 6, 5)),
    "LazyConvTranspose2d": ((4, 3), (2, 6, 5, 5)), "LazyConvTranspose3d": ((4, 2), (2, 6, 3, 3, 3)),
    "LazyBatchNorm1d": ((), (2, 6)), "LazyBatchNorm2d": ((), (2, 6, 5, 5)), "LazyBatchNorm3d": ((), (2, 6, 3, 3, 3)),
    "LazyInstanceNorm1d": ((), (2, 6, 5)), "LazyInstanceNorm2d": ((), (2, 6, 5, 5)),
    "LazyInstanceNorm3d": ((), (2, 6, 3, 3, 3)),
}  # fmt: skip
"""Of each class: the arguments, and the shape of an input."""


def shapes(module):
    return {name: list(value.shape) for name, value in module.state_dict().items()}


@claim
def a_first_call_gives_every_kind_its_shapes(lib):
    found = []
    for name, (arguments, shape) in KINDS.items():
        module = getattr(lib.nn, name)(*arguments)
        before = [repr(module), repr(list(module.state_dict())), module.has_uninitialized_params()]
        out = module(leaf(lib, *shape))
        found.append([before, repr(module), shapes(module), list(out.shape), type(module).__name__])
    return found


@claim
def without_bias_there_is_none(lib):
    module = lib.nn.LazyConv2d(4, 3, bias=False)
    return [repr(module), list(module.state_dict()), list(module(leaf(lib, 2, 3, 4, 4)).shape), shapes(module)]


@claim
def a_parameter_without_a_shape_prints_its_class(lib):
    module = lib.nn.LazyBatchNorm1d()
    return [repr(module.weight), repr(module.running_mean), module.weight.requires_grad]


@claim
def a_parameter_without_a_shape_has_no_shape(lib):
    return list(lib.nn.LazyLinear(3).weight.shape)


@claim
def nothing_can_be_computed_with_it(lib):
    return lib.nn.LazyLinear(3).weight + 1


@claim
def dtype_is_chosen_before_the_first_call(lib):
    module = lib.nn.LazyLinear(3).double()
    return [repr(module(leaf(lib, 2, 4).detach().double()).dtype), repr(module.weight.dtype), repr(module.bias.dtype)]


@claim
def a_state_of_known_shapes_is_loaded_into_a_lazy_module(lib):
    lazy, state = lib.nn.LazyLinear(2), {"weight": leaf(lib, 2, 3).detach(), "bias": leaf(lib, 2).detach()}
    told = repr(lazy.load_state_dict(state))
    return [told, lazy(leaf(lib, 4, 3)), repr(lazy), lazy.weight]


@claim
def a_lazy_state_is_loaded_into_a_lazy_module(lib):
    lazy = lib.nn.LazyLinear(2)
    told = repr(lazy.load_state_dict(lib.nn.LazyLinear(2).state_dict()))
    return [told, lazy.has_uninitialized_params()]


@claim
def a_lazy_state_is_not_loaded_into_a_plain_module(lib):
    lib.nn.Linear(3, 2).load_state_dict(lib.nn.LazyLinear(2).state_dict())


@claim
def another_input_after_the_first_must_fit(lib):
    module = lib.nn.LazyLinear(2)
    module(leaf(lib, 4, 3))
    return module(leaf(lib, 4, 5))


@claim
def an_image_for_a_sequence(lib):
    return lib.nn.LazyConv1d(2, 3)(leaf(lib, 1, 2, 3, 4))


@claim
def a_lazy_network_learns(lib):
    net = lib.nn.Sequential(lib.nn.LazyConv2d(2, 3), lib.nn.ReLU(), lib.nn.Flatten(), lib.nn.LazyLinear(1))
    x = leaf(lib, 3, 2, 5, 5).detach()
    net(x)
    with lib.no_grad():
        for p in net.parameters():
            p.fill_(0.01)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    net(x).sum().backward()
    optimizer.step()
    return [repr(net), net(x), *net.parameters()]


@pytest.mark.parametrize("wanted", claim, ids=name_of)
def test_same_as_torch(wanted):
    same(wanted)


def test_a_copy_of_a_lazy_module_is_lazy_on_its_own():
    lazy = nn.LazyLinear(2)
    copied = copy.deepcopy(lazy)
    copied(gradwire.ones(4, 3))
    assert lazy.has_uninitialized_params() and list(copied.weight.shape) == [2, 3]


def test_initial_values_are_those_of_the_plain_class():
    module = nn.LazyLinear(1000)
    module(gradwire.ones(1, 100))
    weight = module.weight.detach().numpy()
    assert abs(weight).max() <= 0.1 and abs(weight.std() - 0.1 / 3**0.5) < 1e-3


def test_a_lazy_module_of_ones_own():
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape[-1:])
            nn.init.constant_(self.weight, 2.0)

        def forward(self, x):
            return x * self.weight

    module = Scale()
    assert module(gradwire.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    assert isinstance(module.weight, nn.Parameter) and module.weight.requires_grad
