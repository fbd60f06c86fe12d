"""Tensors and modules that a program sends to a process that it starts."""

from __future__ import annotations

import pickle
from multiprocessing.reduction import ForkingPickler

import pytest

import gradwire
import gradwire.multiprocessing as mp
from gradwire import nn
from gradwire_protocol.errors import ArgumentError


def added_to(shared, model, answers) -> None:
    """What the other process does: changes both, and says what it sees."""
    with gradwire.no_grad():
        shared.add_(1)
    model(gradwire.ones(1, 3)).sum().backward()
    with gradwire.no_grad():
        model.weight -= model.weight.grad
    answers.put((shared.stride(), shared.tolist(), model.weight.grad.tolist(), model.weight.is_leaf))
    answers.close()
    answers.join_thread()


def test_a_spawned_process_shares_the_memory_and_not_the_gradients():
    context = mp.get_context("spawn")
    shared = gradwire.arange(6.0).reshape(2, 3).t()
    model = nn.Linear(3, 1)
    before = model.weight.detach().clone()
    answers = context.Queue()
    process = context.Process(target=added_to, args=(shared, model, answers))
    process.start()
    stride, seen, gradient, leaf = answers.get(timeout=120)
    process.join(60)
    assert process.exitcode == 0
    assert stride == (1, 3)
    assert seen == shared.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert gradient == [[1, 1, 1]]
    assert leaf
    assert model.weight.grad is None
    assert (model.weight - before).tolist()[0] == pytest.approx([-1, -1, -1], abs=1e-6)


def sent(value):
    """What arrives of a value that is sent through a pipe; this process is the receiver too."""
    return pickle.loads(bytes(ForkingPickler.dumps(value)))  # noqa: S301


def test_what_arrives_is_a_leaf_with_the_same_memory_class_and_dtype():
    weight = nn.Parameter(gradwire.ones(2, dtype=gradwire.float64))
    frozen = nn.Parameter(gradwire.ones(2), requires_grad=False)
    plain = gradwire.arange(3)
    for tensor in (weight, frozen, plain):
        found = sent(tensor)
        assert type(found) is type(tensor)
        assert (found.dtype, found.shape, found.requires_grad) == (tensor.dtype, tensor.shape, tensor.requires_grad)
        assert found.is_leaf
        with gradwire.no_grad():
            found.mul_(5)
        assert tensor.tolist() == found.tolist()
    sent(weight).sum().backward()
    assert weight.grad is None


def test_the_key_travels_only_to_a_process_that_is_being_started():
    tensor = gradwire.ones(1)
    key = tensor._session.api_key
    assert key
    assert key.encode() not in bytes(ForkingPickler.dumps(tensor))


def test_a_tensor_with_history_is_not_sent():
    x = gradwire.ones(2, requires_grad=True) * 2
    with pytest.raises(ArgumentError, match="detach"):
        ForkingPickler.dumps(x)
    with pytest.raises(ArgumentError, match="meta"):
        ForkingPickler.dumps(gradwire.ones(2, device="meta"))
