"""The cost of autograd: small ops with history against the same ops without, and backward against forward.

This runs in one process, with the server's garbage collector settings and no network. Every figure is a ratio of two
times of one round, each side's of its own times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import torch

import gradwire_engine.ops  # noqa: F401  (engines run what is registered)
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.session.session import Session
from gradwire_protocol import envelope
from gradwire_protocol.frames import Frame, Structure, structure_hash

from .report import Plan, Row, Target
from .server_op import apply, collector_of_a_server, microseconds, raw
from .timing import Figures, interleave, seconds

RECORDING_LIMIT: Final = 1.5
BACKWARD_LIMIT: Final = 3.0
MANY: Final = 100

# A record as a function of the reference to the previous record's result, and the same op in torch.
SMALL: Final[dict[str, tuple[Callable[[int], list[Any]], Callable[[Any, Any], Any]]]] = {
    "add": (lambda h: ["add", [h, -2]], lambda h, w: h + w),
    "mul": (lambda h: ["mul", [h, -2]], lambda h, w: h * w),
    "matmul": (lambda h: ["matmul", [h, -2]], lambda h, w: h @ w),
    "tanh": (lambda h: ["tanh", [h]], lambda h, w: torch.tanh(h)),
    "relu": (lambda h: ["relu", [h]], lambda h, w: torch.relu(h)),
    "transpose": (lambda h: ["transpose", [h, 0, 1]], lambda h, w: h.transpose(0, 1)),
    "linear": (lambda h: ["linear", [h, -2]], lambda h, w: torch.nn.functional.linear(h, w)),
}


def run(plan: Plan) -> Iterator[Row]:
    """Small ops one by one, then a perceptron and a transformer's block."""
    torch.set_num_threads(1)
    with collector_of_a_server():
        yield from _recording(plan)
        yield from _backward(plan)


# Recording


def _recording(plan: Plan) -> Iterator[Row]:
    session = Session()
    w = torch.ones(2, 2, requires_grad=True)
    for name, (record, eager) in SMALL.items():
        messages = {mode: _chain(session, record, recorded=mode == "with") for mode in ("with", "without")}
        repeats = plan.of(10, 1)

        def ours(message: bytes, repeats: int = repeats) -> float:
            return microseconds(session, message, repeats) / MANY

        def theirs(recorded: bool, eager: Any = eager, repeats: int = repeats) -> float:
            def chains() -> None:
                for _ in range(repeats):
                    h = w
                    for _ in range(MANY):
                        h = eager(h, w)

            with torch.set_grad_enabled(recorded):
                return seconds(chains) / repeats / MANY * 1e6

        found = interleave(
            {
                "with": partial(ours, messages["with"]), "without": partial(ours, messages["without"]),
                "torch with": partial(theirs, True), "torch without": partial(theirs, False),
            },
            plan.rounds,
        )  # fmt: skip
        note = f"{found['with'].median:.1f} us an op with its history, {found['without'].median:.1f} without"
        yield Row(
            "autograd", f"{name} with history / without", "x", _ratio(found["with"], found["without"]),
            _ratio(found["torch with"], found["torch without"]), Target(RECORDING_LIMIT), note,
        )  # fmt: skip


def _chain(session: Session, record: Callable[[int], list[Any]], recorded: bool) -> bytes:
    """A message that runs a chain of one op on a leaf and drops the results, so it can be applied repeatedly."""
    client = session.new_client()
    first = client << 32
    make = [["ones", [[2, 2]]]] * 2 + [["requires_grad_", [n, True]] for n in (0, 1)]
    made, _ = session.apply(Frame(client=client, first=first + 1, structure=raw(Structure(ops=make))))
    if made.refused is not None or made.errors:
        raise RuntimeError(f"the leaves were not made: {made.refused or made.errors[0]}")
    mode = [] if recorded else [["set_mode", [0]]]
    ops = [*mode, record(-1), *(record(n) for n in range(MANY - 1))]
    structure = raw(Structure(ops=ops, drops=list(range(MANY))))
    facts = {"client": client, "first": first + 10, "external": [first + 1, first + 2], "ack": 2**53 - 1}
    key = structure_hash(bytes(structure))
    apply(session, envelope.join(envelope.encode(Frame(structure=structure, hash=key, **facts))))
    return envelope.join(envelope.encode(Frame(hash=key, **facts)))


# Backward

Ops = Any
"""A namespace of PyTorch's functions: torch's, or ours."""


def perceptron(f: Ops, leaf: Callable[..., Any], constant: Callable[..., Any]) -> tuple[Callable[[], Any], list[Any]]:
    """784-256-10 on a batch of 128: its forward, up to the loss, and its parameters."""
    x, labels = constant(_normal(128, 784)), constant(np.arange(128) % 10)
    w1, b1, w2, b2 = (leaf(_normal(*shape) / 20) for shape in ((256, 784), (256,), (10, 256), (10,)))

    def forward() -> Any:
        return f.cross_entropy(f.linear(f.relu(f.linear(x, w1, b1)), w2, b2), labels)

    return forward, [w1, b1, w2, b2]


def block(f: Ops, leaf: Callable[..., Any], constant: Callable[..., Any]) -> tuple[Callable[[], Any], list[Any]]:
    """A pre-norm transformer block, width 128, 4 heads, on 8 texts of 64 tokens; attention written out."""
    batch, tokens, width, heads = 8, 64, 128, 4
    x = leaf(_normal(batch, tokens, width))
    future = constant(np.triu(np.ones((tokens, tokens), bool), 1))
    parameters = {
        name: leaf(_normal(*shape) / 10)
        for name, shape in {
            "n1": (width,), "m1": (width,), "n2": (width,), "m2": (width,), "project": (3 * width, width),
            "pb": (3 * width,), "merge": (width, width), "mb": (width,), "up": (4 * width, width), "ub": (4 * width,),
            "down": (width, 4 * width), "db": (width,),
        }.items()
    }  # fmt: skip
    p = parameters

    def forward() -> Any:
        joined = f.linear(f.layer_norm(x, (width,), p["n1"], p["m1"]), p["project"], p["pb"])
        split = f.permute(f.reshape(joined, (batch, tokens, 3, heads, width // heads)), (2, 0, 3, 1, 4))
        q, k, v = f.unbind(split, 0)
        scores = f.mul(f.matmul(q, f.transpose(k, -2, -1)), (width // heads) ** -0.5)
        attended = f.matmul(f.softmax(f.masked_fill(scores, future, -np.inf), -1), v)
        merged = f.linear(f.reshape(f.transpose(attended, 1, 2), (batch, tokens, width)), p["merge"], p["mb"])
        h = f.add(x, merged)
        inner = f.gelu(f.linear(f.layer_norm(h, (width,), p["n2"], p["m2"]), p["up"], p["ub"]))
        return f.mean(f.add(h, f.linear(inner, p["down"], p["db"])))

    return forward, [x, *p.values()]


class _Ours:
    """The engine's ops as functions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return partial(self._engine.call, name)


class _Theirs:
    """torch's functions, from any of its namespaces."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name, None) or getattr(torch.nn.functional, name)


def _backward(plan: Plan) -> Iterator[Row]:
    for label, build, steps in (("MLP 784-256-10, batch 128", perceptron, 20), ("GPT block, 8 x 64 tokens", block, 4)):
        engine = Engine()

        def end(loss: Any, engine: Engine = engine) -> None:
            engine.call("backward", [loss], [None])

        ours = build(_Ours(engine), partial(engine.from_numpy, requires_grad=True), engine.from_numpy)
        theirs = build(_Theirs(), lambda a: torch.from_numpy(a).requires_grad_(), torch.from_numpy)
        _agree(ours, end, theirs)
        count = plan.of(steps, 1)
        found = interleave(
            {
                "ours": partial(_ratio_of_step, *ours, end, count),
                "torch": partial(_ratio_of_step, *theirs, _end, count),
            },
            plan.rounds,
        )
        yield Row(
            "autograd", f"backward / forward, {label}", "x", found["ours"], found["torch"], Target(BACKWARD_LIMIT)
        )


def _end(loss: Any) -> None:
    loss.backward()


def _ratio_of_step(forward: Callable[[], Any], parameters: list[Any], end: Callable[[Any], None], count: int) -> float:
    """The time of backward relative to forward, over this many steps and an uncounted one."""
    took = [0.0, 0.0]
    for number in range(count + 1):
        for parameter in parameters:
            parameter.grad = None
        started = time.perf_counter()
        loss = forward()
        between = time.perf_counter()
        end(loss)
        ended = time.perf_counter()
        del loss
        if number:
            took[0] += between - started
            took[1] += ended - between
    return took[1] / took[0]


def _agree(ours: Any, end: Callable[[Any], None], theirs: Any) -> None:
    """Check that both sides compute the same gradients.

    Raises:
        AssertionError: with the values.
    """
    end(ours[0]())
    theirs[0]().backward()
    for mine, wanted in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(mine.grad.array, wanted.grad.numpy(), rtol=1e-3, atol=1e-5)


def _normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _ratio(above: Figures, below: Figures) -> Figures:
    return Figures(tuple(a / b for a, b in zip(above.values, below.values, strict=True)))
