"""The meta device: tensors with only shape and dtype. Rules are applied; nothing is computed."""

from __future__ import annotations

import copy

import pytest
import torch
from tests.side_by_side import Claims, built_in, name_of

import gradwire

pytestmark = pytest.mark.usefixtures("session")

claims = Claims()


def seen(tensor):
    """All that there is of a tensor without values."""
    node = None if tensor.grad_fn is None else tensor.grad_fn.name()
    return tuple(tensor.shape), tensor.stride(), repr(tensor.dtype), str(tensor.device), tensor.requires_grad, node


@claims
def made_on_it(lib):
    return [
        seen(made) for made in (
            lib.empty(2, 3, device="meta"), lib.randn(4, device="meta"), lib.arange(5, device="meta"),
            lib.tensor([[1.5]], device="meta", dtype=lib.float64), lib.zeros_like(lib.ones(3), device="meta"),
            lib.ones(2, device="meta").new_zeros(7), lib.eye(3, device=lib.device("meta")),
        )
    ]  # fmt: skip


@claims
def sent_to_it(lib):
    values = lib.arange(6.0).reshape(2, 3).t()
    return seen(values.to("meta")), values.is_meta, values.to("meta").is_meta, values.to("meta").is_cuda


@claims
def operations_follow_shapes(lib):
    x = lib.ones(4, 5, device="meta", requires_grad=True)
    y = lib.tanh(x[1:] @ x.t()).sum(0, keepdim=True)
    z = lib.stack([y, y]).permute(2, 0, 1).contiguous()
    return [seen(t) for t in (y, z, z.view(-1), (z * 2).to(lib.float64), (x.detach() > 0), x.detach().data)]


@claims
def a_number_joins_it(lib):
    return seen(lib.empty(3, device="meta") + lib.tensor(1.0)), seen(2 * lib.empty(3, device="meta"))


@claims
def writes_go_nowhere(lib):
    x = lib.empty(3, 2, device="meta")
    x.copy_(lib.ones(3, 2))
    x[0] = 5
    return seen(x.mul_(2).fill_(1)), x._version


@claims
def texts(lib):
    return [
        repr(lib.empty(2, 3, device="meta")), repr(lib.ones(2, device="meta", dtype=lib.float64, requires_grad=True)),
        repr(lib.empty((), device="meta")), repr(lib.empty(0, 3, device="meta")),
        repr(lib.ones(2, device="meta", requires_grad=True) * 2), repr(lib.arange(3, device="meta")),
        repr(lib.nn.Linear(2, 1, device="meta").bias),
    ]  # fmt: skip


@claims
def a_model_is_built_without_memory(lib):
    with lib.device("meta"):
        model = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 3), lib.nn.BatchNorm2d(4), lib.nn.ReLU(), lib.nn.Flatten())
    return seen(model(lib.empty(2, 3, 8, 8, device="meta"))), [seen(t) for t in model.state_dict().values()]


@claims
def recurrent_and_attention_layers_follow_shapes(lib):
    lstm = lib.nn.LSTM(3, 4, device="meta")
    layer = lib.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device="meta")
    out, (h, c) = lstm(lib.empty(5, 2, 3, device="meta"))
    return [tuple(t.shape) for t in (out, h, c, layer(lib.empty(2, 5, 8, device="meta")))]


@claims
def a_module_that_moves_there_and_back_has_new_parameters(lib):
    model = lib.nn.Linear(2, 3)
    first = model.weight
    second = model.to("meta").weight
    third = model.to_empty(device="cpu").weight
    model.load_state_dict({"weight": lib.ones(3, 2), "bias": lib.zeros(3)})
    return first is second, second is third, third.requires_grad, model(lib.ones(1, 2)).tolist(), first.is_meta


@claims
def loading_into_it_is_warned_of(lib):
    model = lib.nn.Linear(2, 3, device="meta")
    model.load_state_dict({"weight": lib.ones(3, 2), "bias": lib.zeros(3)})
    return model.weight.is_meta


@claims
def loading_by_assignment_gives_values(lib):
    model = lib.nn.Linear(2, 3, device="meta")
    model.load_state_dict({"weight": lib.ones(3, 2), "bias": lib.zeros(3)}, assign=True)
    return model(lib.ones(1, 2)).tolist(), copy.deepcopy(lib.nn.Linear(2, 3, device="meta")).weight.is_meta


@claims
def an_ensemble_maps_a_skeleton(lib):
    models = [lib.nn.Linear(2, 3) for _ in range(4)]
    params, buffers = lib.func.stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")
    x = lib.ones(5, 2)
    mapped = lib.vmap(lambda p, b: lib.func.functional_call(skeleton, (p, b), (x,)))(params, buffers)
    return lib.allclose(mapped, lib.stack([m(x) for m in models]), atol=1e-6)


def reading(lib):
    lib.ones(2, device="meta").tolist()


def reading_one(lib):
    lib.ones(1, device="meta").item()


def bringing_it_back(lib):
    lib.ones(2, device="meta").cpu()


def bringing_a_module_back(lib):
    lib.nn.Linear(2, 3, device="meta").to("cpu")


def copying_from_it(lib):
    lib.ones(2).copy_(lib.ones(2, device="meta"))


def mixing(lib):
    lib.ones(2) + lib.ones(2, device="meta")


def extents_that_depend_on_values(lib):
    tuple(lib.ones(2, device="meta").nonzero().shape)


def a_shape_that_does_not_fit(lib):
    lib.ones(2, device="meta") + lib.ones(3, device="meta")


REFUSED = [
    reading, reading_one, bringing_it_back, bringing_a_module_back, copying_from_it, mixing,
    extents_that_depend_on_values, a_shape_that_does_not_fit,
]  # fmt: skip


@pytest.mark.parametrize("claim", claims, ids=name_of)
def test_what_is_known_without_values_is_pytorchs(claim, recwarn):
    expected = claim(torch)
    told = [w.category for w in recwarn.list]
    recwarn.clear()
    assert claim(gradwire) == expected
    assert {w.category for w in recwarn.list} == set(told)
    gradwire.current_session().synchronize()


@pytest.mark.parametrize("claim", REFUSED, ids=name_of)
def test_what_needs_values_is_refused(claim):
    with pytest.raises(Exception) as theirs:
        claim(torch)
    with pytest.raises(gradwire.GradwireError) as ours:
        claim(gradwire)
    wanted = {"NotImplementedError": NotImplementedError, "RuntimeError": RuntimeError}[built_in(theirs.value)]
    assert isinstance(ours.value, wanted)


def test_nothing_of_it_reaches_the_server():
    session = gradwire.current_session()
    session.synchronize()
    before = session.ops
    x = gradwire.nn.Linear(300, 300, device="meta")(gradwire.empty(7, 300, device="meta")).relu()
    del x
    session.synchronize()
    assert session.ops == before


def test_backward_on_it_is_refused():
    x = gradwire.ones(2, device="meta", requires_grad=True)
    with pytest.raises(NotImplementedError, match="meta device"):
        (x * 2).sum().backward()
