"""One configuration of one optimizer: the same small problem under both libraries, compared after each step.

The problem is a linear regression with real or complex weights. Halfway, a new optimizer replaces each one and loads
the *other* library's state dict, which shows that the states are interchangeable.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.testing._internal.common_optimizers import (
    OptimizerErrorEnum,
    OptimizerInfo,
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
)

import gradwire
from tests.side_by_side import built_in

STEPS = 6
REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
TOLERANCES = {"float32": (2e-5, 2e-6), "complex64": (2e-5, 2e-6), "float64": (1e-9, 1e-10), "complex128": (1e-9, 1e-10)}
# Muon iterates in bfloat16, whose last digit depends on the order of a sum. LBFGS divides differences of gradients that
# vanish as it converges: a step is 20 iterations here.
WIDE = {"Muon": (5e-3, 2e-3), "LBFGS": (1e-6, 1e-8)}
WIDE_SINGLE = {"LBFGS": (2e-3, 2e-3)}
NOISE = ("H_diag", "ro", "old_dirs", "old_stps", "d", "prev_flat_grad", "t", "prev_loss", "n_iter", "func_evals")
"""What LBFGS keeps and what in single precision depends on rounding once it has converged: also when it stops."""

INFOS: dict[str, OptimizerInfo] = {info.optim_cls.__name__: info for info in optim_db}


class Case(NamedTuple):
    """A configuration, or an input that is to be refused."""

    optimizer: str
    label: str
    kwargs: dict[str, Any]
    dtype: str
    error: Any = None

    def __str__(self) -> str:
        return f"{self.optimizer}, {self.label}, {self.dtype}"


def cases(name: str) -> Iterator[Case]:
    """All of one optimizer. ``differentiable=True`` needs parameters that are no leaves, so it has tests of its own."""
    info = INFOS[name]
    for dtype in REAL + (COMPLEX if info.supports_complex else ()):
        found = _get_optim_inputs_including_global_cliquey_kwargs(
            "cpu", getattr(torch, dtype), info, skip=("differentiable",)
        )
        for entry in found:
            yield Case(name, entry.desc, entry.kwargs, dtype)
    for error in info.optim_error_inputs_func("cpu", torch.float32):
        entry = error.optimizer_error_input
        yield Case(name, f"refuses: {entry.desc}", entry.kwargs, "float32", error)


def translated(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A value of torch's as one of gradwire's: the same tensor always becomes the same tensor."""
    memo = {} if memo is None else memo
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            made = gradwire.tensor(value.detach().numpy())
            if isinstance(value, torch.nn.Parameter):
                made = gradwire.nn.Parameter(made)
            if value.grad is not None:
                made.grad = gradwire.tensor(value.grad.numpy())
            memo[id(value)] = made
        return memo[id(value)]
    if isinstance(value, dict):
        return {k: translated(v, memo) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(translated(v, memo) for v in value)
    return value


def back(value: Any) -> Any:
    """A value of gradwire's as one of torch's."""
    if isinstance(value, gradwire.Tensor):
        return torch.tensor(value.detach().numpy())
    if isinstance(value, dict):
        return {k: back(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(back(v) for v in value)
    return value


def numbers(dtype: str, seed: int, *shape: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    found = generator.normal(size=shape)
    if dtype.startswith("complex"):
        found = found + 1j * generator.normal(size=shape)
    return np.asarray(found, dtype)


class Problem:
    """The regression under one library."""

    def __init__(self, lib: Any, case: Case) -> None:
        self.lib = lib
        dtype = case.dtype
        # Muon takes matrices alone.
        self.params = [lib.nn.Parameter(lib.tensor(numbers(dtype, 1, 4, 3)))]
        self.params.append(
            lib.nn.Parameter(lib.tensor(numbers(dtype, 2, *((1, 4) if case.optimizer == "Muon" else (4,)))))
        )
        self.x, self.y = lib.tensor(numbers(dtype, 3, 7, 3)), lib.tensor(numbers(dtype, 4, 7, 4))
        self.make = getattr(lib.optim, case.optimizer)
        self.kwargs = case.kwargs if lib is torch else translated(case.kwargs)
        self.optimizer = self.make(self.params, **self.kwargs)

    def loss(self) -> Any:
        self.optimizer.zero_grad()
        weight, bias = self.params
        found = ((self.x @ weight.t() + bias - self.y).abs() ** 2).mean()
        found.backward()
        return found

    def step(self, closure: bool) -> None:
        if closure:
            self.optimizer.step(self.loss)
        else:
            self.loss()
            self.optimizer.step()

    def renew(self, state: Any) -> None:
        self.optimizer = self.make(self.params, **self.kwargs)
        self.optimizer.load_state_dict(state)


def difference(what: str, expected: Any, actual: Any, tolerance: tuple[float, float]) -> str | None:
    """What is unequal, or None."""
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(expected) != len(actual):
            return f"{what}: {len(expected)} entries under torch, {len(actual)} under gradwire"
        found = (
            difference(f"{what}[{i}]", e, a, tolerance) for i, (e, a) in enumerate(zip(expected, actual, strict=True))
        )
        return next((f for f in found if f), None)
    if expected is None or actual is None:
        return None if expected is actual else f"{what}: {expected!r} under torch, {actual!r} under gradwire"
    theirs = np.asarray(expected.detach().numpy() if isinstance(expected, torch.Tensor) else expected)
    ours = np.asarray(actual.detach().numpy() if isinstance(actual, gradwire.Tensor) else actual)
    if theirs.shape != ours.shape:
        return f"{what}: shape {theirs.shape} under torch, {ours.shape} under gradwire"
    if not np.allclose(ours, theirs, *tolerance, equal_nan=True):
        return f"{what}: differs by {np.abs(ours - theirs).max():.3g} at most {np.abs(theirs).max():.3g}"
    return None


def run(case: Case) -> str | None:
    """Run a case; returns what is wrong with it, or None."""
    if case.error is not None:
        return _refused(case)
    single = case.dtype in ("float32", "complex64")
    tolerance = WIDE.get(case.optimizer, TOLERANCES[case.dtype])
    if single:
        tolerance = WIDE_SINGLE.get(case.optimizer, tolerance)
    closure = INFOS[case.optimizer].step_requires_closure
    theirs, ours = Problem(torch, case), Problem(gradwire, case)
    refused = _first_step(theirs, closure), _first_step(ours, closure)
    if any(refused):
        return None if refused[0] == refused[1] else f"torch raises {refused[0]}, gradwire {refused[1]}"
    untold = NOISE if single and case.optimizer == "LBFGS" else ()
    for step in range(STEPS):
        if step == STEPS // 2:
            saved = theirs.optimizer.state_dict()
            theirs.renew(back(ours.optimizer.state_dict()))
            ours.renew(translated(saved))
        if step:
            theirs.step(closure)
            ours.step(closure)
        found = difference(f"parameters after step {step + 1}", theirs.params, ours.params, tolerance)
        found = found or _states(theirs.optimizer, ours.optimizer, step, tolerance, untold)
        if found:
            return found
    return None


def _states(theirs: Any, ours: Any, step: int, tolerance: tuple[float, float], untold: tuple[str, ...]) -> str | None:
    expected, actual = theirs.state_dict(), ours.state_dict()
    for group, own in zip(expected["param_groups"], actual["param_groups"], strict=True):
        if group.keys() != own.keys():
            return f"param_groups: torch has {sorted(group)}, gradwire {sorted(own)}"
    if expected["state"].keys() != actual["state"].keys():
        return f"state: torch has {list(expected['state'])}, gradwire {list(actual['state'])}"
    for number, kept in expected["state"].items():
        own = actual["state"][number]
        # A list of scratch numbers, and entries that torch writes without a value, say nothing.
        names = {k for k, v in kept.items() if v is not None and k != "al"}
        if names != {k for k, v in own.items() if v is not None and k != "al"}:
            return f"state[{number}]: torch has {sorted(names)}, gradwire {sorted(own)}"
        for name in sorted(names - {*untold}):
            found = difference(f"state[{number}][{name!r}] after step {step + 1}", kept[name], own[name], tolerance)
            if found:
                return found
    return None


def _raised(lib: Any, case: Case, entry: Any) -> str | None:
    """The built-in class of what this input raises, a warning included."""
    memo: dict[int, Any] = {}
    params = entry.params
    if params is None:
        params = [torch.nn.Parameter(torch.ones(2, 2))]
    kwargs = entry.kwargs
    if lib is gradwire:
        params, kwargs = translated(params, memo), translated(kwargs, memo)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            made = getattr(lib.optim, case.optimizer)(params, **kwargs)
            if case.error.error_on is OptimizerErrorEnum.STEP_ERROR:
                made.step()
        except Exception as error:
            return built_in(error)
    return None


def _first_step(problem: Problem, closure: bool) -> str | None:
    """Take it; the built-in class of what it raises (complex parameters and ``fused=True`` exclude each other)."""
    try:
        problem.step(closure)
    except Exception as error:
        return built_in(error)
    return None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _refused(case: Case) -> str | None:
    entry = case.error.optimizer_error_input
    if any(isinstance(p, torch.Tensor) and p.is_sparse for p in _leaves(entry.params)):
        return "gradwire has no sparse tensors"
    expected, actual = _raised(torch, case, entry), _raised(gradwire, case, entry)
    return None if expected == actual else f"torch raises {expected}, gradwire {actual}"
