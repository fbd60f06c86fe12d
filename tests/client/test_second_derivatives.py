"""What gradients depend on, over torch's op database: their own gradients are torch's, or missing where torch's are 0.

The client knows what a gradient was made of from facts that were traced over samples. What it takes for independent
has no gradient, so a fact that holds for the traced samples alone loses one without an error.
"""

from __future__ import annotations

import os
import random
import warnings
from typing import Any

import pytest
import torch
from tests.op_db.bridge import Bridge
from tests.op_db.entries import PHASED, RANDOM, WRONG_IN_TORCH, all_entries
from tests.op_db.trial import Lacking, operator_of, tensors_in
from tests.side_by_side import close

import gradwire

pytestmark = pytest.mark.usefixtures("session")

LEFT_OUT = {
    "native_layer_norm": "torch's has no derivative by the bias's gradient where there is no weight",
    "nn.functional.cross_entropy": "a gradient of that by probabilities is expected by them; its values are refused",
    "linalg.norm/subgradients_at_zero": "torch's second derivatives at 0 are NaN where these are 0",
    "nn.functional.linear_cross_entropy": "torch's form in pieces computes its gradients in the forward, as constants",
}

SAMPLES = int(os.environ.get("GRADWIRE_TEST_SAMPLES", "3"))
SEED = int(os.environ.get("GRADWIRE_TEST_SEED", "1"))


def leaves_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves_of(v)]
    return [value] if isinstance(value, torch.Tensor) and value.requires_grad else []


def seconds(lib: Any, function: Any, sample: Any) -> list[list[Any]] | None:
    """The gradients of each gradient by every operand and every gradient that came in, in rows."""
    bridge = Bridge(lib)
    arguments, options = (bridge(sample.input), *bridge(tuple(sample.args))), bridge(dict(sample.kwargs))
    leaves = leaves_of((sample.input, sample.args, sample.kwargs))
    wanted = [bridge(leaf) for leaf in leaves]
    reached = [t for t in tensors_in(function(*arguments, **options), lib.Tensor) if t.requires_grad]
    if not wanted or not reached or not all(leaf.numel() for leaf in leaves):
        return None
    arriving = [lib.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape).requires_grad_() for t in reached]
    first = lib.autograd.grad(reached, wanted, arriving, create_graph=True, allow_unused=True)
    found = []
    for gradient in first:
        row: list[Any] = [None] * (len(wanted) + len(arriving))
        if gradient is not None and gradient.requires_grad:
            row = list(lib.autograd.grad(
                gradient, [*wanted, *arriving], lib.ones_like(gradient), allow_unused=True, retain_graph=True
            ))  # fmt: skip
        found.append([None if g is None else values_of(g) for g in row])
    return found


def values_of(gradient: Any) -> Any:
    try:
        return gradient.detach().tolist()
    except gradwire.GradwireError as error:  # a gradient that the client expected, and that there is not
        return type(error).__name__


def is_zero(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(is_zero, value))
    return value is None or (not isinstance(value, str) and abs(value) < 1e-12)


def apart(theirs: list[list[Any]], ours: list[list[Any]]) -> str:
    for at, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        for by, (one, other) in enumerate(zip(expected, actual, strict=True)):
            if is_zero(one) and is_zero(other):
                continue
            if isinstance(other, str) or is_zero(one) or is_zero(other) or not close(one, other, 1e-5):
                return f"gradient {at} by {by}: torch {one!r:.100}, gradwire {other!r:.100}"
    return ""


def differences(label: str) -> list[str]:
    entry = all_entries()[label]
    try:
        function = operator_of(entry, gradwire)
    except Lacking:
        return []
    samples = list(entry.sample_inputs("cpu", torch.float64, requires_grad=True))
    random.Random(f"{SEED} {label}").shuffle(samples)
    found = []
    for sample in samples[:SAMPLES]:
        try:
            theirs = seconds(torch, entry.op, sample)
        except Exception:
            continue  # torch has no second derivative there
        if theirs is None:
            continue
        try:
            problem = apart(theirs, seconds(gradwire, function, sample) or [])
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            found.append(f"{label}: {problem} of {sample!r:.300}")
    return found


def labels() -> list[str]:
    return [
        label for label, entry in all_entries().items()
        if entry.supports_autograd and torch.float64 in entry.dtypes
        and not {entry.name, label} & (RANDOM | PHASED | set(WRONG_IN_TORCH) | set(LEFT_OUT))
    ]  # fmt: skip


@pytest.mark.parametrize("part", range(8))
def test_a_gradient_depends_on_what_it_does_in_pytorch(part: int) -> None:
    problems = []
    for label in labels()[part::8]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problems += differences(label)
    assert not problems, "\n".join(problems)
