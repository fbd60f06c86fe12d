"""Containers of modules and parameters under PyTorch and gradwire: orders, what they accept, what they refuse."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import pytest
from tests.side_by_side import Claims, name_of, raises, same

claim = Claims()


def names(modules):
    return [type(m).__name__ for m in modules]


def parameter(lib):
    return lib.nn.Parameter(lib.zeros(2))


@claim
def a_slice_is_taken_out_of_a_sequence(lib):
    found = []
    for kind in (lib.nn.Sequential, lambda *modules: lib.nn.ModuleList(modules)):
        held = kind(lib.nn.ReLU(), lib.nn.Tanh(), lib.nn.ELU())
        taken = held.pop(slice(0, 3, 2))
        found.append([type(taken).__name__, names(taken), names(held), list(held._modules), names([held.pop(key=0)])])
    return found


@claim
def a_sequential_is_extended_by_name(lib):
    return names(lib.nn.Sequential().extend(sequential=[lib.nn.ReLU(), lib.nn.Tanh()]))


@claim
def a_sequential_is_joined_with_its_like_only(lib):
    nn = lib.nn
    held = nn.Sequential(nn.ReLU())
    held += nn.Sequential(nn.Tanh())
    refused = [raises(lambda: held + [nn.ReLU()]), raises(lambda: held.__iadd__([nn.ReLU()]))]
    return [*refused, names(held)]


@claim
def a_sequential_is_repeated_by_positive_integers(lib):
    held = lib.nn.Sequential(lib.nn.ReLU())
    ways = (held.__mul__, held.__rmul__, held.__imul__)
    return [raises(partial(way, times)) for way in ways for times in (2.0, "2", None, 0, -1, 2)]


@claim
def a_parameter_dict_sorts_plain_mappings_only(lib):
    pairs = [("z", parameter(lib)), ("b", parameter(lib)), ("k", parameter(lib))]
    made = [lib.nn.ParameterDict(given) for given in (dict(pairs), OrderedDict(pairs), pairs)]
    made.append(lib.nn.ParameterDict(made[1]))
    grown = lib.nn.ParameterDict({"m": 1})
    grown.update(dict(pairs))
    made += [grown, made[1].copy(), made[1] | dict(a=1, c=2), grown.fromkeys(["q", "d"], 3)]
    return [list(d) for d in made] + [n for n, _ in made[0].named_parameters()]


@claim
def a_mapping_joined_with_a_parameter_dict_stays_what_it_is(lib):
    second = lib.nn.ParameterDict({"b": parameter(lib)})
    plain, other = {"z": 1, "c": 2} | second, lib.nn.ParameterDict({"z": 1}) | second
    return [type(plain).__name__, list(plain), type(other).__name__, list(other)]


@claim
def missing_entries_of_a_parameter_dict(lib):
    held = lib.nn.ParameterDict()
    attempts = [
        lambda: held["a"],
        lambda: held[1],
        lambda: held.pop("a"),
        held.popitem,
        lambda: held.__delitem__("a"),
        lambda: held.__setitem__(1, parameter(lib)),
        lambda: held.update(3),
        lambda: held.update([3]),
    ]
    return [raises(attempt) for attempt in attempts]


@claim
def an_attribute_of_a_parameter_dict_is_found_but_not_counted(lib):
    held = lib.nn.ParameterDict()
    held.extra = parameter(lib)
    return [held["extra"], "extra" in held, len(held), held.get("extra")]


@claim
def a_buffer_in_a_container_of_parameters_becomes_one(lib):
    nn, buffer = lib.nn, lib.nn.Buffer(lib.zeros(2))
    held = [nn.ParameterDict({"b": buffer})["b"], nn.ParameterList([buffer])[0]]
    return [[isinstance(p, nn.Parameter), p.requires_grad] for p in held]


@claim
def containers_of_parameters_are_not_called(lib):
    return [raises(lambda held=held: held(1)) for held in (lib.nn.ParameterDict(), lib.nn.ParameterList())]


@pytest.mark.parametrize("claimed", claim.all, ids=name_of)
def test_a_container_does_what_pytorchs_does(claimed):
    same(claimed)
