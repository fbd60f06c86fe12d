"""Counts of samples that pass, by entry and dtype."""

from __future__ import annotations

import contextlib
import types
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.opinfo import core

import gradwire

from .entries import DTYPES, WRONG_IN_TORCH
from .trial import Lacking, Trial, operator_of, same_error

# For every sample torch searches the stack for one of its own test cases, through the sources of all modules that are
# loaded. There is none here, and the search takes longer than the samples.
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

MAXIMUM_REFERENCES = 200
"""Reference inputs beyond so many an entry and dtype are passed over."""


@dataclass
class Count:
    """Samples that passed, of how many; the others with what was wrong."""

    passed: int = 0
    total: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, problem: str | None) -> None:
        self.total += 1
        if problem is None:
            self.passed += 1
        else:
            self.failures.append(problem)


@dataclass
class Coverage:
    """What came of one entry: counts by kind ("forward", "gradient", "reference", "errors") and dtype."""

    lacking: str | None = None
    counts: dict[str, dict[str, Count]] = field(default_factory=dict)

    def count(self, kind: str, dtype: str) -> Count:
        return self.counts.setdefault(kind, {}).setdefault(dtype, Count())

    def total(self, *kinds: str) -> tuple[int, int]:
        chosen = [c for kind, by in self.counts.items() if not kinds or kind in kinds for c in by.values()]
        return sum(c.passed for c in chosen), sum(c.total for c in chosen)


def _problem(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


def _settle(library: types.ModuleType) -> None:
    """Let a failed sample's error not be the next one's."""
    if library is gradwire:
        with contextlib.suppress(Exception):
            gradwire.current_session().synchronize()


def samples_of(entry: Any, dtype: torch.dtype, gradient: bool, reference: bool) -> Iterator[Any]:
    torch.manual_seed(torch.initial_seed())
    draw = entry.reference_inputs if reference else entry.sample_inputs
    return iter(draw("cpu", dtype, requires_grad=gradient))


def measure(
    entry: Any, library: types.ModuleType = gradwire, dtypes: Iterable[str] | None = None, *, reference: bool = False,
    errors: bool = True,
) -> Coverage:  # fmt: skip
    """Run all samples of an entry under torch and the library."""
    found = Coverage()
    try:
        function = operator_of(entry, library)
    except Lacking as lacking:
        found.lacking = str(lacking)
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, name in DTYPES.items():
            if dtype in entry.supported_dtypes("cpu") and (dtypes is None or name in dtypes):
                run_dtype(found, entry, dtype, name, library, function, reference)
        if errors and entry.error_inputs_func is not None:
            run_errors(found, entry, library, function)
    return found


def run_dtype(
    found: Coverage,
    entry: Any,
    dtype: torch.dtype,
    name: str,
    library: types.ModuleType,
    function: Any,
    reference: bool,
) -> None:
    differentiable = (
        entry.supports_autograd
        and not {entry.name, f"{entry.name} {name}"} & WRONG_IN_TORCH.keys()
        and (dtype.is_floating_point or dtype.is_complex)
        and dtype in entry.supported_backward_dtypes("cpu")
    )
    for i, sample in enumerate(samples_of(entry, dtype, differentiable, False)):
        trial = Trial(entry, sample, library, function)
        if not trial.expected():
            continue
        where = f"{name} sample {i} {sample.summary()!s:.200}"
        try:
            trial.forward()
            found.count("forward", name).add(None)
        except Exception as error:
            found.count("forward", name).add(f"{where}: {_problem(error)}")
            _settle(library)
            continue
        if not differentiable or trial.drawn or trial.tied():
            continue
        try:
            trial.gradient()
            found.count("gradient", name).add(None)
        except Exception as error:
            found.count("gradient", name).add(f"{where}: gradient: {_problem(error)}")
            _settle(library)
    if reference and entry.reference_inputs_func is not None:
        for i, sample in enumerate(samples_of(entry, dtype, False, True)):
            if i >= MAXIMUM_REFERENCES:
                break
            trial = Trial(entry, sample, library, function)
            if trial.expected():
                try:
                    trial.forward()
                    found.count("reference", name).add(None)
                except Exception as error:
                    what = f"{name} reference {i} {sample.summary()!s:.200}: {_problem(error)}"
                    found.count("reference", name).add(what)
                    _settle(library)


def run_errors(found: Coverage, entry: Any, library: types.ModuleType, function: Any) -> None:
    for i, error in enumerate(entry.error_inputs("cpu")):
        try:
            if same_error(entry, error, library, function):
                found.count("errors", "any").add(None)
        except Exception as problem:
            what = f"error input {i} {error.sample_input.summary()!s:.200}: {_problem(problem)}"
            found.count("errors", "any").add(what)
