"""What functions, layers and containers refuse or warn of, as in PyTorch."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest
import torch

import gradwire as gw

LIBRARIES = (torch, gw)


def outcome(lib, run):
    """The built-in class of the error that a call raises, or what it returned."""
    try:
        return run(lib)
    except Exception as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


NONE_FOR_A_TENSOR = {
    "sin": lambda t: t.sin(None),
    "add": lambda t: t.add(None, t.zeros(2)),
    "other of add": lambda t: t.add(t.zeros(2), None),
    "matmul": lambda t: t.matmul(t.zeros(2, 2), None),
    "relu": lambda t: t.nn.functional.relu(None),
    "linear": lambda t: t.nn.Linear(2, 2)(None),
    "conv2d": lambda t: t.nn.Conv2d(3, 3, 3)(None),
    "weight of conv2d": lambda t: t.nn.functional.conv2d(t.zeros(1, 1, 4, 4), None),
    "batch_norm": lambda t: t.nn.functional.batch_norm(None, t.zeros(2), t.ones(2)),
    "max_pool2d": lambda t: t.nn.MaxPool2d(2)(None),
    "cross_entropy": lambda t: t.nn.CrossEntropyLoss()(None, t.zeros(2)),
    "write": lambda t: t.zeros(2).add_(None),
    "where": lambda t: t.where(None, t.zeros(2), t.zeros(2)),
}


@pytest.mark.parametrize("name", NONE_FOR_A_TENSOR)
def test_none_where_a_tensor_belongs_is_a_type_error(name: str) -> None:
    theirs, ours = (outcome(lib, NONE_FOR_A_TENSOR[name]) for lib in LIBRARIES)
    assert ours is theirs is TypeError


CALLS_OF_TO = {
    "device, bool": lambda t: ((t.device("cpu"), True), {}),
    "None, bool": lambda t: ((None, True), {}),
    "device, dtype, bool": lambda t: ((t.device("cpu"), t.float32, True), {}),
    "device, dtype, bool, bool": lambda t: ((t.device("cpu"), t.float32, True, True), {}),
    "dtype, bool": lambda t: ((t.float64, True), {}),
    "dtype, bool, bool": lambda t: ((t.float64, False, True), {}),
    "dtype, device": lambda t: ((t.float32, t.device("cpu")), {}),
    "dtype, device=": lambda t: ((t.float32,), {"device": "cpu"}),
    "tensor, bool": lambda t: ((t.zeros(2, dtype=t.float64), True), {}),
    "tensor, dtype": lambda t: ((t.zeros(2), t.float32), {}),
    "tensor=": lambda t: ((), {"tensor": t.zeros(2, dtype=t.float64)}),
    "other=": lambda t: ((), {"other": t.zeros(2)}),
    "device, tensor": lambda t: ((t.device("cpu"), t.tensor(3)), {}),
    "device= and dtype=": lambda t: ((), {"device": "cpu", "dtype": t.float64, "non_blocking": True}),
    "no bool": lambda t: ((), {"non_blocking": 3}),
    "copy": lambda t: (("cpu",), {"copy": True}),
    "no copy": lambda t: (("cpu",), {"copy": False}),
    "list": lambda t: (([],), {}),
    "None": lambda t: ((None,), {}),
    "None, dtype": lambda t: ((None, t.float64), {}),
    "nothing": lambda t: ((), {}),
}


@pytest.mark.parametrize("name", CALLS_OF_TO)
def test_to_takes_and_refuses_what_pytorch_does(name: str) -> None:
    def converted(lib, make, dtype_of):
        args, kwargs = CALLS_OF_TO[name](lib)
        return outcome(lib, lambda t: str(dtype_of(make(t).to(*args, **kwargs))).rpartition(".")[2])

    for make, dtype_of in (
        (lambda t: t.zeros(2), lambda x: x.dtype),
        (lambda t: t.nn.Linear(2, 2), lambda m: m.weight.dtype),
    ):
        theirs, ours = (converted(lib, make, dtype_of) for lib in LIBRARIES)
        assert ours == theirs


LIKE = {
    "empty": lambda t, x: t.empty_like(x, device="cpu"),
    "zeros": lambda t, x: t.zeros_like(x, device="cpu"),
    "ones": lambda t, x: t.ones_like(x, device="cpu"),
    "full": lambda t, x: t.full_like(x, 3, device="cpu"),
    "rand": lambda t, x: t.rand_like(x, device="cpu"),
    "randn": lambda t, x: t.randn_like(x, device="cpu"),
    "randint": lambda t, x: t.randint_like(x, 5, device="cpu"),
    "dtype": lambda t, x: t.zeros_like(x, device="cpu", dtype=t.float64),
}


@pytest.mark.parametrize("name", LIKE)
def test_tensors_like_one_on_the_meta_device_can_be_elsewhere(name: str) -> None:
    facts = []
    for lib in LIBRARIES:
        made = LIKE[name](lib, lib.zeros(2, 3, 4, device="meta").permute(2, 0, 1))
        assert not made.is_meta
        sound = name == "empty" or bool((made == made).all())
        facts.append((tuple(made.shape), made.stride(), made.element_size(), sound))
    assert facts[0] == facts[1]


SIZES = {
    "float tensors": lambda t: dict(size=(t.tensor(2.0), t.tensor(2.0))),
    "float": lambda t: dict(size=2.0),
    "vector": lambda t: dict(size=t.tensor([2, 2])),
    "int tensors": lambda t: dict(size=(t.tensor(2), t.tensor(3))),
    "too large": lambda t: dict(scale_factor=1e20),
    "too small": lambda t: dict(scale_factor=-1e20),
    "infinite": lambda t: dict(scale_factor=float("inf")),
    "no number": lambda t: dict(scale_factor=float("nan")),
}


@pytest.mark.parametrize("name", SIZES)
def test_extents_that_are_no_integers_are_refused(name: str) -> None:
    def resized(t):
        return tuple(t.nn.functional.interpolate(t.ones(1, 1, 4, 4), mode="bilinear", **SIZES[name](t)).shape)

    theirs, ours = (outcome(lib, resized) for lib in LIBRARIES)
    assert ours == theirs


@pytest.mark.parametrize("given", [dict(output_ratio=[0.5, 0.5, 0.6]), dict(output_size=[2, 2, 2])], ids=str)
def test_fractional_pooling_checks_its_extents_when_it_is_called(given: dict) -> None:
    def pooled(t):
        layer = t.nn.FractionalMaxPool2d(2, **given)
        return outcome(t, lambda t: layer(t.zeros(1, 1, 8, 8)))

    theirs, ours = pooled(torch), pooled(gw)
    assert ours is theirs


REFUSED_MEMBERS = {
    "insert a list": lambda t: t.nn.Sequential(t.nn.ReLU()).insert(0, [t.nn.ReLU()]),
    "insert too far": lambda t: t.nn.Sequential(t.nn.ReLU()).insert(-5, t.nn.ReLU()),
    "update with a module": lambda t: t.nn.ModuleDict().update(t.nn.ReLU()),
    "update with modules": lambda t: t.nn.ModuleDict().update([t.nn.ReLU()]),
    "update with singles": lambda t: t.nn.ModuleDict().update([[t.nn.ReLU()]]),
}


@pytest.mark.parametrize("name", REFUSED_MEMBERS)
def test_containers_refuse_with_pytorchs_classes(name: str) -> None:
    theirs, ours = (outcome(lib, REFUSED_MEMBERS[name]) for lib in LIBRARIES)
    assert ours is theirs
    assert isinstance(ours, type)


@pytest.mark.parametrize("size", [(1, 1, 2, 1), (1, 1, 2, 2)])
@pytest.mark.parametrize("align", [True, False])
def test_a_grid_of_one_point_with_aligned_corners_warns(size: tuple[int, ...], align: bool) -> None:
    counts = []
    for lib in LIBRARIES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.nn.functional.affine_grid(lib.zeros(1, 2, 3), size, align_corners=align)
        counts.append(len(caught))
    assert counts[0] == counts[1]


REFUSED_INDICES = {
    "padding too large": lambda t: t.nn.functional.embedding_bag(t.tensor([[0]]), t.ones(4, 2), padding_idx=4),
    "padding too small": lambda t: t.nn.functional.embedding_bag(t.tensor([[0]]), t.ones(4, 2), padding_idx=-5),
    "padding of the layer": lambda t: t.nn.EmbeddingBag(4, 2, padding_idx=4),
    "matrix of lengths": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.zeros(2, 2, 3), t.ones(2, 2)),
}


@pytest.mark.parametrize("name", REFUSED_INDICES)
def test_indices_that_do_not_fit_are_refused_with_pytorchs_classes(name: str) -> None:
    theirs, ours = (outcome(lib, REFUSED_INDICES[name]) for lib in LIBRARIES)
    assert ours is theirs
    assert isinstance(ours, type)


def test_a_complex_module_warns() -> None:
    for lib in LIBRARIES:
        with pytest.warns(UserWarning, match="[Cc]omplex"):
            assert lib.nn.Linear(2, 2).to(lib.complex64).weight.is_complex()


def test_a_lazy_parameter_materializes_from_one_extent() -> None:
    for lib in LIBRARIES:
        parameter = lib.nn.UninitializedParameter()
        parameter.materialize(10)
        assert tuple(parameter.shape) == (10,)


def test_a_handle_knows_the_table_of_its_hook() -> None:
    for lib in LIBRARIES:
        layer = lib.nn.ReLU()
        handle = layer.register_forward_hook(lambda *args: None)
        assert handle.id in handle.hooks_dict_ref()
        handle.remove()
        assert handle.id not in handle.hooks_dict_ref()
        del layer
        assert handle.hooks_dict_ref() is None


def test_a_hook_before_loading_does_not_keep_its_module_alive() -> None:
    for lib in LIBRARIES:
        gc.disable()
        try:
            layer, seen = lib.nn.Linear(2, 2), []
            layer.register_load_state_dict_pre_hook(lambda module, *args, seen=seen: seen.append(type(module)))
            layer.load_state_dict(layer.state_dict())
            assert seen == [lib.nn.Linear]
            gone = weakref.ref(layer)
            del layer
            assert gone() is None
        finally:
            gc.enable()


def test_fusion_is_a_module_of_nn_utils() -> None:
    assert gw.nn.utils.fusion.fuse_conv_bn_weights is gw.nn.utils.fuse_conv_bn_weights
