"""Random graphs with hooks, custom Functions and checkpoints: the same calls as in PyTorch, in the same order."""

from __future__ import annotations

import os
import random
from importlib import import_module
from typing import Any

import pytest
import torch
from tests.side_by_side import close

import gradwire

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", random.randrange(10**6)))


def program(lib: Any, seed: int) -> Any:
    """Build a graph and go backward through it, twice where it is kept. Returns what was called, and the gradients."""
    draw = random.Random(seed)
    events: list[Any] = []
    checkpoint = import_module(f"{lib.__name__}.utils.checkpoint").checkpoint

    class Scaled(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            ctx.set_materialize_grads(draw.random() < 0.5)
            return x * y, x + 1

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = ctx.saved_tensors
            note("function", g, h)
            first = None if g is None else g * y
            second = None if g is None or ctx.needs_input_grad[1] is False else g * x
            return h if first is None else first if h is None else first + h, second

    def note(what: str, *gradients: Any) -> None:
        events.append([what, *(None if g is None else g.tolist() for g in gradients)])

    def hook_tensor(t: Any, name: str) -> None:
        kind = draw.random()
        if kind < 0.5:
            t.register_hook(lambda g: note("tensor " + name, g))
        else:
            t.register_hook(lambda g: (note("changing " + name, g), None if g is None else g * 0.5)[1])

    def hook_node(t: Any, name: str) -> None:
        if draw.random() < 0.5:
            t.grad_fn.register_prehook(lambda gs: note("pre " + name, *gs))
        else:
            t.grad_fn.register_hook(lambda ins, outs: note("post " + name, *ins, *outs))

    leaves = [lib.tensor([draw.uniform(-1, 1), draw.uniform(-1, 1)], requires_grad=True) for _ in range(3)]
    pool = list(leaves)
    for step in range(draw.randint(4, 10)):
        a, b = draw.choice(pool), draw.choice(pool)
        kind = draw.randrange(7)
        if kind == 0:
            made = [a + b]
        elif kind == 1:
            made = [a * b]
        elif kind == 2:
            made = [a.sin()]
        elif kind == 3:
            made = list(Scaled.apply(a, b))
        elif kind == 4:
            made = [lib.stack(a.unbind(0))]
        elif kind == 5:
            made = [checkpoint(lambda x, y: (x * y).cos() + x, a, b, use_reentrant=False)]
        else:
            made = list(lib.stack([a, b]).unbind(0))
        for i, t in enumerate(made):
            if draw.random() < 0.4:
                hook_tensor(t, f"{step}.{i}")
            if draw.random() < 0.3:
                hook_node(t, f"{step}.{i}")
            if draw.random() < 0.1:
                t.retain_grad()
        pool.extend(made)
    for i, leaf in enumerate(leaves):
        if draw.random() < 0.4:
            hook_tensor(leaf, f"leaf {i}")
        if draw.random() < 0.4:
            leaf.register_post_accumulate_grad_hook(lambda p, i=i: note(f"accumulated {i}", p.grad))
    root = sum((t * (i + 1) for i, t in enumerate(pool[-3:])), pool[-1]).sum()
    mode = draw.randrange(4)
    if mode == 0:
        root.backward()
    elif mode == 1:
        root.backward(retain_graph=True)
        root.backward()
    elif mode == 2:
        found = lib.autograd.grad(root, [leaves[0], pool[-2]], allow_unused=True)
        note("grad", *found)
    else:
        first = lib.autograd.grad(root, leaves, create_graph=True, allow_unused=True)
        note("first", *first)
        total = sum((g.sum() for g in first if g is not None and g.requires_grad), lib.zeros(()))
        if total.requires_grad:
            note("second", *lib.autograd.grad(total, leaves, allow_unused=True))
    return events, [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


@pytest.mark.parametrize("number", range(60))
def test_every_call_is_as_in_pytorch(number: int) -> None:
    seed = SEED * 1000 + number
    expected, actual = program(torch, seed), program(gradwire, seed)
    assert [e[0] for e in expected[0]] == [e[0] for e in actual[0]], f"seed {seed}"
    assert close([*expected[0]], [*actual[0]], 1e-4), f"seed {seed}: {expected[0]} {actual[0]}"
    assert close(expected[1], actual[1], 1e-4), f"seed {seed}"


@pytest.mark.parametrize("op", ["mul", "div", "pow", "matmul", "mv", "mm", "dot", "where", "addcmul", "lerp"])
def test_a_second_derivative_comes_to_leaves_as_in_pytorch(op: str) -> None:
    def order(lib: Any) -> list[str]:
        calls: list[str] = []
        count = {"addcmul": 3, "lerp": 3}.get(op, 2)
        leaves = [lib.tensor([0.5 + k, 1.25 + k], requires_grad=True) for k in range(count)]
        if op in ("mv", "mm"):
            leaves = [lib.ones(2, 2, requires_grad=True), lib.ones(2 if op == "mv" else (2, 2), requires_grad=True)]
        result = lib.where(leaves[0] > 0, *(v * v for v in leaves)) if op == "where" else getattr(lib, op)(*leaves)
        first = lib.autograd.grad(result.sum(), leaves, create_graph=True)
        for k, leaf in enumerate(leaves):
            leaf.register_hook(lambda g, k=k: calls.append(f"leaf {k}"))
        lib.autograd.grad(sum(g.sum() for g in first), leaves, allow_unused=True)
        return calls

    assert order(gradwire) == order(torch)
