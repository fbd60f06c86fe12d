"""The client's graph mirror agrees with PyTorch: names, edges, ``requires_grad``, freed graphs.

Random programs (with fixed seeds) run under both libraries, step by step. Questions about the graph cost no round
trip.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gradwire

PROGRAMS = 60
STEPS = 30


class Program:
    """One random program, run by both libraries."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.log: list[str] = []
        self.pairs: list[tuple[Any, Any]] = []
        for shape in ((2, 3), (2, 3), (3,), (3, 2)):
            values = [self.random.uniform(0.5, 2.0) for _ in range(6 if len(shape) == 2 else 3)]
            needs = self.random.random() < 0.7
            self.pairs.append(tuple(  # type: ignore[arg-type]
                lib.tensor(values).reshape(shape).detach().clone().requires_grad_(needs) for lib in (torch, gradwire)
            ))  # fmt: skip

    def pick(self) -> int:
        return self.random.randrange(len(self.pairs))

    def both(self, what: str, function: Callable[[Any, int], Any]) -> tuple[Any, Any] | None:
        """Run by both; None if both raise the same kind of error."""
        self.log.append(what)
        results: list[Any] = []
        failures: list[Exception | None] = []
        for which, lib in enumerate((torch, gradwire)):
            try:
                results.append(function(lib, which))
                failures.append(None)
            except (RuntimeError, IndexError) as error:
                results.append(None)
                failures.append(error)
        assert (failures[0] is None) == (failures[1] is None), f"{self.told()}\nPyTorch: {failures[0]}\n{failures[1]}"
        return None if failures[0] is not None else (results[0], results[1])

    def add(self, made: tuple[Any, Any] | None) -> None:
        if made is None:
            return
        if isinstance(made[0], (tuple, list)):
            assert [m is None for m in made[0]] == [m is None for m in made[1]], self.told()
            self.pairs.extend(p for p in zip(*made, strict=True) if p[0] is not None)
        elif isinstance(made[0], torch.Tensor):
            self.pairs.append(made)
        del self.pairs[4 : max(4, len(self.pairs) - 8)]

    def told(self) -> str:
        return "\n".join(self.log)

    def step(self) -> None:
        kind = self.random.choice(
            ("unary", "unary", "binary", "binary", "view", "in place", "no_grad", "backward", "grad", "second")
        )
        i, j = self.pick(), self.pick()

        def at(k: int, which: int) -> Any:
            return self.pairs[k][which]

        if kind in ("unary", "view", "no_grad"):
            table = VIEWS if kind == "view" else UNARY
            name = self.random.choice(list(table))
            if "view" in name and not all(x.is_contiguous() for x in self.pairs[i]):
                return  # memory order is another claim's matter
            self.add(
                self.both(f"{kind} {name}({i})", lambda lib, w: _run(lib, table[name], at(i, w), kind == "no_grad"))
            )
        elif kind == "binary":
            name = self.random.choice(list(BINARY))
            self.add(self.both(f"{name}({i}, {j})", lambda lib, w: BINARY[name](lib, at(i, w), at(j, w))))
        elif kind == "in place":
            name = self.random.choice(list(IN_PLACE))
            quiet = self.random.random() < 0.3
            if i == j or self.pairs[i][0]._base is not None or self.pairs[j][0]._base is not None:
                return  # whether a write overlaps an operand is another claim's matter
            label = f"{name}({i}, {j}){' without gradients' if quiet else ''}"
            self.both(label, lambda lib, w: _run(lib, lambda x: IN_PLACE[name](lib, x, at(j, w)), at(i, w), quiet))
        else:
            self.differentiate(kind, i)

    def differentiate(self, kind: str, i: int) -> None:
        keep = self.random.random() < 0.5
        leaves = [k for k, (x, _) in enumerate(self.pairs) if x.requires_grad]
        inputs = self.random.sample(leaves, min(len(leaves), 2))
        if kind == "backward":
            self.both(f"backward({i}, {keep})", lambda lib, w: self.pairs[i][w].sum().backward(retain_graph=keep))
        elif inputs:
            self.add(self.both(
                f"{kind}({i}, {inputs}, {keep})",
                lambda lib, w: lib.autograd.grad(
                    self.pairs[i][w].sum(), [self.pairs[k][w] for k in inputs], retain_graph=keep or None,
                    create_graph=kind == "second", allow_unused=True,
                ),
            ))  # fmt: skip

    def compare(self) -> None:
        for k, (theirs, mine) in enumerate(self.pairs):
            self.compare_one(f"tensor {k}", theirs, mine)
            if theirs.is_leaf and mine.is_leaf:
                assert (theirs.grad is None) == (mine.grad is None), f"{self.told()}\ngrad of {k}"

    def compare_one(self, what: str, theirs: Any, mine: Any) -> None:
        facts = [(x.requires_grad, x.is_leaf, x.output_nr) for x in (theirs, mine)]
        assert facts[0] == facts[1], f"{self.told()}\n{what}: {facts}"
        node, own = theirs.grad_fn, mine.grad_fn
        if node is None or own.told:
            return
        assert node.name() == own.name(), f"{self.told()}\n{what}: {node.name()} {own.name()}"
        following = [[(_name(n), slot) for n, slot in f.next_functions] for f in (node, own)]
        assert len(following[0]) == len(following[1]), f"{self.told()}\n{what}, {node.name()}: {following}"
        told = [n is not None and n.told for n, _ in own.next_functions]
        following[0] = [f for f, t in zip(following[0], told, strict=True) if not t]
        following[1] = [f for f, t in zip(following[1], told, strict=True) if not t]
        assert following[0] == following[1], f"{self.told()}\n{what}, {node.name()}: {following}"


def _name(node: Any) -> str | None:
    return None if node is None else node.name()


def _run(lib: Any, function: Callable[[Any], Any], x: Any, quiet: bool) -> Any:
    if not quiet:
        return function(x)
    with lib.no_grad():
        return function(x)


UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: (x * 0.1).exp(), "sin": lambda x: x.sin(), "neg": lambda x: -x, "twice": lambda x: x * 2,
    "square": lambda x: x**2, "cube": lambda x: x**3, "increment": lambda x: x + 1, "from one": lambda x: 1 - x,
    "half": lambda x: x / 2, "tanh": lambda x: x.tanh(), "sum": lambda x: x.sum(), "mean": lambda x: x.mean(),
    "row sums": lambda x: x.sum(0), "clone": lambda x: x.clone(), "sigmoid": lambda x: x.sigmoid(),
    "relu": lambda x: x.relu(), "clamp": lambda x: x.clamp(0.6, 1.5), "softmax": lambda x: x.softmax(0),
}  # fmt: skip
VIEWS: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x.t(), "view as rows": lambda x: x.reshape(-1), "first": lambda x: x[0], "rest": lambda x: x[1:],
    "detach": lambda x: x.detach(), "unsqueeze": lambda x: x.unsqueeze(0), "expand": lambda x: x.expand(2, *x.shape),
    "view": lambda x: x.view(-1), "all": lambda x: x[...],
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda lib, x, y: x + y, "mul": lambda lib, x, y: x * y, "sub": lambda lib, x, y: x - y,
    "div": lambda lib, x, y: x / (y + 3), "mm": lambda lib, x, y: lib.mm(x, y),
    "cat": lambda lib, x, y: lib.cat([x, y]),
    "where": lambda lib, x, y: lib.where(x > 1, x, y), "maximum": lambda lib, x, y: lib.maximum(x, y),
    "stack": lambda lib, x, y: lib.stack([x, y]), "pow": lambda lib, x, y: (x + 3) ** y,
}  # fmt: skip
IN_PLACE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add_": lambda lib, x, y: x.add_(1), "mul_": lambda lib, x, y: x.mul_(y), "add_ other": lambda lib, x, y: x.add_(y),
    "zero_": lambda lib, x, y: x.zero_(), "copy_": lambda lib, x, y: x.copy_(y),
    "first": lambda lib, x, y: x.__setitem__(0, 5.0), "tanh_": lambda lib, x, y: x.tanh_(),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_program_looks_the_same(seed: int, session: Any) -> None:
    program = Program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(STEPS):
            program.step()
            before = session.link.round_trips
            program.compare()
            assert session.link.round_trips == before, "looking at the graph cost a round trip"
        session.synchronize()  # the server found nothing wrong that PyTorch did not


def history(node: Any) -> Any:
    return None if node is None else (node.name(), [history(n) for n, _ in node.next_functions])


OVERLOADS: dict[str, Callable[[Any, Any], Any]] = {
    "x + 1": lambda lib, x: x + 1, "1 - x": lambda lib, x: 1 - x, "x * 2": lambda lib, x: x * 2,
    "x / 2": lambda lib, x: x / 2, "2 / x": lambda lib, x: 2 / x, "x ** 2": lambda lib, x: x**2,
    "2 ** x": lambda lib, x: 2**x, "x ** x": lambda lib, x: x**x, "x % 2": lambda lib, x: x % 2,
    "x % x": lambda lib, x: x % x, "clamp": lambda lib, x: x.clamp(0, 1), "clamp from": lambda lib, x: x.clamp(min=0),
    "clamp from a tensor": lambda lib, x: x.clamp(min=x), "lerp": lambda lib, x: lib.lerp(x, x, 0.5),
    "lerp by a tensor": lambda lib, x: lib.lerp(x, x, x), "masked_fill": lambda lib, x: x.masked_fill(x > 0, 1.0),
    "where": lambda lib, x: lib.where(x > 0, x, 0.0), "xlogy": lambda lib, x: lib.xlogy(x, 2.0),
    "layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (3,)), "fill_": lambda lib, x: x.clone().fill_(2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", list(OVERLOADS))
def test_a_node_has_the_edges_of_pytorchs_form_for_numbers(name: str, round_trips: Any) -> None:
    theirs, mine = (history(OVERLOADS[name](lib, lib.ones(3, requires_grad=True)).grad_fn) for lib in (torch, gradwire))
    assert mine == theirs
    assert round_trips() == 0


def test_nodes_are_numbered_as_they_are_made() -> None:
    x = gradwire.ones(2, requires_grad=True)
    y = x * 2
    z = y + 1
    assert y.grad_fn.seq < z.grad_fn.seq
