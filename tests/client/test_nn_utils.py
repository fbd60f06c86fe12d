"""``nn.utils``: computed weights, pruning, fusing, ``skip_init``; against PyTorch."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.utils.prune
from tests.side_by_side import raises

import gradwire as gw

CLOSE = dict(rtol=1e-4, atol=1e-5)
PAIRS = (torch, gw)


def arrays(value):
    if isinstance(value, dict):
        return {k: arrays(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [arrays(v) for v in value]
    return np.asarray(value.detach().numpy()) if isinstance(value, (torch.Tensor, gw.Tensor)) else value


def agree(expected, found):
    if isinstance(expected, dict):
        assert list(expected) == list(found)
        for key in expected:
            agree(expected[key], found[key])
    elif isinstance(expected, list):
        assert len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            agree(one, other)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, **CLOSE)
    else:
        assert expected == found


def same(program):
    """Run a program with a library and a function that gives it the same drawn tensor each time it is asked."""
    drawn = {}

    def run(lib):
        count = [0]

        def draw(*shape):
            count[0] += 1
            values = drawn.setdefault(count[0], torch.randn(*shape).numpy())
            return lib.tensor(values)

        def filled(module):
            with lib.no_grad():
                for p in module.parameters():
                    p.copy_(draw(*p.shape))
            return module

        return arrays(program(lib, draw, filled))

    agree(run(torch), run(gw))


def stepped(lib, module, x):
    """Output, gradients and a step of SGD, then the output again."""
    optimizer = lib.optim.SGD(module.parameters(), lr=0.1)
    out = module(x)
    (out * out).sum().backward()
    grads = [p.grad for p in module.parameters()]
    optimizer.step()
    return [out, *grads, module(x)]


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_by_parametrization(dim):
    def program(lib, draw, filled):
        layer = lib.nn.utils.parametrizations.weight_norm(filled(lib.nn.Linear(3, 4)), dim=dim)
        out = stepped(lib, layer, draw(2, 3))
        return [repr(layer), layer.state_dict(), out, copy.deepcopy(layer)(draw(2, 3))]

    same(program)


@pytest.mark.parametrize("dim", [0, None])
@pytest.mark.filterwarnings("ignore")
def test_weight_norm_by_hooks(dim):
    def program(lib, draw, filled):
        layer = lib.nn.utils.weight_norm(filled(lib.nn.Conv1d(2, 4, 3)), dim=dim)
        out = stepped(lib, layer, draw(2, 2, 5))
        state = dict(layer.state_dict())
        newer = lib.nn.utils.parametrizations.weight_norm(lib.nn.Conv1d(2, 4, 3), dim=dim)
        newer.load_state_dict(layer.state_dict())
        lib.nn.utils.remove_weight_norm(layer)
        return [state, out, layer.state_dict(), newer.state_dict(), newer.weight]

    same(program)


@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "ConvTranspose2d"])
@pytest.mark.parametrize("older", [False, True])
def test_spectral_norm(kind, older):
    def program(lib, draw, filled):
        layer = filled(lib.nn.Linear(3, 4) if kind == "Linear" else getattr(lib.nn, kind)(2, 3, 2))
        utils = lib.nn.utils
        layer = (utils.spectral_norm if older else utils.parametrizations.spectral_norm)(layer, n_power_iterations=3)
        place, names = (layer, ("weight_u", "weight_v")) if older else (layer.parametrizations.weight[0], ("_u", "_v"))
        for name in names:  # they start at random
            vector = getattr(place, name)
            vector.copy_(lib.nn.functional.normalize(draw(*vector.shape), dim=0))
        shape = (2, 3) if kind == "Linear" else (2, 2, 4, 4)
        out = stepped(lib, layer, draw(*shape))
        state = dict(layer.state_dict())
        layer.eval()
        found = [repr(layer), state, out, layer(draw(*shape))]
        if older:
            utils.remove_spectral_norm(layer)
        else:
            utils.parametrize.remove_parametrizations(layer, "weight")
        return [*found, repr(layer), layer.state_dict()]

    same(program)


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal_weights_stay_orthogonal(orthogonal_map, shape):
    layer = gw.nn.Linear(shape[1], shape[0])
    gw.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=orthogonal_map)
    optimizer = gw.optim.SGD(layer.parameters(), lr=0.1)
    before = layer.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        (layer(gw.randn(2, shape[1])) ** 2).sum().backward()
        optimizer.step()
    q = layer.weight if shape[0] >= shape[1] else layer.weight.T
    assert gw.allclose(q.T @ q, gw.eye(min(shape)), atol=1e-4)
    assert not gw.allclose(before, layer.weight)


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal_maps_agree(orthogonal_map, shape):
    def program(lib, draw, filled):
        layer = lib.nn.Linear(shape[1], shape[0])
        with lib.no_grad():
            layer.weight.copy_(lib.linalg.qr(draw(max(shape), max(shape)))[0][: shape[0], : shape[1]])
        utils = lib.nn.utils
        utils.parametrizations.orthogonal(
            layer, orthogonal_map=orthogonal_map, use_trivialization=False
        ) if orthogonal_map == "householder" else utils.parametrizations.orthogonal(
            layer, orthogonal_map=orthogonal_map
        )
        place = layer.parametrizations.weight
        with lib.no_grad():
            if hasattr(place[0], "base"):
                n = max(shape)
                place[0].base = lib.eye(n)
                place.original.copy_(draw(*shape))
        x = draw(2, shape[1])
        layer.bias.data.zero_()
        return [repr(layer), layer.weight, layer(x), lib.autograd.grad(layer(x).sin().sum(), place.original)]

    same(program)


class Doubled:
    """Makes a parametrization of a library."""

    @staticmethod
    def of(lib):
        class Doubled(lib.nn.Module):
            def forward(self, x):
                return 2 * x

            def right_inverse(self, y):
                return y / 2

        return Doubled()


def test_parametrizations_follow_one_another():
    def program(lib, draw, filled):
        P = lib.nn.utils.parametrize
        layer = filled(lib.nn.Linear(3, 4))
        weight = layer.weight
        P.register_parametrization(layer, "weight", Doubled.of(lib))
        P.register_parametrization(layer, "weight", Doubled.of(lib))
        found = [repr(layer), layer.state_dict(), layer.weight, layer.parametrizations.weight.original is weight]
        layer.weight = draw(4, 3)
        found += [layer.weight, layer.parametrizations.weight.original, P.is_parametrized(layer)]
        found += [P.is_parametrized(layer, "bias"), P.type_before_parametrizations(layer) is lib.nn.Linear]
        with P.cached():
            found.append(layer.weight is layer.weight)
        found.append(layer.weight is layer.weight)
        other = P.transfer_parametrizations_and_params(layer, lib.nn.Linear(3, 4))
        found += [other.weight, other.parametrizations.weight.original]
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)
        return [*found, repr(layer), layer.weight, layer.weight is weight, type(layer) is lib.nn.Linear]

    same(program)


REFUSALS = {
    "no such tensor": lambda lib: lib.nn.utils.parametrize.register_parametrization(
        lib.nn.Linear(2, 2), "weights", Doubled.of(lib)
    ),
    "another shape": lambda lib: lib.nn.utils.parametrize.register_parametrization(
        lib.nn.Linear(2, 2), "weight", lib.nn.Flatten(0)
    ),
    "nothing to remove": lambda lib: lib.nn.utils.parametrize.remove_parametrizations(lib.nn.Linear(2, 2), "weight"),
    "no weight norm": lambda lib: lib.nn.utils.remove_weight_norm(lib.nn.Linear(2, 2)),
    "no spectral norm": lambda lib: lib.nn.utils.remove_spectral_norm(lib.nn.Linear(2, 2)),
    "no iterations": lambda lib: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2), n_power_iterations=0),
    "a vector cannot be orthogonal": lambda lib: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(2, 2), "bias"),
    "another map": lambda lib: lib.nn.utils.parametrizations.orthogonal(lib.nn.Linear(2, 2), orthogonal_map="x"),
    "nothing pruned": lambda lib: lib.nn.utils.prune.remove(lib.nn.Linear(2, 2), "weight"),
    "a share above 1": lambda lib: lib.nn.utils.prune.l1_unstructured(lib.nn.Linear(2, 2), "weight", 1.5),
    "an amount of text": lambda lib: lib.nn.utils.prune.l1_unstructured(lib.nn.Linear(2, 2), "weight", "all"),
    "too many to prune": lambda lib: lib.nn.utils.prune.l1_unstructured(lib.nn.Linear(2, 2), "weight", 9),
    "slices of a vector": lambda lib: lib.nn.utils.prune.random_structured(lib.nn.Linear(2, 2), "bias", 1, 0),
    "a dimension too far": lambda lib: lib.nn.utils.prune.ln_structured(lib.nn.Linear(2, 2), "weight", 1, 2, 2),
    "structured globally": lambda lib: lib.nn.utils.prune.global_unstructured(
        [(lib.nn.Linear(2, 2), "weight")], lib.nn.utils.prune.RandomStructured, amount=1
    ),
    "fusing in training": lambda lib: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv1d(1, 1, 1), lib.nn.BatchNorm1d(1)),
    "skipping for no module": lambda lib: lib.nn.utils.skip_init(dict),
    "skipping for what takes no device": lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_refused_is_refused_as_by_pytorch(what):
    expected = raises(lambda: REFUSALS[what](torch))
    assert expected is not None
    assert raises(lambda: REFUSALS[what](gw)) == expected


def test_pruning_twice_and_making_it_permanent():
    def program(lib, draw, filled):
        prune = lib.nn.utils.prune
        layer = filled(lib.nn.Linear(4, 6))
        prune.l1_unstructured(layer, "weight", amount=0.25)
        prune.ln_structured(layer, "weight", amount=2, n=2, dim=0)
        prune.l1_unstructured(layer, "weight", amount=3, importance_scores=draw(6, 4))
        hook = next(iter(layer._forward_pre_hooks.values()))
        found = [type(hook).__name__, len(hook), prune.is_pruned(layer), stepped(lib, layer, draw(2, 4))]
        found.append(dict(layer.state_dict()))
        prune.remove(layer, "weight")
        return [*found, layer.state_dict(), prune.is_pruned(layer)]

    same(program)


def test_pruning_several_parameters_as_one():
    def program(lib, draw, filled):
        prune = lib.nn.utils.prune
        model = filled(lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Linear(4, 2)))
        prune.global_unstructured([(model[0], "weight"), (model[1], "weight")], prune.L1Unstructured, amount=7)
        prune.custom_from_mask(model[0], "bias", lib.tensor([1, 0, 1, 0]))
        return [model.state_dict(), model(draw(2, 3))]

    same(program)


@pytest.mark.parametrize("name, arguments", [("random_unstructured", (5,)), ("random_structured", (2, 1))])
def test_pruning_at_random_prunes_as_many_as_it_should(name, arguments):
    counts = []
    for lib in PAIRS:
        layer = lib.nn.Linear(4, 6)
        getattr(lib.nn.utils.prune, name)(layer, "weight", *arguments)
        counts.append(int(layer.weight_mask.sum().item()))
    assert counts[0] == counts[1]


def test_fused_layers_do_what_both_do():
    def program(lib, draw, filled):
        found = []
        for layer, norm, shape, extra in (
            (lib.nn.Conv2d(2, 3, 3, bias=False), lib.nn.BatchNorm2d(3), (2, 2, 5, 5), ()),
            (lib.nn.ConvTranspose1d(2, 3, 3), lib.nn.BatchNorm1d(3), (2, 2, 5), (True,)),
            (lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), (4, 2), None),
        ):
            filled(layer)
            filled(norm)(draw(4, 3, *([5] * (len(shape) - 2))))
            layer.eval()
            norm.eval()
            utils = lib.nn.utils
            fuse = utils.fuse_linear_bn_eval if extra is None else utils.fuse_conv_bn_eval
            fused = fuse(layer, norm, *(extra or ()))
            x = draw(*shape)
            found += [fused(x), norm(layer(x)), [p.requires_grad for p in fused.parameters()]]
        return found

    same(program)


def test_initial_values_can_be_skipped():
    gw.manual_seed(3)
    before = gw.rand(3)
    gw.manual_seed(3)
    layer = gw.nn.utils.skip_init(gw.nn.Linear, 4, 5, dtype=gw.float64)
    assert layer.weight.shape == (5, 4)
    assert layer.weight.dtype is gw.float64
    assert layer.weight.requires_grad
    assert gw.equal(gw.rand(3), before)


def test_modules_are_functions_of_parameters_in_the_older_place_too():
    layer, x = gw.nn.Linear(3, 2), gw.randn(4, 3)
    weight = gw.zeros(2, 3)
    with pytest.warns(FutureWarning):
        out = gw.nn.utils.stateless.functional_call(layer, {"weight": weight}, x)
    assert gw.equal(out, layer.bias.expand(4, 2))


def test_what_is_not_there_is_told_by_name():
    with pytest.raises(NotImplementedError, match="Container"):
        gw.nn.Container
    assert not hasattr(gw.nn, "Container")
    with pytest.raises(ValueError, match="init_process_group"):
        gw.nn.parallel.DistributedDataParallel(gw.nn.Linear(2, 2))
    with pytest.raises(NotImplementedError, match="one device"):
        gw.nn.DataParallel(gw.nn.Linear(2, 2), device_ids=[0, 1])


def test_a_module_for_parallel_devices_runs_on_one():
    def program(lib, draw, filled):
        model = lib.nn.DataParallel(filled(lib.nn.Linear(3, 2)))
        return [repr(model), model.state_dict(), model(draw(4, 3)), model.module is model._modules["module"]]

    same(program)


def test_clipping_agrees():
    def program(lib, draw, filled):
        parameters = [lib.nn.Parameter(draw(2, 3)), lib.nn.Parameter(draw(4)), lib.nn.Parameter(draw(2))]
        for p in parameters[:2]:
            (p * p).sum().backward()
        utils = lib.nn.utils
        found = [utils.get_total_norm([p.grad for p in parameters[:2]], p) for p in (2.0, 1.0, float("inf"), 0.5)]
        found += [utils.clip_grad_norm_(iter(parameters), 1.5), utils.clip_grad_norm_(parameters[0], 0.5, 1.0, True)]
        utils.clip_grad_value_(parameters, 0.1)
        utils.clip_grads_with_norm_(parameters, 0.01, lib.tensor(3.0))
        found += [p.grad for p in parameters[:2]]
        found += [utils.clip_grad_norm_([parameters[2]], 1.0), utils.get_total_norm([])]
        vector = utils.parameters_to_vector(parameters)
        utils.vector_to_parameters(vector.detach() * 2, parameters)
        return [*found, vector, *parameters]

    same(program)


def test_initial_values_have_their_older_names():
    tensor = gw.empty(2, 2)
    with pytest.warns(FutureWarning, match="constant_"):
        assert gw.nn.init.constant(tensor, 3.0) is tensor
    assert tensor.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert all(hasattr(gw.nn.init, name) for name in dir(torch.nn.init) if name[0].islower() and name != "torch")


@pytest.mark.parametrize("norm_type", [0.0, -1.0, 0.5, 1.0, 2.0, float("inf")])
@pytest.mark.parametrize("count", [1, 2])
def test_norms_of_gradients_are_norms_of_their_norms(norm_type, count):
    def program(torch, draw, filled):
        utils, parameters = torch.nn.utils, [torch.nn.Parameter(torch.ones(3)) for _ in range(count)]
        for parameter in parameters:
            parameter.grad = torch.tensor([3.0, 4.0, 0.0])
        alone = utils.get_total_norm([p.grad for p in parameters], norm_type)
        return [alone, utils.clip_grad_norm_(parameters, 1.0, norm_type), *(p.grad for p in parameters)]

    same(program)
