"""Extreme numbers against PyTorch, op by op: both refuse with the same error class, or compute the same.

Each extreme number replaces each number of a sample that both compute. The samples are the same in every run, because
each other draw still finds a few differences.
"""

from __future__ import annotations

import math
import random
import warnings
import zlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
import torch

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import LimitExceeded
from gradwire_protocol.records import decode_args, encode_args
from gradwire_protocol.table import TABLE, Kind, Op, Param
from tests.hostile_arguments import DTYPES, Case, drawn, values_for, variants
from tests.samples import Sample, Samples

from .test_hostile_arguments import on, tensors
from .test_parity import TOLERANCES, Oracle, builtin_class, from_numpy, is_gap

SEED: Final = 0
SAMPLES: Final = 1
"""Of each dtype."""

BY_DESIGN: Final = {
    ("arange", "step"): "PyTorch's function takes no step without an end",
    ("attention_backward", "scale"): "PyTorch's gradient is that of weights with this scale, ours of the weights given",
    ("batch_norm_backward", "eps"): "PyTorch's schema refuses complex numbers with another class",
    ("batch_norm_inference", "eps"): "only batch_norm itself refuses a bound",
    ("batch_norm_training", "eps"): "only batch_norm itself refuses a bound",
    ("cross_entropy", "label_smoothing"): "a share below 0 or NaN is refused, where PyTorch takes it for 0",
    ("flash_attention", "dropout_p"): "what is no probability is refused also where nothing is dropped",
    ("flash_attention_backward", "dropout_p"): "what is no probability is refused also where nothing is dropped",
    ("flash_attention_backward", "scale"): "PyTorch's gradient is of weights with this scale, ours of given levels",
    ("flash_attention_training", "dropout_p"): "what is no probability is refused also where nothing is dropped",
    ("hardtanh", "max_val"): "PyTorch compares the bounds in Python, which raises TypeError for complex ones",
    ("hardtanh", "min_val"): "PyTorch compares the bounds in Python, which raises TypeError for complex ones",
    ("linalg_lstsq", "rcond"): "it computes by SVD whatever the driver",
    ("logit", "eps"): "with NaN for a bound the result is NaN, PyTorch's the unbounded one",
    ("multi_margin_loss", "margin"): "with a margin of NaN the loss is NaN, PyTorch's 0",
    ("pad", "value"): "modes that take no value refuse one, where PyTorch lets 0 pass",
    ("scaled_dot_product_attention", "dropout_p"): "a probability below 0 or NaN is refused, PyTorch takes it for 0",
    ("scaled_dot_product_attention", "scale"): "with NaN for a scale the result is NaN, PyTorch's zeros at some sizes",
    ("scatter", "src"): "what the dtype does not hold is refused also where nothing is written",
    **{(name, "n"): "PyTorch loops for as long as the degree is high; ours end at one million"
       for name in TABLE if "_polynomial_" in name},
}  # fmt: skip
"""Where gradwire differs by intention, and why. A difference that concerns all ops alike is a case in ``excused``."""


def excused(number: Any, theirs: Exception | None, mine: Exception | None) -> bool:
    """Whether outcomes may differ: for reasons that ``docs/differences.md`` has for all ops."""
    if theirs is not None and "without overflow" in str(theirs):
        return True  # beyond the range of the float dtype: infinite in it
    if theirs is not None and is_gap(theirs):
        return True
    if isinstance(mine, LimitExceeded):
        return True  # of work, time or memory
    if mine is None and type(number) is float and abs(number) > torch.finfo(torch.float32).max:
        return math.isfinite(number)  # infinite in the float dtype, too; PyTorch's own words for it
    if theirs is None and mine is not None and type(number) is complex:
        return True  # PyTorch drops an imaginary part, or asks whether the number is zero
    whole = type(number) is int and not -(1 << 63) <= number < 1 << 63
    return whole and (mine is not None or theirs is not None)  # there are no unsigned 64-bit numbers


def takes_numbers(param: Param) -> bool:
    if param.kind is Kind.ATTRIBUTE:
        return float in param.check or complex in param.check
    return param.kind in (Kind.SCALAR, Kind.OPERAND)


OPS: Final = [
    name for name, op in sorted(TABLE.items())
    if not (op.internal or op.control or op.random or op.base is not None) and any(map(takes_numbers, op.params))
]  # fmt: skip


def hostile(op: Op, sample: Sample) -> Iterator[tuple[str, Any, Case]]:
    """The sample with each number in the place of each that it has: the parameter, the number, the call."""
    by_label = {case.label: case for case in variants(op, sample)}
    for param in filter(takes_numbers, op.params):
        for number in values_for(param):
            case = by_label.get(f"{param.name}={number!r:.30}")
            if case is not None and isinstance(number, (int, float, complex)):
                yield param.name, number, case


def by_torch(samples: Samples, case: Case) -> list[torch.Tensor]:
    assert samples.ref is not None
    found = Oracle(samples.ref, Sample(*case.args, **case.kwargs)).call()
    return [t.detach().resolve_conj() for t in found if isinstance(t, torch.Tensor)]


def here(op: Op, case: Case) -> list[torch.Tensor]:
    """The results, of arguments that came over the wire."""
    engine = Engine(Limits(max_tensor_bytes=1 << 24, max_op_work=1 << 28))
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
    return [from_numpy(engine.to_numpy(t)) for t in tensors(engine.run(row(op.name), values))]


def outcome(compute: Any) -> tuple[list[torch.Tensor], Exception | None]:
    try:
        return compute(), None
    except Exception as error:  # the class is what is compared
        return [], error


def differ(mine: list[torch.Tensor], wanted: list[torch.Tensor]) -> str:
    """What is different where PyTorch's values are finite; empty if nothing is."""
    if len(mine) != len(wanted):
        return f"{len(mine)} results instead of {len(wanted)}"
    for got, want in zip(mine, wanted, strict=True):
        if want.dtype is torch.complex32:
            continue
        if got.dtype != want.dtype or got.shape != want.shape:
            return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
        finite = torch.isfinite(want)
        rtol, atol = TOLERANCES.get(str(want.dtype).removeprefix("torch."), (0.0, 0.0))
        if not torch.isclose(got[finite], want[finite], rtol=4 * rtol, atol=4 * atol).all():
            return f"{got.tolist()!r:.200} instead of {want.tolist()!r:.200}"
    return ""


def against(samples: Samples, op: Op, number: Any, case: Case) -> str:
    """How the two differ in a call; empty if they do not."""
    wanted, theirs = outcome(lambda: by_torch(samples, case))
    got, mine = outcome(lambda: here(op, case))
    if excused(number, theirs, mine):
        return ""
    if theirs is None:
        return differ(got, wanted) if mine is None else f"refused: {mine}"
    if mine is None:
        return f"computed, but PyTorch raises {type(theirs).__name__}: {theirs}"
    expected = builtin_class(theirs)
    return (
        "" if isinstance(mine, expected) else f"{type(mine).__name__} ({mine}) instead of {expected.__name__}: {theirs}"
    )


def plain(op: Op, dtype: str) -> Iterator[tuple[Samples, Sample]]:
    """Samples with an element at least that both compute alike."""
    there = [pair for pair in drawn(op, dtype, SEED) if pair[0].ref is not None]
    random.Random(zlib.crc32(f"{op.name}{SEED}".encode())).shuffle(there)
    for samples, sample in there:
        case = Case("as it is", list(sample.args), dict(sample.kwargs))
        wanted, theirs = outcome(lambda: by_torch(samples, case))  # noqa: B023  (called at once)
        if theirs is None and any(t.numel() for t in wanted):
            got, mine = outcome(lambda: here(op, case))  # noqa: B023
            if mine is None and not differ(got, wanted):
                yield samples, sample


@pytest.mark.parametrize("name", OPS)
def test_hostile_numbers_come_out_as_with_pytorch(name: str) -> None:
    op, found = TABLE[name], []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            for _, (samples, sample) in zip(range(SAMPLES), plain(op, dtype), strict=False):
                for param, number, case in hostile(op, sample):
                    if (name, param) not in BY_DESIGN and (how := against(samples, op, number, case)):
                        found.append(f"{case!r:.300}: {how:.300}")
    assert not found, "\n".join([f"{len(found)} differ", *found[:20]])


def test_what_differs_by_design_names_parameters_that_are_there() -> None:
    for (name, param), reason in BY_DESIGN.items():
        assert takes_numbers(TABLE[name].params[[p.name for p in TABLE[name].params].index(param)])
        assert reason
