"""Random programs of views and in-place writes under torch and gradwire: refusals, values, history, gradients."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.side_by_side import built_in, described, differences, settle

import gradwire

pytestmark = pytest.mark.usefixtures("session")

Step = Callable[[Any, list[Any]], Any]
"""Something to do with a library and the tensors made so far; a tensor that it returns joins them."""

STEPS = 9


def views(draw: random.Random, i: int, x: torch.Tensor) -> list[tuple[str, Step]]:
    """The views that can be made of a tensor of this shape."""
    found: list[tuple[str, Step]] = [
        (f"t{i}.detach()", lambda lib, t: t[i].detach()),
        (f"t{i}.unsqueeze(0)", lambda lib, t: t[i].unsqueeze(0)),
        (f"t{i}.reshape(-1)", lambda lib, t: t[i].reshape(-1)),
    ]
    if x.is_complex():
        found += [
            (f"t{i}.real", lambda lib, t: t[i].real),
            (f"t{i}.imag", lambda lib, t: t[i].imag),
            (f"view_as_real(t{i})", lambda lib, t: lib.view_as_real(t[i])),
        ]
    elif x.ndim and x.shape[-1] == 2:
        found.append((f"view_as_complex(t{i})", lambda lib, t: lib.view_as_complex(t[i])))
    if x.ndim:
        dim = draw.randrange(x.ndim)
        extent = x.shape[dim]
        at, step = draw.randrange(extent), draw.choice((1, 1, 2))
        index = (slice(None),) * dim
        found += [
            (f"t{i}.select({dim}, {at})", lambda lib, t: t[i].select(dim, at)),
            (f"t{i}[{at}::{step}] along {dim}", lambda lib, t: t[i][(*index, slice(at, None, step))]),
            (f"t{i}.unbind({dim})[{at}]", lambda lib, t: t[i].unbind(dim)[at]),
            (f"t{i}.split(2, {dim})[0]", lambda lib, t: t[i].split(2, dim)[0]),
        ]
        if extent == 1:
            wide = [3 if d == dim else -1 for d in range(x.ndim)]
            found.append((f"t{i}.expand({wide})", lambda lib, t: t[i].expand(*wide)))
    if x.ndim >= 2:
        found += [
            (f"t{i}.transpose(0, 1)", lambda lib, t: t[i].transpose(0, 1)),
            (f"t{i}.diagonal()", lambda lib, t: t[i].diagonal()),
            (f"t{i}.movedim(0, -1)", lambda lib, t: t[i].movedim(0, -1)),
        ]
    return found


def writes(draw: random.Random, i: int, x: torch.Tensor, pool: list[torch.Tensor]) -> list[tuple[str, Step]]:
    """The in-place writes to a tensor of this shape."""
    found: list[tuple[str, Step]] = [
        (f"t{i}.mul_(0.5)", lambda lib, t: t[i].mul_(0.5)),
        (f"t{i}.add_(0.25)", lambda lib, t: t[i].add_(0.25)),
        (f"t{i}.neg_()", lambda lib, t: t[i].neg_()),
        (f"t{i}.sin_()", lambda lib, t: t[i].sin_()),
        (f"t{i}.zero_()", lambda lib, t: t[i].zero_()),
    ]
    if x.ndim and x.shape[0]:
        at = draw.randrange(x.shape[0])
        found += [
            (f"t{i}[{at}] = 0.75", lambda lib, t: t[i].__setitem__(at, 0.75)),
            (f"t{i}[{at}:] *= 0.5", lambda lib, t: t[i][at:].mul_(0.5)),
        ]
    partners = [j for j, other in enumerate(pool) if other.shape == x.shape and other.dtype == x.dtype]
    if partners:
        j = draw.choice(partners)
        found += [
            (f"t{i}.mul_(t{j} * 0.5)", lambda lib, t: t[i].mul_(t[j] * 0.5)),
            (f"t{i}.copy_(t{j} + 0.5)", lambda lib, t: t[i].copy_(t[j] + 0.5)),
            (f"t{i}.add_(t{j}.clone())", lambda lib, t: t[i].add_(t[j].clone())),
        ]
    return found


def others(i: int) -> list[tuple[str, Step]]:
    return [
        (f"t{i} * 0.5", lambda lib, t: t[i] * 0.5),
        (f"t{i} * t{i}", lambda lib, t: t[i] * t[i]),
        (f"t{i}.clone()", lambda lib, t: t[i].clone()),
        (f"t{i}.cos()", lambda lib, t: t[i].cos()),
    ]


def quietly(step: Step) -> Step:
    """The step with gradients off."""

    def run(lib: Any, pool: list[Any]) -> Any:
        with lib.no_grad():
            return step(lib, pool)

    return run


def start(lib: Any, kind: int) -> tuple[Any, list[Any]]:
    """A leaf, and the first tensors: a result, a constant."""
    x = (lib.arange(16.0, dtype=lib.float64) * 7 % 11 / 8 - 0.5).reshape(4, 4).detach().requires_grad_()
    if kind == 0:
        return x, [x * 1, lib.ones(4, 4, dtype=lib.float64)]
    if kind == 1:
        return x, [lib.complex(x, x * 0.5)]
    return x, [(x * 1).t(), lib.zeros(4, 4, 2, dtype=lib.float64), x.reshape(4, 2, 2) * 1]


def run(step: Step, lib: Any, pool: list[Any]) -> str | None:
    """Do a step, or say the class of what it raises."""
    try:
        made = step(lib, pool)
        if lib is gradwire:
            settle()
    except Exception as error:
        return built_in(error)
    if made is not None and all(made is not t for t in pool):
        pool.append(made)
    return None


def program(seed: int) -> tuple[list[tuple[str, Step]], int]:
    """Steps that fit the shapes that they meet; torch is run along to know these."""
    draw = random.Random(seed)
    kind = draw.randrange(3)
    _, pool = start(torch, kind)
    steps: list[tuple[str, Step]] = []
    for _ in range(STEPS):
        i = draw.randrange(len(pool))
        x = pool[i]
        choice = draw.random()
        options = views(draw, i, x) if choice < 0.5 else writes(draw, i, x, pool) if choice < 0.85 else others(i)
        name, step = draw.choice(options)
        if draw.random() < 0.12:
            name, step = f"no_grad: {name}", quietly(step)
        steps.append((name, step))
        run(step, torch, pool)
    return steps, kind


def outcome(lib: Any, steps: list[tuple[str, Step]], kind: int) -> dict[str, Any]:
    """What each step raised, how the tensors look in the end, and the gradient that reaches the leaf."""
    leaf, pool = start(lib, kind)
    found: dict[str, Any] = {"raised": [run(step, lib, pool) for _, step in steps]}
    looks = []
    for t in pool:
        try:
            looks.append(described(t))
        except RuntimeError:
            looks.append("refused")
    found["tensors"] = looks

    def backward() -> Any:
        loss = (leaf * 0).sum()
        for t, look in zip(pool, looks, strict=True):
            if look != "refused":
                real = lib.view_as_real(t) if t.is_complex() else t
                loss = loss + (real * real).sum() * 0.5 + real.sum()
        loss.backward()
        return described(leaf.grad)

    try:
        found["grad"] = backward()
    except RuntimeError as error:
        found["grad"] = built_in(error)
    return found


@pytest.mark.parametrize("seed", range(150))
def test_a_random_program(seed):
    steps, kind = program(seed)
    expected, actual = outcome(torch, steps, kind), outcome(gradwire, steps, kind)
    different = list(differences(expected, actual))
    assert not different, "\n  ".join(["differs:", *different, "program:", *(name for name, _ in steps)])
