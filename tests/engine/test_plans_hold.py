"""Programs designed to break plans: aliasing, changes between similar frames, numbers that are equal but not identical.
Each runs on the tape, by plans, and frame by frame on both.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest

import gradwire as torch
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.plan_cache import Plans
from gradwire_engine.session.session import Session
from gradwire_engine.snapshot import take
from gradwire_protocol import envelope
from gradwire_protocol.frames import Reply
from tests.engine.recordings import SEED, Recording, little_to_collect, new_session, record
from tests.shadowed.plans import ShadowPlans

functional = torch.nn.functional
OFTEN = 9


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    with little_to_collect():
        yield


def held(made: Recording, limits: Limits | None = None) -> Plans:
    """The plans of a session that answers a recording as one without plans, and is like it at the end."""

    def applied(plans: Plans | None) -> tuple[list[bytes], Session]:
        session = Session(limits, seed=SEED)
        session.plans = plans
        return made.replayed(session), session

    plans = Plans()
    tape, plain = applied(None)
    answers, session = applied(plans)
    assert answers == tape
    expected, found = take(plain), take(session)
    assert found.facts == expected.facts
    assert all(np.array_equal(found.arrays[name], array) for name, array in expected.arrays.items())
    return plans


def compared(made: Recording) -> int:
    """How many frames of a recording leave the same by a plan as on the tape, of an earlier frame if it holds."""
    session = new_session()
    plans = session.plans = ShadowPlans()
    for answer in made.replayed(session):
        reply = envelope.decode(answer)[0] if answer else None
        assert not isinstance(reply, Reply) or reply.refused is None, reply
    return plans.outcomes["verified"]


def tied():
    w = torch.randn(3, 3, requires_grad=True)
    v, x = w, torch.randn(2, 3)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for i in range(OFTEN):
        optimizer.zero_grad()
        ((x @ w) @ v.t()).square().mean().backward()
        optimizer.step()
        w.tolist()
        v = torch.randn(3, 3, requires_grad=True) if i == 4 else w


def one_operand_twice():
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    for i in range(OFTEN):
        a, b = ((x, x), (x, y), (y, x))[i % 3]
        (a * b + a).sum().backward()
        with torch.no_grad():
            a.add_(b)
        x.tolist(), y.tolist(), x.grad.tolist()


def a_gradient_that_somebody_else_holds():
    w, mine = torch.randn(3, requires_grad=True), torch.ones(3)
    for i in range(OFTEN):
        w.grad = mine if i % 3 else mine.clone()
        w.tolist()
        (w * w).sum().backward()
        w.grad.tolist(), mine.tolist()


def a_gradient_that_is_the_parameter():
    w = torch.randn(3, requires_grad=True)
    for i in range(OFTEN):
        w.grad = w.detach() if i % 2 else w.detach().clone()
        w.tolist()
        (w * 2).sum().backward()
        w.tolist(), w.grad.tolist()


def gradients_of_other_strides():
    w = torch.randn(3, 4, requires_grad=True)
    for i in range(OFTEN):
        w.grad = (torch.ones(4, 3).t(), torch.ones(3, 4), None)[i % 3]
        w.tolist()
        (w * w.exp()).sum().backward()
        w.grad.tolist()


def one_graph_three_times():
    w = torch.randn(3, requires_grad=True)
    for _ in range(OFTEN):
        y = (w * w).exp().sum()
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
        y.backward()
        w.grad.tolist()


def parts_that_come_to_their_end():
    x = torch.randn(10, 2, requires_grad=True)
    for i in range(OFTEN):
        part = x[3 * i % 12 :][:4]
        (part * part).sum().backward()
        x.grad.tolist(), part.detach().clone().mul_(i).tolist()


def writes_to_moving_parts():
    x = torch.zeros(10)
    for i in range(OFTEN):
        x[i : i + 3].add_(i)
        x[-1 - i % 10] += 2
        x[i % 5] = i
        x.tolist()


def frozen_and_thawed():
    a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    optimizer = torch.optim.Adam([a, b], lr=0.1)
    for i in range(OFTEN):
        a.requires_grad_(i % 4 != 2)
        optimizer.zero_grad(set_to_none=i % 2 == 0)
        ((a * b) ** 2).sum().backward()
        optimizer.step()
        a.tolist(), b.tolist()


def data_behind_the_graph():
    w = torch.randn(3, requires_grad=True)
    for i in range(OFTEN):
        y = (w * w).sum()
        if i % 2:
            w.data.mul_(0.9)
        with torch.no_grad():
            if i % 3 == 0:
                w.detach().add_(1)
        with contextlib.suppress(RuntimeError):
            y.backward()
        w.tolist()


def detached_at_every_version():
    x = torch.randn(2, requires_grad=True)
    for _ in range(OFTEN):
        (x * 2).sum().backward()
        x.grad.detach().tolist()


def nothing_in_it():
    w = torch.randn(3, 4, requires_grad=True)
    for i in range(OFTEN):
        y = w[: i % 3]
        (y * 2).sum().backward()
        w.grad.tolist(), y.detach().mean(1).tolist()


def draws():
    apart = torch.Generator()
    apart.manual_seed(3)
    for i in range(OFTEN):
        torch.randn(3).tolist(), torch.rand(2, generator=apart).tolist(), torch.randperm(5).tolist()
        functional.dropout(torch.ones(4), 0.1 * i).tolist(), torch.empty(3).uniform_(-i, i + 1.0).tolist()


def uploads():
    w = torch.randn(3, requires_grad=True)
    for i in range(OFTEN):
        x = torch.tensor([float(i), -0.0, math.nan if i == 4 else 1.0])
        (w * x).sum().backward()
        w.grad.tolist(), x.add_(1).tolist()


def an_index_out_of_range():
    bags, norm, total = torch.nn.Embedding(5, 2), torch.nn.BatchNorm1d(2), torch.zeros(3)
    optimizer = torch.optim.SGD(bags.parameters(), lr=0.1)
    for i in range(OFTEN):
        with contextlib.suppress(RuntimeError, IndexError):
            total.add_(1)
            loss = norm(bags(torch.tensor([0, 1, 7 if i in (4, 7) else 2]))).square().sum() * torch.rand(3).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
        with contextlib.suppress(RuntimeError, IndexError):
            total.tolist(), bags.weight.tolist(), norm.running_mean.tolist(), torch.rand(2).tolist()


PROGRAMS = (
    tied, one_operand_twice, a_gradient_that_somebody_else_holds, a_gradient_that_is_the_parameter,
    gradients_of_other_strides, one_graph_three_times, parts_that_come_to_their_end, writes_to_moving_parts,
    frozen_and_thawed, data_behind_the_graph, detached_at_every_version, nothing_in_it, draws, uploads,
    an_index_out_of_range,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_what_changes_between_two_frames_does_not_mislead_a_plan(program):
    made = record(program)
    held(made)
    assert compared(made) >= 1


# Numbers

EQUAL_OR_NOT = (
    0.0, -0.0, math.nan, math.nan, 1.0, 2, 2.0, True, False, 0, -1, math.inf, -math.inf, 2**62, -(2**63), 1e-320, 1e39,
    0.0, -0.0, 300, 128, 127,
)  # fmt: skip
OPS = {
    "add": lambda t, n: t + n,
    "multiply": lambda t, n: t * n,
    "divide": lambda t, n: t / n,
    "divided": lambda t, n: n / t,
    "power": lambda t, n: t**n,
    "base": lambda t, n: n**t,
    "remainder": lambda t, n: t % n,
    "clamp": lambda t, n: t.clamp(min=n),
    "fill": lambda t, n: t.masked_fill(t > 0, n),
    "alpha": lambda t, n: torch.add(t, t, alpha=n),
    "write": lambda t, n: t.clone().mul_(n).add_(n),
    "slope": lambda t, n: functional.leaky_relu(t, n),
    "norm": lambda t, n: t.norm(n),
}


@pytest.mark.parametrize("earlier", [False, True], ids=["one frame", "a frame before"])
@pytest.mark.parametrize("op", OPS)
def test_numbers_that_are_equal_need_not_be_the_same(op, earlier):
    def program() -> None:
        x = torch.tensor([0.0, -0.0, 1.5, -2.0, math.inf], requires_grad=True)
        for number in EQUAL_OR_NOT:
            for t in (x, torch.tensor([1, -2, 100], dtype=torch.int8)):
                x.grad = None
                with contextlib.suppress(RuntimeError, TypeError, OverflowError):
                    y = OPS[op](t, number)
                    if y.requires_grad:
                        if earlier:
                            y.tolist()
                        y.sum().backward()
                        x.grad.tolist()
                    y.tolist()

    made = record(program)
    held(made)
    assert compared(made) >= 1


# Limits


@pytest.mark.parametrize(
    "limits",
    [Limits(max_session_bytes=6000), Limits(max_graph_nodes=12), Limits(max_tensors=14)],
    ids=["bytes", "nodes", "tensors"],
)
def test_a_limit_that_is_hit_by_a_later_repetition_is_hit_as_on_the_tape(limits):
    """The session grows by one result with its graph in each step, until something is refused."""

    def program() -> None:
        x, kept = torch.randn(50, requires_grad=True), []
        for i in range(16):
            y = (x * (1 + i)).tanh() * 2
            kept.append(y)
            y.detach().tolist()

    made = record(program)
    plans = held(made, limits)
    assert plans.statistics.hits >= 1
    refused = [reason for reason in plans.statistics.reasons if "near a limit" in reason or reason.startswith("failed")]
    assert refused or plans.statistics.reasons["guard: something failed before"]
