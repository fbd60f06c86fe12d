"""For any arguments, an op's forward, backward and second order end with results or typed errors, never with a defect.

``GRADWIRE_HOSTILE_CASES`` is the number of cases per op, or ``all``. A failure names its seed, and
``GRADWIRE_TEST_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import gradwire_engine.ops  # noqa: F401  (fills the table and the registry)
from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol import dtypes
from gradwire_protocol.errors import GradwireError, InternalError
from gradwire_protocol.records import decode_args, encode_args
from gradwire_protocol.table import TABLE, Op
from tests.hostile_arguments import Case, some

SEED = int(os.environ.get("GRADWIRE_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
CASES = os.environ.get("GRADWIRE_HOSTILE_CASES", "6")
OPS = [name for name, op in sorted(TABLE.items()) if not op.internal and not op.control]


def on(engine: Engine, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        plain = value.detach().resolve_conj().resolve_neg()
        half = value.dtype is torch.bfloat16
        array = plain.float().numpy().astype(ml_dtypes.bfloat16) if half else plain.numpy()
        return engine.from_numpy(array, requires_grad=value.requires_grad)
    if isinstance(value, torch.dtype):
        return dtypes.BY_NAME[str(value).removeprefix("torch.")]
    return type(value)(on(engine, v) for v in value) if isinstance(value, (list, tuple)) else value


def tensors(result: Any) -> list[Tensor]:
    found = result if isinstance(result, (list, tuple)) else [result]
    return [t for t in found if isinstance(t, Tensor)]


def run(op: Op, case: Case) -> None:
    """Forward, backward and its backward, with arguments that came over the wire."""
    engine = Engine(Limits(max_tensor_bytes=1 << 24))
    values = op.bind([on(engine, a) for a in case.args], {k: on(engine, v) for k, v in case.kwargs.items()})
    operands: list[Tensor] = []
    scalars: list[Any] = []
    payloads: list[Any] = []

    def refer(tensor: Tensor) -> int:
        operands.append(tensor)
        return len(operands) - 1

    args = encode_args(op, values, lambda v: isinstance(v, Tensor), refer, scalars, payloads)
    values = decode_args(op, args, operands.__getitem__, iter(scalars), iter(payloads))
    if op.mutates is not None and isinstance(values[0], Tensor):
        engine.call("detach_", values[0])
    results = [t for t in tensors(engine.run(row(op.name), values)) if t.requires_grad]
    leaves = [t for t in operands if t.requires_grad and t.grad_fn is None]
    for _ in range(2):
        if not results or not leaves:
            return
        seeds = [engine.call("ones_like", t) for t in results]
        gradients = engine.call("grad", results, leaves, seeds, create_graph=True, allow_unused=True)
        results = [t for t in tensors(gradients) if t.requires_grad]


@pytest.mark.parametrize("name", OPS)
def test_hostile_arguments_never_meet_a_defect(name: str) -> None:
    op = TABLE[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _, case in some(op, SEED, None if CASES == "all" else int(CASES)):
            try:
                run(op, case)
            except InternalError as defect:
                raise AssertionError(f"{name}: {case!r} (GRADWIRE_TEST_SEED={SEED})") from defect
            except GradwireError:
                pass
            except Exception as defect:
                raise AssertionError(f"{name}: {case!r} (GRADWIRE_TEST_SEED={SEED})") from defect
