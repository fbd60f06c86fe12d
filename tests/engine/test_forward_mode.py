"""Forward mode of every op against PyTorch's, or, where PyTorch has none, against double reverse mode.

Each sample of ``tests/samples`` with a gradient runs with random tangents, in-place forms included. This checks op,
derivative and linearity declarations against the oracle.
"""

from __future__ import annotations

import os
import random
import warnings
import zlib
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad as fwd

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.tensor import Tensor
from gradwire_protocol import dtypes
from gradwire_protocol.errors import Unsupported
from gradwire_protocol.table import TABLE
from tests.engine.test_parity import Oracle, close, convert, from_numpy, listed, plain, random_like, to_dtype, to_ours
from tests.samples import Sample, Samples, load

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
TOLERANCE = (1e-8, 1e-8)
REVERSE = (
    "scatter_reduce", "linalg_cholesky", "linalg_cholesky_ex", "cholesky_inverse", "triangular_solve",
    "pow-complex128", "atan2", "clamp", "logcumsumexp", "gaussian_nll_loss",
)  # fmt: skip
"""Where PyTorch's two modes differ, and not for the better: at kinks, for perturbations of a Cholesky factor's input
that are not symmetric and of a triangle beyond it, for real exponents of complex numbers, and by rounding. The oracle
is its reverse mode, taken twice."""
LEVELS = count(1)


def cases() -> Iterator[Any]:
    for name, declared in load().items():
        for i, samples in enumerate(declared):
            for dtype in ("float64", "complex128"):
                if dtype in samples.dtypes and samples.grad and samples.ref is not None:
                    yield pytest.param(samples, dtype, id=f"{name}-{dtype}" + (f"-{i}" if i else ""))


class Duals:
    """Tensors of a sample, each made dual once, for one of the two sides."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        self.tangents: dict[int, torch.Tensor] = {}


@pytest.mark.parametrize(("samples", "dtype"), list(cases()))
def test_tangents_agree_with_pytorch(samples: Samples, dtype: str) -> None:
    seed = zlib.crc32(f"{samples.op}{dtype}{SEED}".encode())
    torch.manual_seed(seed)
    engine = Engine()
    ran = False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in samples.draw(dtype, seed):
            if sample.expects_error or not sample.gradients or not ordinary(samples.op, sample):
                continue
            try:
                ran |= compare(engine, samples, sample, dtype)
            except Exception as error:
                raise AssertionError(
                    f"{samples.op}{sample!r}\n{type(error).__name__}: {error}\n(GRADWIRE_TEST_SEED={SEED})"
                ) from error
    if not ran:
        pytest.skip("no sample has a tangent in PyTorch")


def compare(engine: Engine, samples: Samples, sample: Sample, dtype: str) -> bool:
    tangents: dict[int, torch.Tensor] = {}
    for given in tensors_of(sample):
        if given.requires_grad:
            tangents[id(given)] = random_like(given)
    if not tangents:
        return False
    expected = oracle_tangents(samples, sample, tangents, dtype)
    if expected is None:
        return False
    level = next(LEVELS)
    engine.call("enter_dual_level", level)
    try:
        made: dict[int, Tensor] = {}

        def dual(given: torch.Tensor) -> Tensor:
            if id(given) not in made:
                mine = to_ours(engine, given)
                mine.requires_grad_flag = False
                if id(given) in tangents:
                    mine = engine.call("make_dual", mine, to_ours(engine, tangents[id(given)]), level)
                made[id(given)] = mine
            return made[id(given)]

        args = [convert(a, dual, to_dtype) for a in sample.args]
        kwargs = {k: convert(v, dual, to_dtype) for k, v in sample.kwargs.items()}
        results = listed(engine.call(samples.op, *args, **kwargs))
        for i, (result, wanted) in enumerate(zip(results, expected, strict=True)):
            if wanted is None:
                continue
            mine = engine.call("tangent_of", result, level)
            assert mine.dtype is result.dtype
            assert mine.shape == result.shape
            assert [s for s, n in zip(mine.meta.stride, mine.shape, strict=True) if n > 1] == [
                s for s, n in zip(result.meta.stride, result.shape, strict=True) if n > 1
            ], "the tangent lies in memory in another order"
            agree(f"tangent of result {i}", mine, wanted)
        check_in_place(engine, samples, sample, level, tangents, expected)
    finally:
        engine.call("exit_dual_level", level)
    return True


def check_in_place(
    engine: Engine, samples: Samples, sample: Sample, level: int, tangents: dict[int, torch.Tensor], expected: Any
) -> None:
    """The form that writes to ``self`` gives ``self`` the tangent that the result has."""
    form = TABLE.get(samples.op + "_")
    first = sample.args[0] if sample.args else None
    if form is None or form.base is None or not isinstance(first, torch.Tensor) or id(first) not in tangents:
        return
    if len(expected) != 1 or expected[0] is None or expected[0].shape != first.shape or form.random:
        return
    if expected[0].dtype != first.dtype or any(s == 0 for s in first.stride()):
        return

    def dual(given: torch.Tensor) -> Tensor:
        mine = to_ours(engine, given)
        mine.requires_grad_flag = False
        if id(given) in tangents:
            tangent = engine.call("clone", to_ours(engine, tangents[id(given)]))
            mine = engine.call("make_dual", mine, tangent, level)
        return mine

    args = [convert(a, dual, to_dtype) for a in sample.args]
    kwargs = {k: convert(v, dual, to_dtype) for k, v in sample.kwargs.items()}
    target = args[0]
    held = engine.call("tangent_of", target, level)
    engine.call(form.name, *args, **kwargs)
    mine = engine.call("tangent_of", target, level)
    assert mine is held, "the tangent was replaced rather than written to"
    agree("tangent in place", mine, expected[0])


def agree(what: str, mine: Tensor, wanted: torch.Tensor) -> None:
    """Equal, except where PyTorch knows no answer."""
    known = ~wanted.resolve_conj().isnan()
    close(what, from_numpy(plain(mine).copy())[known], wanted.resolve_conj()[known], TOLERANCE, slack=16)


def ordinary(op: str, sample: Sample) -> bool:
    """Whether the derivative is defined, and elements have memory of their own."""
    zero = sample.args and isinstance(sample.args[0], torch.Tensor) and bool((sample.args[0] == 0).any())
    if op == "prelu" and zero:
        return False  # PyTorch takes the slope in one mode and 1 in the other
    return all(
        not t.requires_grad
        or (bool(t.isfinite().all()) and t.numel() and not any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape)))
        for t in tensors_of(sample)
    )


def tensors_of(sample: Sample) -> list[torch.Tensor]:
    found = []
    for value in [*sample.args, *sample.kwargs.values()]:
        for item in value if isinstance(value, (list, tuple)) else [value]:
            found += [item] if isinstance(item, torch.Tensor) else []
    return found


def oracle_tangents(
    samples: Samples, sample: Sample, tangents: dict[int, torch.Tensor], dtype: str
) -> list[torch.Tensor | None] | None:
    """One tangent per result, None where PyTorch gives none; None where the sample cannot be differentiated."""
    if samples.op in REVERSE or f"{samples.op}-{dtype}" in REVERSE:
        return by_double_backward(samples, sample, tangents)
    try:
        with fwd.dual_level():
            made: dict[int, torch.Tensor] = {}

            def dual(given: torch.Tensor) -> torch.Tensor:
                if id(given) not in made:
                    tangent = tangents.get(id(given))
                    plain = given.detach()
                    made[id(given)] = plain if tangent is None else fwd.make_dual(plain, tangent)
                return made[id(given)]

            args = [convert(a, dual, lambda d: d) for a in sample.args]
            kwargs = {k: convert(v, dual, lambda d: d) for k, v in sample.kwargs.items()}
            return [fwd.unpack_dual(r).tangent for r in listed(samples.ref(*args, **kwargs))]
    except (NotImplementedError, RuntimeError):
        return by_double_backward(samples, sample, tangents)


def by_double_backward(samples: Samples, sample: Sample, tangents: dict[int, torch.Tensor]) -> Any:
    theirs = Oracle(samples.ref, sample)
    try:
        results = theirs.call()
        live = [r for r in results if r.requires_grad]
        if not live:
            return None
        leaves = [leaf for leaf in theirs.leaves if leaf.requires_grad]
        originals = {id(made): key for key, made in theirs.made.items()}
        seeds = [torch.zeros_like(r).requires_grad_() for r in live]
        gradients = torch.autograd.grad(live, leaves, seeds, create_graph=True, allow_unused=True)
        pairs = [
            (g, tangents[originals[id(leaf)]])
            for g, leaf in zip(gradients, leaves, strict=True)
            if g is not None and g.requires_grad
        ]
        found = iter(torch.autograd.grad([g for g, _ in pairs], seeds, [t for _, t in pairs], allow_unused=True))
    except (NotImplementedError, RuntimeError):
        return None
    return [next(found) if r.requires_grad else None for r in results]


@pytest.mark.parametrize(("samples", "dtype"), list(cases()))
def test_second_derivatives_agree_in_every_order(samples: Samples, dtype: str) -> None:
    """Forward over reverse, reverse over forward and reverse over reverse of the same function."""
    if not samples.gradgrad or samples.op in ("polar", "linalg_cholesky", "linalg_cholesky_ex"):
        pytest.skip("it has no second derivative")
    seed = zlib.crc32(f"{samples.op}{dtype}{SEED}".encode())
    torch.manual_seed(seed)
    engine = Engine()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in samples.draw(dtype, seed):
            if sample.expects_error or not sample.gradients or not ordinary(samples.op, sample):
                continue
            try:
                Oracle(samples.ref, sample).call()
            except Exception:
                continue  # there is no such function
            try:
                Second(engine, samples, sample).compare()
            except Exception as error:
                raise AssertionError(
                    f"{samples.op}{sample!r}\n{type(error).__name__}: {error}\n(GRADWIRE_TEST_SEED={SEED})"
                ) from error


class Second:
    """The derivative along ``tangents`` of the gradient of ``<weights, results>``, in three ways."""

    def __init__(self, engine: Engine, samples: Samples, sample: Sample) -> None:
        self.engine, self.op, self.sample = engine, samples.op, sample
        self.given = [t for t in {id(t): t for t in tensors_of(sample)}.values() if t.requires_grad]
        self.tangents = [to_ours(engine, random_like(t).detach()) for t in self.given]
        self.weights: list[torch.Tensor] = []

    def leaves(self) -> dict[int, Tensor]:
        return {id(t): to_ours(self.engine, t) for t in self.given}

    def results(self, made: dict[int, Tensor]) -> list[Tensor]:
        def tensor(given: torch.Tensor) -> Tensor:
            if id(given) not in made:
                made[id(given)] = to_ours(self.engine, given)
            return made[id(given)]

        args = [convert(a, tensor, to_dtype) for a in self.sample.args]
        kwargs = {k: convert(v, tensor, to_dtype) for k, v in self.sample.kwargs.items()}
        live = [r for r in listed(self.engine.call(self.op, *args, **kwargs)) if r.requires_grad]
        while len(self.weights) < len(live):
            self.weights.append(random_like(from_numpy(plain(live[len(self.weights)]).copy())))
        return live

    def grad(self, results: list[Tensor], inputs: list[Tensor], weights: list[Tensor], again: bool) -> list[Any]:
        pairs = [(r, w) for r, w in zip(results, weights, strict=True) if r is not None and r.requires_grad]
        if not pairs:
            return [None] * len(inputs)
        return list(
            self.engine.call(
                "grad",
                [r for r, _ in pairs],
                inputs,
                [w for _, w in pairs],
                create_graph=again,
                allow_unused=True,
                retain_graph=True,
            )
        )

    def compare(self) -> None:
        engine = self.engine
        made = self.leaves()
        inputs = list(made.values())
        if not inputs or not (results := self.results(made)):
            return
        weights = [to_ours(engine, w) for w in self.weights]
        gradients = self.grad(results, inputs, weights, True)
        reverse_reverse = self.grad(gradients, inputs, self.tangents, False)

        level = next(LEVELS)
        engine.call("enter_dual_level", level)
        made = self.leaves()
        inputs = list(made.values())
        duals = {
            key: engine.call("make_dual", leaf, t, level)
            for (key, leaf), t in zip(made.items(), self.tangents, strict=True)
        }
        points = list(duals.values())
        results = self.results(duals)
        gradients = self.grad(results, points, weights, False)
        forward_reverse = [None if g is None else engine.call("tangent_of", g, level) for g in gradients]
        tangents = [engine.call("tangent_of", r, level) for r in results]
        reverse_forward = self.grad(tangents, inputs, weights, False)
        engine.call("exit_dual_level", level)
        for i, (one, two, three) in enumerate(zip(reverse_reverse, forward_reverse, reverse_forward, strict=True)):
            zeros = np.zeros(self.given[i].shape)
            wanted = zeros if one is None else plain(one)
            known = ~np.isnan(wanted)
            for name, other in (("forward over reverse", two), ("reverse over forward", three)):
                got = zeros if other is None else plain(other)
                np.testing.assert_allclose(
                    got[known], wanted[known], rtol=1e-7, atol=1e-7, err_msg=f"{name}, operand {i}"
                )


@pytest.mark.parametrize(("samples", "dtype"), [c for c in cases() if c.values[1] == "float64"])
def test_mapped_tangents_are_those_of_each_direction(samples: Samples, dtype: str) -> None:
    """Tangents under ``vmap`` of tensors that all samples of the map share."""
    seed = zlib.crc32(f"{samples.op}{dtype}{SEED}".encode())
    torch.manual_seed(seed)
    engine = Engine()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in samples.draw(dtype, seed):
            if sample.expects_error or not sample.gradients or not ordinary(samples.op, sample):
                continue
            try:
                Oracle(samples.ref, sample).call()
            except Exception:
                continue  # there is no such function
            try:
                compare_mapped(engine, samples.op, sample)
            except Unsupported:
                continue  # a derivative without a derivative, of which there is no tangent
            except Exception as error:
                raise AssertionError(
                    f"{samples.op}{sample!r}\n{type(error).__name__}: {error}\n(GRADWIRE_TEST_SEED={SEED})"
                ) from error


def compare_mapped(engine: Engine, op: str, sample: Sample) -> None:
    given = {id(t): t for t in tensors_of(sample) if t.requires_grad}
    directions = {key: [random_like(t).detach() for _ in range(2)] for key, t in given.items()}

    def run(tangent: Any) -> list[tuple[Tensor, Tensor]]:
        level = next(LEVELS)
        engine.call("enter_dual_level", level)
        made: dict[int, Tensor] = {}

        def dual(one: torch.Tensor) -> Tensor:
            if id(one) not in made:
                mine = to_ours(engine, one)
                mine.requires_grad_flag = False
                made[id(one)] = (
                    engine.call("make_dual", mine, tangent(id(one)), level) if id(one) in directions else mine
                )
            return made[id(one)]

        args = [convert(a, dual, to_dtype) for a in sample.args]
        kwargs = {k: convert(v, dual, to_dtype) for k, v in sample.kwargs.items()}
        found = [
            (r, engine.call("tangent_of", r, level))
            for r in listed(engine.call(op, *args, **kwargs))
            if r.dtype.category >= dtypes.FLOATING
        ]
        engine.call("exit_dual_level", level)
        return found

    each = [run(lambda key, i=i: to_ours(engine, directions[key][i])) for i in range(2)]
    mapped = run(lambda key: engine.call("batch", to_ours(engine, torch.stack(directions[key])), 0, 1))
    for i, ((value, tangent), *rows) in enumerate(zip(mapped, *each, strict=True)):
        assert type(value) is Tensor, "the values are the same for all samples"
        together = plain(engine.call("unbatch", tangent, 1, 0, 2))
        np.testing.assert_allclose(
            together, np.stack([plain(t) for _, t in rows]), rtol=1e-8, atol=1e-8, err_msg=f"result {i}"
        )
