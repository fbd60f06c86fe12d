"""Modules against torch's: copied state, hook handles, checks, and the names under which pickle finds functions."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections import OrderedDict

import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()


@claim
def a_class_that_adds_to_the_state_of_copies(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.kept = torch.nn.Linear(2, 2), 3
            self.layer.register_forward_hook(lambda module, args, result: result * 0 + 5)

        def __setstate__(self, state):
            super().__setstate__(state)
            self.added = 4

        def forward(self, x):
            return self.layer(x)

    model = Model()
    shallow, deep = copy.copy(model), copy.deepcopy(model)
    seen = [(c.kept, c.added, c.layer is model.layer, c(torch.ones(2))) for c in (shallow, deep)]
    model.__setstate__({**model.__dict__, "kept": 6})
    return seen, model.kept, model(torch.ones(2))


@claim
def a_handle_removes_what_a_hook_left_in_other_tables(torch):
    hooks, extra = OrderedDict(), OrderedDict()
    handle = torch.utils.hooks.RemovableHandle(hooks, extra_dict=extra)
    other = torch.utils.hooks.RemovableHandle(hooks)
    hooks[handle.id], extra[handle.id], hooks[other.id] = 1, 2, 3
    handle.remove()
    seen = [list(hooks.values()), list(extra.values())]
    with other:
        pass
    return seen, list(hooks.values())


@claim
def removed_hooks_leave_nothing_in_a_module(torch):
    module = torch.nn.Linear(2, 2)
    handles = [
        module.register_forward_hook(lambda m, a, k, r: None, with_kwargs=True, always_call=True),
        module.register_forward_pre_hook(lambda m, a, k: None, with_kwargs=True),
    ]
    tables = ("_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called")
    before = [len(getattr(module, table)) for table in tables]
    for handle in handles:
        handle.remove()
    return before, [len(getattr(module, table)) for table in tables]


@claim
def a_handle_in_a_copied_module_removes_the_hook_of_the_copy(torch):
    module = torch.nn.Linear(2, 2)
    module.handle = module.register_forward_hook(lambda m, a, k, r: r * 0, with_kwargs=True)
    deep = copy.deepcopy(module)
    deep.handle.remove()
    counts = [len(one._forward_hooks) for one in (module, deep)]
    return counts, [len(one._forward_hooks_with_kwargs) for one in (module, deep)]


@claim
def a_copied_lazy_module_learns_its_shapes_once(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy, x = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.LazyLinear(5)), torch.ones(2, 4)
        copied = copy.deepcopy(lazy)
        return [[tuple(one(x).shape), tuple(one(x).shape), type(one[0]).__name__] for one in (copied, lazy)]


@claim
def instance_norm_of_another_number_of_channels(torch):
    found = []
    for count in (1, 2, 3):
        for affine in (True, False):
            for batch in ((), (2,)):
                x = torch.ones(*batch, 4, *(5,) * count)
                norm = getattr(torch.nn, f"InstanceNorm{count}d")(3, affine=affine)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    found.append(raises(lambda x=x, norm=norm: norm(x)))
                found.append(len(caught))
    return found


@claim
def a_lazy_module_that_has_its_shapes_loads_none_without(torch):
    made, lazy = torch.nn.LazyLinear(3), torch.nn.LazyLinear(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made(torch.ones(1, 2))

    class Own(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        pass

    given, taking = Own(), Own()
    given.register_parameter("p", torch.nn.UninitializedParameter())
    given.register_buffer("b", torch.nn.UninitializedBuffer())
    taking.register_parameter("p", torch.nn.Parameter(torch.ones(2)))
    taking.register_buffer("b", torch.ones(2))
    refused = [raises(lambda: taking.load_state_dict(given.state_dict())), raises(given.share_memory)]
    given.load_state_dict(taking.state_dict())
    lazy.load_state_dict(made.state_dict())
    return refused, raises(lambda: made.load_state_dict(torch.nn.LazyLinear(3).state_dict())), given.p, given.b


@claim
def copies_of_layouts_and_memory_formats(torch):
    every = (torch.strided, torch.contiguous_format, torch.channels_last, torch.preserve_format)
    return [copy.copy(one) is one and copy.deepcopy(one) is one and bool(pickle.dumps(one)) for one in every]


@pytest.mark.parametrize("space", ["", "nn.functional", "linalg", "special", "fft"])
def test_pickle_finds_the_functions_that_it_finds_of_torch(space):
    theirs, ours = torch, gradwire
    for part in filter(None, space.split(".")):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    lost = []
    for name in dir(ours):
        if name[0] != "_" and type(getattr(ours, name)) is type(same) and hasattr(theirs, name):
            try:
                pickle.dumps(getattr(theirs, name))
            except (pickle.PicklingError, AttributeError):
                continue
            try:
                pickle.dumps(getattr(ours, name))  # which looks the function up by its name
            except (pickle.PicklingError, AttributeError):
                lost.append(name)
    assert not lost


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_claim(claim):
    same(claim)
