"""Call variants of PyTorch: Python types as dtypes, arrays among numbers, functions that return their argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.side_by_side import Claims, name_of, raises, same

import gradwire

pytestmark = pytest.mark.usefixtures("session")
claim = Claims()

MAKERS = {
    "zeros": lambda lib, t: lib.zeros(2, dtype=t), "full": lambda lib, t: lib.full((2,), 1, dtype=t),
    "arange": lambda lib, t: lib.arange(3, dtype=t), "tensor": lambda lib, t: lib.tensor([1, 0], dtype=t),
    "to": lambda lib, t: lib.zeros(2).to(t), "to by name": lambda lib, t: lib.zeros(2).to(dtype=t),
    "sum": lambda lib, t: lib.ones(3).sum(dtype=t), "as_tensor": lambda lib, t: lib.as_tensor([1], dtype=t),
    "zeros_like": lambda lib, t: lib.zeros_like(lib.ones(2), dtype=t), "eye": lambda lib, t: lib.eye(2, dtype=t),
    "new_zeros": lambda lib, t: lib.ones(2).new_zeros(3, dtype=t),
    "linspace": lambda lib, t: lib.linspace(0, 1, 3, dtype=t),
    "prod": lambda lib, t: lib.ones(3).prod(dtype=t), "softmax": lambda lib, t: lib.ones(3).softmax(0, dtype=t),
    "randn": lambda lib, t: lib.randn(2, dtype=t) * 0, "rand": lambda lib, t: lib.rand(2, dtype=t) * 0,
    "mean": lambda lib, t: lib.ones(3).mean(dtype=t), "view": lambda lib, t: lib.zeros(2, dtype=lib.float64).view(t),
    "asarray": lambda lib, t: lib.asarray([1, 2], dtype=t), "scalar": lambda lib, t: lib.scalar_tensor(1, dtype=t),
    "full_like": lambda lib, t: lib.full_like(lib.ones(2), 2, dtype=t),
    "norm": lambda lib, t: lib.linalg.norm(lib.ones(2), dtype=t),
    "new_tensor": lambda lib, t: lib.ones(2).new_tensor([1], dtype=t),
    "hann": lambda lib, t: lib.hann_window(3, dtype=t),
    "log_softmax": lambda lib, t: lib.nn.functional.log_softmax(lib.ones(3), 0, dtype=t),
    "promote": lambda lib, t: lib.promote_types(t, lib.float32),
    "can_cast": lambda lib, t: lib.can_cast(t, lib.float32),
    "bits": lambda lib, t: lib.finfo(t).bits,
    "parameter": lambda lib, t: lib.nn.Linear(2, 2, dtype=t).weight.dtype,
    "cumsum": lambda lib, t: lib.ones(3).cumsum(0, dtype=t),
}  # fmt: skip


@pytest.mark.parametrize("kind", [float, int, bool, complex])
@pytest.mark.parametrize("maker", MAKERS.values(), ids=list(MAKERS))
def test_a_python_type_stands_for_its_dtype(maker, kind):
    named = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}[kind]
    by_name = raises(lambda: maker(gradwire, getattr(gradwire, named)))
    assert raises(lambda: maker(gradwire, kind)) == by_name
    if by_name is None and raises(lambda: maker(torch, kind)) is None:

        def same_thing(lib: Any) -> Any:
            return maker(lib, kind)

        same(same_thing)


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy.ndarrays")
def test_arrays_and_tensors_among_numbers_bring_their_dtype():
    made = [arrays_and_tensors_among_numbers(lib) for lib in (torch, gradwire)]
    assert [(repr(t.dtype), t.tolist()) for t in made[1]] == [(repr(t.dtype), t.tolist()) for t in made[0]]


def arrays_and_tensors_among_numbers(lib):
    return [
        lib.tensor(given) for given in (
            ((7, 5), (9, np.array(5.0))), [np.float32(1), 2], [2, np.float64(3)], [np.float64(3)], [True, np.int32(3)],
            [[3, 4], np.array([1.0, 2])], [np.float32(3), np.float64(3)], [np.int32(3)], [np.float16(1)],
            [1, np.array(1j)],
            [lib.tensor(1, dtype=lib.int32), 2.5], [np.int64(3), 1.5],
            [lib.tensor(1.0, dtype=lib.float64), 2], [lib.tensor(3, dtype=lib.int32)], [lib.tensor(True), 1], [],
        )
    ]  # fmt: skip


@claim
def what_changes_nothing_returns_the_tensor_itself(lib):
    x, y = lib.zeros(3), lib.zeros(2, 3)
    return [
        x.flatten() is x, y.flatten() is y, lib.flatten(x) is x, y.flatten(0, 0) is y, y.flatten(1, -1) is y,
        x.sum_to_size(3) is x, y.sum_to_size(2, 3) is y, y.sum_to_size((1, 3)).shape, lib.zeros(()).flatten().shape,
        lib.nn.Flatten(0)(x) is x, x.positive() is x, (+x) is x, y.flatten(start_dim=1) is y, lib.real(x) is x,
    ]  # fmt: skip


@claim
def a_dimension_to_flatten_that_is_not_there_is_refused(lib):
    return lib.zeros(3).flatten(2, 2)


@claim
def real_and_imaginary_parts_are_assigned(lib):
    z, x = lib.zeros(2, dtype=lib.complex64), lib.zeros(2)
    z.real, z.imag, x.real = lib.tensor([1.0, 2.0]), 3, lib.ones(2)
    w = lib.ones(2, dtype=lib.complex64, requires_grad=True)
    v = w * 2
    v.imag = lib.zeros(2)
    v.abs().sum().backward()
    return z, x, w.grad


@claim
def a_real_tensor_has_no_imaginary_part_to_assign(lib):
    x = lib.zeros(2)
    x.imag = 1


@claim
def full_takes_no_number_with_a_history(lib):
    return lib.full((2,), lib.tensor(3.0, requires_grad=True))


@claim
def ranges_include_their_end(lib):
    return [
        lib.range(0, 4), lib.range(1, 4, 0.5), lib.range(4, 0, -1), lib.range(0, 3, dtype=lib.int64), lib.range(0, 3.5),
        lib.range(0, 3, out=lib.zeros(2, 2)), raises(lambda: lib.range(0, 2, -1)), raises(lambda: lib.range(1, 2, 0)),
        raises(lambda: lib.range(3)), lib.range(0.0, 2.0, requires_grad=True),
    ]  # fmt: skip


@claim
def grids_are_of_vectors_of_one_kind(lib):
    one = lib.tensor([1])
    return [
        raises(lambda given=given: lib.meshgrid(*given, indexing="ij")) for given in (
            (), ([],), (one, lib.tensor([1.0])),
            (one, lib.tensor([[1]])), (one, lib.ones(1, dtype=lib.int64, device="meta")),
            (one, lib.tensor(2)),
        )
    ]  # fmt: skip


@claim
def numbers_between_complex_ones_are_complex(lib):
    return [lib.linspace(1j, 2, 3), lib.logspace(1j, 2, 3), raises(lambda: lib.linspace(0, 1j, 3, dtype=lib.float32))]


@claim
def a_permutation_of_more_than_the_dtype_holds_is_refused(lib):
    kinds = (lib.uint8, lib.int8, lib.int16, lib.float16, lib.bfloat16)
    counts = (128, 129, 256, 257, 2049, 2050, 32768, 32769)
    return [raises(lambda n=n, kind=kind: lib.randperm(n, dtype=kind)) for kind in kinds for n in counts]


@claim
def complex_tensors_are_numbers_where_they_are_real(lib):
    z = lib.tensor(2 + 1j)
    return (
        float(lib.tensor(2 + 0j)),
        int(lib.tensor(2 + 0j)),
        raises(lambda: float(z)),
        raises(lambda: int(z)),
        complex(z),
    )


@claim
def anything_with_a_length_and_entries_is_a_sequence(lib):
    class Pair:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            if i > 1:
                raise IndexError
            return i

    return lib.tensor(Pair()), lib.tensor([Pair(), Pair()]), lib.tensor(range(3)), raises(lambda: lib.tensor({1: 2}))


@claim
def a_list_that_contains_itself_is_refused(lib):
    nested = []
    nested.append((nested, nested))
    return lib.tensor(nested)


@claim
def a_batch_norm_that_stops_tracking_stops_counting(lib):
    norm = lib.nn.BatchNorm1d(3)
    norm(lib.arange(6.0).reshape(2, 3))
    norm.track_running_stats = False
    norm(lib.arange(6.0).reshape(2, 3))
    return norm.num_batches_tracked, norm.running_mean


@claim
def a_batch_norm_loads_what_the_first_version_saved(lib):
    norm = lib.nn.BatchNorm1d(3)
    norm(lib.arange(6.0).reshape(2, 3))
    old = norm.state_dict()
    del old["num_batches_tracked"]
    old._metadata[""]["version"] = 1
    plain = {key: value + 1 for key, value in old.items()}
    fresh = lib.nn.Sequential(lib.nn.BatchNorm1d(3))
    loaded = fresh.load_state_dict({f"0.{key}": value for key, value in plain.items()})
    return norm.load_state_dict(old).missing_keys, norm.num_batches_tracked, loaded.missing_keys, fresh[0].running_mean


@claim
def a_batch_norm_misses_the_count_of_the_second_version(lib):
    norm = lib.nn.BatchNorm1d(3)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    norm.load_state_dict(state)


@claim
def a_state_dict_of_arrays_is_refused(lib):
    lib.nn.Linear(2, 2).load_state_dict({"weight": np.ones((2, 2), np.float32), "bias": lib.zeros(2)})


@claim
def dropout_of_any_number_of_dimensions(lib):
    return [lib.nn.functional.dropout3d(lib.ones(*(2,) * n), p=0.0) for n in range(1, 7)]


@claim
def a_bag_takes_its_table_first_with_a_warning(lib):
    return lib.nn.functional.embedding_bag(lib.arange(8.0).reshape(4, 2), lib.tensor([[0, 1], [2, 3]]))


@claim
def bernoulli_is_written_into_integers(lib):
    return lib.bernoulli(lib.tensor([0.0, 1.0, 1.0]), out=lib.zeros(3, dtype=lib.int64))


@claim
def a_module_hands_arguments_on_to_the_next_class(lib):
    class Named:
        def __init__(self, name="none"):
            self.name = name

    class Layer(lib.nn.Module, Named):
        call_super_init = True

        def __init__(self, name):
            super().__init__(name=name)

    return Layer("first").name, [raises(lambda: lib.nn.Module(1)), raises(lambda: lib.nn.Module(name=2))]


@claim
def an_optimizer_takes_parameters_without_a_shape(lib):
    layer = lib.nn.LazyLinear(1)
    optimizers = [
        lib.optim.SGD(layer.parameters(), lr=0.1), lib.optim.Adam(layer.parameters(), lr=0.1),
        lib.optim.SGD([{"params": [layer.weight]}, {"params": [layer.bias], "lr": 0.2}], lr=0.1),
    ]  # fmt: skip
    layer(lib.ones(2, 3))
    with lib.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.fill_(1.0)
    layer(lib.ones(2, 3)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    return layer.weight.detach(), layer.bias.detach()


@claim
def an_optimizer_may_wrap_another_without_being_initialised(lib):
    class Wrapper(lib.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self.param_groups, self.state, self.defaults = inner.param_groups, inner.state, inner.defaults

        def step(self, closure=None):
            return self.inner.step(closure)

        def zero_grad(self, set_to_none=True):
            self.inner.zero_grad(set_to_none)

    weight = lib.ones(2, requires_grad=True)
    wrapper = Wrapper(lib.optim.SGD([weight], lr=0.1))
    schedule = lib.optim.lr_scheduler.ExponentialLR(wrapper, 0.5)
    for _ in range(3):
        wrapper.zero_grad()
        weight.sum().backward()
        wrapper.step()
        schedule.step()
    return weight.detach(), schedule.get_last_lr()


@claim
def keys_that_an_optimizer_does_not_know_are_kept(lib):
    weight = lib.zeros(2, requires_grad=True)
    optimizer = lib.optim.SGD([weight], lr=0.1)
    state = optimizer.state_dict()
    state["extra"] = 5
    state["param_groups"][0]["more"] = 3
    state["state"] = {"elsewhere": {"a": lib.ones(1)}, 0: {"b": lib.ones(2), "c": 4}}
    optimizer.load_state_dict(state)
    optimizer.state["count"] = 1
    again = optimizer.state_dict()["state"]
    optimizer.load_state_dict(optimizer.state_dict())
    assert again["count"] == optimizer.state["count"] == 1 and again["elsewhere"]["a"].tolist() == [1.0]
    return optimizer.param_groups[0]["more"], optimizer.state[weight]["c"], optimizer.state["elsewhere"]["a"]


@claim
def lbfgs_goes_on_where_the_gradient_is_zero(lib):
    weight = lib.zeros(2, requires_grad=True)
    optimizer = lib.optim.LBFGS([weight], tolerance_grad=-float("inf"))

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(2)], weight.detach()


LBFGS = [
    {}, {"lr": 0.01}, {"lr": 0.001}, {"tolerance_grad": 1e-6}, {"line_search_fn": "strong_wolfe"}, {"max_iter": 3},
    {"history_size": 2}, {"tolerance_grad": -float("inf"), "max_iter": 4}, {"lr": 0.1, "max_iter": 5},
]  # fmt: skip


@pytest.mark.parametrize("options", LBFGS, ids=str)
def test_lbfgs_takes_torchs_steps(options):
    def course(lib):
        weight = lib.tensor([1.5, 1.2], dtype=lib.float64, requires_grad=True)
        optimizer, found = lib.optim.LBFGS([weight], **options), []

        def closure():
            optimizer.zero_grad()
            loss = (1 - weight[0]) ** 2 + 10 * (weight[1] - weight[0] ** 2) ** 2
            loss.backward()
            return loss

        for _ in range(6):
            found += [float(optimizer.step(closure)), *weight.detach().tolist()]
            found += [optimizer.state[weight]["func_evals"], optimizer.state[weight]["n_iter"]]
        return found

    assert course(gradwire) == pytest.approx(course(torch), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("claim", claim, ids=name_of)
def test_the_same_as_torch(claim):
    same(claim)
