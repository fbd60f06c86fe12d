"""Rarer functions and arguments of PyTorch's, which give what PyTorch gives."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import torch

import gradwire

CALLS: dict[str, Any] = {
    "a_number_among_tensors": lambda lib: lib.isin(element=2, test_elements=lib.tensor([1, 2])),
    "tensors_among_a_number": lambda lib: lib.isin(elements=lib.tensor([1, 2]), test_element=2, invert=True),
    "indices_of_a_triangle": lambda lib: lib.tril_indices(
        2, 3, layout=lib.strided, pin_memory=False, requires_grad=False
    ),
    "an_expansion_with_a_hint": lambda lib: lib.ones(3).expand(2, 3, implicit=True),
    "a_copy_of_an_expansion": lambda lib: lib.expand_copy(lib.ones(3), (2, 3), implicit=True),
    "a_copy_in_another_dtype": lambda lib: lib.view_copy(lib.ones(3), dtype=lib.int32),
    "a_layer_norm_with_a_hint": lambda lib: lib.layer_norm(lib.arange(3.0), (3,), cudnn_enable=False),
    "a_group_norm_with_a_hint": lambda lib: lib.group_norm(lib.arange(4.0).view(1, 4), 2, cudnn_enabled=False),
    "a_detached_copy_into_a_tensor": lambda lib: lib.detach_copy(lib.ones(3), out=lib.zeros(3)),
    "a_tensor_of_a_storage": lambda lib: lib.ones(2).new(storage=lib.FloatStorage([1.0, 2.0])),
    "a_tensor_of_a_tensor": lambda lib: lib.ones(2).new(other=lib.ones(3)),
    "merged_masks": lambda lib: lib.nn.MultiheadAttention(4, 2).merge_masks(
        lib.zeros(3, 3), lib.ones(2, 3), lib.ones(2, 3, 4)
    )[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_as_torch(name: str) -> None:
    mine, wanted = CALLS[name](gradwire), CALLS[name](torch)
    assert str(mine.dtype) == str(wanted.dtype)
    np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


REFUSED: dict[str, Any] = {
    "integers_with_gradients": lambda lib: lib.tril_indices(2, 2, requires_grad=True),
    "sparse_indices": lambda lib: lib.triu_indices(2, 2, layout=lib.sparse_coo),
    "another_dtype_of_a_product": lambda lib: lib.mm(lib.ones(2, 2), lib.ones(2, 2), out_dtype=lib.float64),
    "an_unknown_argument": lambda lib: lib.ones(2).new(cls=lib.zeros(3)),
    "a_storage_of_no_dtype": lambda lib: lib.storage.TypedStorage.from_file("numbers", False, 4),
    "the_offset_of_a_generator": lambda lib: lib.Generator().get_offset(),
    "a_file_that_is_not_there": lambda lib: lib.from_file("/no/such/file", size=1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_torch(name: str) -> None:
    with pytest.raises(Exception) as wanted:
        REFUSED[name](torch)
    with pytest.raises(wanted.type):
        REFUSED[name](gradwire)


def test_anomalies_can_be_looked_for_from_a_call_on() -> None:
    for lib in (torch, gradwire):
        lib.set_anomaly_enabled(True, check_nan=False)
        assert (lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()) == (True, False)
        lib.set_anomaly_enabled(False)
        assert not lib.is_anomaly_enabled()


def test_results_in_out_have_a_class_of_their_own() -> None:
    for lib in (torch, gradwire):
        out = (lib.empty(2), lib.empty(2, dtype=lib.int64))
        found = lib.max(lib.ones(2, 3), 1, out=out)
        assert type(found) is lib.return_types.max_out
        assert type(found).n_fields == 2 and type(lib.max(lib.ones(2, 3), 1)) is lib.return_types.max
        assert all(map(operator.is_, found, out))


def test_numbers_of_a_file(tmp_path: Any) -> None:
    path = str(tmp_path / "numbers")
    np.arange(6, dtype=np.float32).tofile(path)
    for lib in (torch, gradwire):
        assert lib.from_file(path, size=4).tolist() == [0, 1, 2, 3]
        assert lib.FloatStorage.from_file(path, False, 3).tolist() == [0, 1, 2]
        with pytest.raises(RuntimeError):
            lib.from_file(path, size=40)


def test_a_generator_draws_the_slopes() -> None:
    drawn = [
        gradwire.rrelu(-gradwire.ones(8), 0.1, 0.3, True, generator=gradwire.Generator().manual_seed(seed)).tolist()
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_whole_channels_are_dropped_in_place() -> None:
    x = gradwire.ones(2, 40, 3)
    assert gradwire.feature_dropout_(x, 0.5, True) is x
    channels = x.tolist()
    assert {tuple(channel) for one in channels for channel in one} == {(0.0, 0.0, 0.0), (2.0, 2.0, 2.0)}


def test_a_policy_of_checkpoints_changes_no_gradient() -> None:
    from functools import partial

    from gradwire.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    x = gradwire.tensor([0.5, 2.0], requires_grad=True)
    keep = partial(create_selective_checkpoint_contexts, lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE)
    checkpoint(lambda x: (x.sin() * x).sum(), x, use_reentrant=False, context_fn=keep).backward()
    y = torch.tensor([0.5, 2.0], requires_grad=True)
    (y.sin() * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6)


def test_batch_norms_without_running_statistics() -> None:
    for lib in (torch, gradwire):
        model = lib.nn.Sequential(lib.nn.BatchNorm1d(2))
        assert lib.func.replace_all_batch_norm_modules_(model) is model
        assert model[0].running_mean is None and not model[0].track_running_stats
        with pytest.warns(FutureWarning):
            lib.testing.assert_allclose(lib.ones(2), [1.00005, 1.0])


def test_packed_sequences_by_name() -> None:
    found = []
    for lib in (torch, gradwire):
        weights = [lib.ones(3, 2), lib.ones(3, 3) / 4]
        made = lib.rnn_tanh(
            data=lib.arange(6.0).view(3, 2), batch_sizes=lib.tensor([2, 1]), hx=lib.zeros(1, 2, 3), params=weights,
            has_biases=False, num_layers=1, dropout=0.0, train=False, bidirectional=False,
        )  # fmt: skip
        found.append([one.numpy() for one in made])
    for wanted, mine in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-5)
