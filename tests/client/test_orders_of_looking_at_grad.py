"""Random programs over everything that determines ``.grad``, read in any order, under torch and gradwire.

They use retained gradients, all kinds of hooks, ``inputs=``, ``grad()``, views, in-place writes, several backwards
with and without ``create_graph``, and assignment. They read and keep ``.grad`` at random points. ``python -m
tests.client.test_orders_of_looking_at_grad 600`` runs new programs for that many seconds.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch
from tests.side_by_side import built_in, differences

import gradwire

pytestmark = pytest.mark.usefixtures("session")

PROGRAMS = 120
STEPS = (6, 26)


class Pool:
    """The tensors of a program under one library, the gradients it holds on to, and what it has seen."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        start = lib.arange(6.0, dtype=lib.float64)
        self.leaves = [
            (start * 0.25 - 0.5).reshape(2, 3).detach().requires_grad_(),
            (start.flip(0) * 0.5 + 0.25).reshape(2, 3).detach().requires_grad_(),
        ]
        self.tensors = [*self.leaves, self.leaves[0] * 1, self.leaves[1] * 2]
        self.held: list[Any] = []
        self.handles: list[Any] = []
        self.seen: list[Any] = []

    def note(self, what: Any) -> None:
        self.seen.append(what)

    def loss(self, i: int, j: int, squared: bool) -> Any:
        first, second = self.tensors[i], self.tensors[j]
        return (first * first if squared else first * 3).sum() + second.sum()


Step = Callable[[Pool], Any]
"""Something to do; a tensor or a list of tensors that it returns joins the pool."""


def look(tensor: Any) -> Any:
    """What can be seen of a gradient."""
    gradient = tensor.grad
    if gradient is None:
        return None
    return {"values": gradient.detach().tolist(), "requires_grad": gradient.requires_grad}


def _tried(act: Callable[[Any], Any], tensor: Any) -> Any:
    try:
        return act(tensor)
    except Exception as error:
        return built_in(error)


def _kept(gradient: Any) -> Any:
    return None if gradient is None else gradient.detach().tolist()


def making(draw: random.Random, i: int, pool: Pool) -> list[tuple[str, Step]]:
    x = pool.tensors[i]
    alike = [j for j, y in enumerate(pool.tensors) if y.shape == x.shape]
    j = draw.choice(alike)
    found: list[tuple[str, Step]] = [
        (f"t{i} * t{j}", lambda p: p.tensors[i] * p.tensors[j]),
        (f"t{i} + t{j}", lambda p: p.tensors[i] + p.tensors[j]),
        (f"t{i} * 2", lambda p: p.tensors[i] * 2),
        (f"t{i}.sin()", lambda p: p.tensors[i].sin()),
        (f"t{i}.reshape(-1)", lambda p: p.tensors[i].reshape(-1)),
        (f"t{i}.detach().requires_grad_()", lambda p: p.tensors[i].detach().requires_grad_()),
    ]
    if x.ndim:
        dim = draw.randrange(x.ndim)
        at = draw.randrange(x.shape[dim])
        found += [
            (f"t{i}.select({dim}, {at})", lambda p: p.tensors[i].select(dim, at)),
            (f"t{i}.narrow({dim}, {at}, 1)", lambda p: p.tensors[i].narrow(dim, at, 1)),
            (f"t{i}.unsqueeze({dim})", lambda p: p.tensors[i].unsqueeze(dim)),
            (f"t{i}.transpose({dim}, -1)", lambda p: p.tensors[i].transpose(dim, -1)),
            (f"t{i}.chunk(2, {dim})", lambda p: list(p.tensors[i].chunk(2, dim))),
            (f"t{i}.unbind({dim})", lambda p: list(p.tensors[i].unbind(dim))),
            (f"t{i}.max({dim}).values", lambda p: p.tensors[i].max(dim).values),
        ]
    return found


def writing(draw: random.Random, i: int, pool: Pool) -> list[tuple[str, Step]]:
    x = pool.tensors[i]
    j = draw.choice([j for j, y in enumerate(pool.tensors) if y.shape == x.shape])

    def write(act: Callable[[Pool], Any]) -> Step:
        def step(p: Pool) -> None:
            act(p)

        return step

    found = [
        (f"t{i}.mul_(0.5)", write(lambda p: p.tensors[i].mul_(0.5))),
        (f"t{i}.add_(t{j}.clone())", write(lambda p: p.tensors[i].add_(p.tensors[j].clone()))),
    ]
    if x.ndim:
        found.append((f"t{i}[0].mul_(2)", write(lambda p: p.tensors[i][0].mul_(2))))
    return found


def hooking(draw: random.Random, i: int, number: int) -> list[tuple[str, Step]]:
    def doubled(gradients: Any) -> Any:
        return tuple([None if g is None else g * 2 for g in gradients])

    def retain(p: Pool) -> None:
        p.tensors[i].retain_grad()

    def hooked(p: Pool) -> Any:
        _ = p.tensors[i].grad_fn  # torch crashes where a view is hooked whose base was written to since
        return p.tensors[i]

    def on_tensor(p: Pool) -> None:
        p.handles.append(hooked(p).register_hook(lambda g: g * 3))

    def noting(p: Pool) -> None:
        p.handles.append(hooked(p).register_hook(lambda g: p.note([f"hook {number}", g.detach().tolist()])))

    def before(p: Pool) -> None:
        p.handles.append(p.tensors[i].grad_fn.register_prehook(doubled))

    def after(p: Pool) -> None:
        p.handles.append(p.tensors[i].grad_fn.register_hook(lambda given, _: doubled(given)))

    def looking(p: Pool) -> None:
        x = p.tensors[i]
        hook = lambda *_: p.note([f"looked {number}", look(x)])
        p.handles.append(x.register_post_accumulate_grad_hook(hook) if x.is_leaf else x.grad_fn.register_hook(hook))

    def remove(p: Pool) -> None:
        p.handles.pop(draw_at % len(p.handles)).remove()

    draw_at = draw.randrange(8)
    return [
        (f"t{i}.retain_grad()", retain), (f"t{i}.retain_grad()  # once more", retain),
        (f"t{i}.register_hook(triple)", on_tensor), (f"t{i}.register_hook(note)", noting),
        (f"t{i}.grad_fn.register_prehook(double)", before), (f"t{i}.grad_fn.register_hook(double)", after),
        (f"look at t{i}.grad in a hook", looking), (f"remove hook {draw_at}", remove),
    ]  # fmt: skip


def differentiating(draw: random.Random, pool: Pool) -> list[tuple[str, Step]]:
    size = len(pool.tensors)
    i, j, squared = draw.randrange(size), draw.randrange(size), draw.random() < 0.6
    retain, create = draw.random() < 0.94, draw.random() < 0.25
    inputs = draw.sample(range(size), min(size, draw.randint(1, 3)))
    how = f"retain_graph={retain}, create_graph={create}"

    def everywhere(p: Pool) -> None:
        p.loss(i, j, squared).backward(retain_graph=retain, create_graph=create)

    def somewhere(p: Pool) -> None:
        chosen = [p.tensors[k] for k in inputs]
        p.loss(i, j, squared).backward(retain_graph=retain, create_graph=create, inputs=chosen)

    def returned(p: Pool) -> None:
        chosen = [p.tensors[k] for k in inputs]
        found = p.lib.autograd.grad(
            p.loss(i, j, squared), chosen, retain_graph=retain, create_graph=create, allow_unused=True
        )
        p.note([_kept(g) for g in found])

    loss = f"loss(t{i}, t{j}, {squared})"
    named = ", ".join(f"t{k}" for k in inputs)
    return [
        (f"{loss}.backward({how})", everywhere), (f"{loss}.backward({how})  # again", everywhere),
        (f"{loss}.backward({how}, inputs=[{named}])", somewhere), (f"grad({loss}, [{named}], {how})", returned),
    ]  # fmt: skip


def assigning(i: int) -> list[tuple[str, Step]]:
    def nothing(p: Pool) -> None:
        p.tensors[i].grad = None

    def ones(p: Pool) -> None:
        p.tensors[i].grad = p.lib.ones_like(p.tensors[i].detach())

    def zeroed(p: Pool) -> None:
        if p.tensors[i].grad is not None:
            p.tensors[i].grad.detach().zero_()

    def doubled(p: Pool) -> None:
        if p.tensors[i].grad is not None:
            with p.lib.no_grad():
                p.tensors[i].grad.mul_(2)

    def zero_grad(p: Pool) -> None:
        p.lib.optim.SGD(p.leaves, lr=0.1).zero_grad(set_to_none=False)

    return [
        (f"t{i}.grad = None", nothing), (f"t{i}.grad = ones", ones), (f"t{i}.grad.zero_()", zeroed),
        (f"t{i}.grad.mul_(2)", doubled), ("zero_grad(set_to_none=False)", zero_grad),
    ]  # fmt: skip


def looking_at(i: int) -> list[tuple[str, Step]]:
    def hold(p: Pool) -> None:
        p.held.append(p.tensors[i].grad)

    def same(p: Pool) -> None:
        p.note([h is not None and h is p.tensors[i].grad for h in p.held])

    return [
        (f"look at t{i}.grad", lambda p: p.note(look(p.tensors[i]))),
        (f"look once more at t{i}.grad", lambda p: p.note(look(p.tensors[i]))),
        (f"hold t{i}.grad", hold), (f"is t{i}.grad what is held", same),
        ("look at what is held", lambda p: p.note([_kept(h) for h in p.held])),
    ]  # fmt: skip


def run(step: Step, pool: Pool) -> str | None:
    """Do a step, or say the class of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = step(pool)
        except Exception as error:
            return built_in(error)
    for tensor in made if isinstance(made, list) else [] if made is None else [made]:
        pool.tensors.append(tensor)
    return None


def program(seed: int) -> list[tuple[str, Step]]:
    """Steps that fit the shapes that they meet; torch is run along to know these."""
    draw = random.Random(seed)
    pool = Pool(torch)
    steps: list[tuple[str, Step]] = []
    for number in range(draw.randint(*STEPS)):
        i = draw.randrange(len(pool.tensors))
        kinds = {
            "make": lambda i=i: making(draw, i, pool), "write": lambda i=i: writing(draw, i, pool),
            "hook": lambda i=i, n=number: hooking(draw, i, n), "run": lambda: differentiating(draw, pool),
            "assign": lambda i=i: assigning(i), "look": lambda i=i: looking_at(i),
        }  # fmt: skip
        kind = draw.choices(list(kinds), (5, 1, 4, 5, 1, 5))[0]
        step = draw.choice(kinds[kind]())
        steps.append(step)
        if run(step[1], pool) is not None and kind == "run":
            break  # what PyTorch has accumulated before it refuses, gradwire has not: it refuses first
    return steps


def outcome(lib: Any, steps: list[tuple[str, Step]]) -> dict[str, Any]:
    """What each step raised, what was seen meanwhile, and every gradient in the end."""
    pool = Pool(lib)
    raised: list[str | None] = []
    for _, step in steps:
        before = len(pool.seen)
        raised.append(run(step, pool))
        if raised[-1] is not None:
            del pool.seen[before:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grads = [] if raised[-1] is not None else [_tried(look, t) for t in pool.tensors]
        return {"raised": raised, "seen": pool.seen, "grads": grads}


def check(seed: int) -> None:
    steps = program(seed)
    expected, actual = outcome(torch, steps), outcome(gradwire, steps)
    different = list(differences(expected, actual, tolerance=1e-9))
    listing = [f"{n:3} {name}" for n, (name, _) in enumerate(steps)]
    assert not different, "\n  ".join([f"program {seed} differs:", *different, "program:", *listing])


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_grad_is_the_same_whenever_it_is_looked_at(seed: int) -> None:
    check(seed)


def soak(seconds: float, first: int) -> None:
    """Run new programs for so many seconds, and print those that differ."""
    until, failed, seed = time.monotonic() + seconds, 0, first
    for seed in count(first):
        try:
            check(seed)
        except AssertionError as error:
            failed += 1
            print(error, "\n", flush=True)
        if time.monotonic() > until:
            break
    print(f"{seed - first + 1} programs, {failed} differ")


if __name__ == "__main__":
    soak(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else PROGRAMS)
