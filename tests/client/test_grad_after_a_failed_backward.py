"""``.grad`` after an incomplete backward: what had arrived before the failure, as in PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import torch

import gradwire

Program = Callable[[Any], Iterator[Any]]
"""Yields the tensors to look at, and goes on with the backward that fails."""


def anomaly(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    yield x
    with lib.autograd.detect_anomaly():
        (x.sqrt() * 0).sum().backward()


def anomaly_old(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    (x * 2).sum().backward()
    yield x
    with lib.autograd.detect_anomaly():
        (x.sqrt() * 0).sum().backward()


def anomaly_partial(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)
    h = x.sqrt()
    yield x, w
    with lib.autograd.detect_anomaly():
        ((h * 0) * w + w * 2).sum().backward()


def anomaly_retained(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)
    h = x.sqrt()
    h.retain_grad()
    m = x * 1
    m.retain_grad()
    yield x, w, h
    with lib.autograd.detect_anomaly():
        ((h * 0) * w + w * 2).sum().backward()


def anomaly_inputs(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    y = x.sqrt()
    yield x, y
    with lib.autograd.detect_anomaly():
        (y * 0).sum().backward(inputs=[x, y])


def hook_raises(lib: Any) -> Iterator[Any]:
    x = lib.ones(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)
    h = x * 3

    def hook(g: Any) -> Any:
        raise KeyError

    h.register_hook(hook)
    yield x, w, h
    (h * w).sum().backward()


def hook_raises_retained(lib: Any) -> Iterator[Any]:
    x = lib.ones(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)
    h = x * 3
    k = h * w
    k.retain_grad()

    def hook(g: Any) -> Any:
        raise KeyError

    h.register_hook(hook)
    yield x, w, k
    k.sum().backward()


def hook_raises_leaf(lib: Any) -> Iterator[Any]:
    x = lib.ones(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)

    def hook(g: Any) -> Any:
        raise KeyError

    x.register_hook(hook)
    yield x, w
    (x * w * 2).sum().backward()


def hook_raises_leaf_first(lib: Any) -> Iterator[Any]:
    x = lib.ones(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)

    def hook(g: Any) -> Any:
        raise KeyError

    w.register_hook(hook)
    yield x, w
    (x * w * 2).sum().backward()


def hook_bad_shape(lib: Any) -> Iterator[Any]:
    x = lib.ones(2, requires_grad=True)
    h = x * 3
    h.register_hook(lambda g: g.new_ones(5))
    yield x
    h.sum().backward()


def post_acc(lib: Any) -> Iterator[Any]:
    x = lib.ones(2, requires_grad=True)

    def hook(t: Any) -> Any:
        raise KeyError

    x.register_post_accumulate_grad_hook(hook)
    yield x
    (x * 2).sum().backward()


def node_hook(lib: Any) -> Iterator[Any]:
    x = lib.ones(2, requires_grad=True)
    y = x * 2

    def hook(*a: Any) -> Any:
        raise KeyError

    y.grad_fn.register_hook(hook)
    yield x
    y.sum().backward()


def function(lib: Any) -> Iterator[Any]:
    class Failing(lib.autograd.Function):  # type: ignore[name-defined, misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise KeyError

    x = lib.ones(2, requires_grad=True)
    w = lib.ones(2, requires_grad=True)
    yield x, w
    (Failing.apply(x) * w).sum().backward()


def create_graph(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    yield x
    with lib.autograd.detect_anomaly():
        (x.sqrt() * 0).sum().backward(create_graph=True)


def then_good(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    with contextlib.suppress(RuntimeError):
        with lib.autograd.detect_anomaly():
            (x.sqrt() * 0).sum().backward()
    yield x
    (x * 2).sum().backward()


def step_after(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    o = lib.optim.SGD([x], lr=1.0)
    with contextlib.suppress(RuntimeError):
        with lib.autograd.detect_anomaly():
            (x.sqrt() * 0).sum().backward()
    o.step()
    (x * 2).sum().backward()
    o.step()
    yield (x,)


def freed_after(lib: Any) -> Iterator[Any]:
    x = lib.zeros(2, requires_grad=True)
    y = x.sqrt()
    z = (y * 0).sum()
    with contextlib.suppress(RuntimeError):
        with lib.autograd.detect_anomaly():
            z.backward()
    yield x
    z.backward()


PROGRAMS: Final[tuple[Program, ...]] = (
    anomaly,
    anomaly_old,
    anomaly_partial,
    anomaly_retained,
    anomaly_inputs,
    hook_raises,
    hook_raises_retained,
    hook_raises_leaf,
    hook_raises_leaf_first,
    hook_bad_shape,
    post_acc,
    node_hook,
    function,
    create_graph,
    then_good,
    step_after,
    freed_after,
)


def _seen(lib: Any, program: Program) -> list[Any]:
    running = program(lib)
    tensors = next(running)
    error = None
    try:
        next(running, None)
    except (RuntimeError, KeyError) as raised:
        error = "RuntimeError" if isinstance(raised, RuntimeError) else type(raised).__name__
    found: list[Any] = [error]
    for tensor in tensors if isinstance(tensors, tuple) else (tensors,):
        gradient = tensor.grad
        found.append((None if gradient is None else gradient.tolist(), tensor.detach().tolist(), gradient is None))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_grad_is_what_had_arrived(session: Any, program: Program) -> None:
    expected = _seen(torch, program)
    assert _seen(gradwire, program) == expected
    session.synchronize()
