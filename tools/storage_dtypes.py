"""Which ops take the dtypes for storage: those that PyTorch computes them with on a CPU.

``protocol/gradwire_protocol/storage_dtypes.py`` is derived from this. The samples of ``tests/samples`` are called in
PyTorch with tensors of these dtypes. An op takes a dtype if PyTorch computes a call in it and never says that it is
not implemented for it. What counts is the dtype of the computation: ``uint16 + float32`` is a sum of float32.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import torch
from tests.samples import Make, Sample, Samples, load, oracle

import gradwire_protocol.ops  # noqa: F401  fills the table
from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.meta import Meta
from gradwire_protocol.params import Kind
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import TABLE, Op

from .rule_samples import described

REPRESENTATIVES: Final = {
    dtypes.uint16: (dtypes.uint16, dtypes.uint32, dtypes.uint64),
    dtypes.float8_e4m3fn: (dtypes.float8_e4m3fn,),
    dtypes.float8_e5m2: (dtypes.float8_e5m2,),
}
"""The dtypes that are tried, and those that each stands for: PyTorch has the same kernels for these."""

PARTLY: Final = {
    "index_put": "not at masks", "linear": "of matrices", "matmul": "of matrices", "mul": "of two tensors",
    "pad": "not by reflection and replication",
}  # fmt: skip
"""Ops that PyTorch implements in part, with that part. They are taken as a whole."""

ALWAYS: Final = ("upload",)
"""Bytes are those of any dtype."""
LEFT_OUT: Final = {"conj_physical": "PyTorch's result has other strides, those of a view"}
SEED: Final = 18
_HEADER: Final = '''\
"""The ops that take the dtypes for storage, as on a CPU in PyTorch. Derived by ``tools.storage_dtypes``."""

from __future__ import annotations

from typing import Final

from . import dtypes
from .dtypes import DType
'''


def table() -> str:
    """The derived module."""
    lines = [_HEADER]
    taken = found()
    common = set.intersection(*(set(names) for names in taken.values()))
    lines += _set("_COMMON", "", sorted(common))
    for first, alike in REPRESENTATIVES.items():
        name = "UNSIGNED" if len(alike) > 1 else first.name.upper()
        lines += _set(f"_{name}", "_COMMON | ", sorted(set(taken[first]) - common))
    lines += ["", "TAKEN: Final[dict[DType, set[str]]] = {"]
    for first, alike in REPRESENTATIVES.items():
        name = "UNSIGNED" if len(alike) > 1 else first.name.upper()
        lines += [f"    dtypes.{dtype.name}: _{name}," for dtype in alike]
    lines += ["}", '"""By dtype, the names of the ops that take it; an in-place form goes by that of its op."""']
    return "\n".join(lines) + "\n"


def _set(name: str, also: str, ops: list[str]) -> list[str]:
    listed = textwrap.wrap(", ".join(f'"{op}"' for op in ops) + ",", 116)
    return [f"{name}: Final = {also}{{", *(f"    {line}" for line in listed), "}  # fmt: skip"]


@cache
def found() -> dict[DType, tuple[str, ...]]:
    """By dtype, the ops that take it."""
    taken: dict[DType, list[str]] = {dtype: [*ALWAYS] for dtype in REPRESENTATIVES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, declared in load().items():
            op = TABLE[name]
            if op.control or op.internal or name in LEFT_OUT:
                continue
            for dtype, names in taken.items():
                computed, refused = tried(op, declared, dtype)
                if computed and (not refused or (name in PARTLY and computed > refused / 2)):
                    names.append(name)
    return {dtype: tuple(names) for dtype, names in taken.items()}


def tried(op: Op, declared: list[Samples], dtype: DType) -> tuple[int, int]:
    """How many samples PyTorch computes in a dtype, and how many it has no kernel for."""
    computed = refused = 0
    for samples in declared:
        reference = samples.ref or _named(op.name)
        if reference is None:
            continue
        for sample in drawn(samples, dtype):
            if sample.expects_error or not concerns(op, sample, dtype):
                continue
            try:
                reference(*sample.args, **sample.kwargs)
                computed += 1
            except (RuntimeError, TypeError, ValueError, IndexError) as error:
                refused += "not implemented for" in str(error)
    return computed, refused


def _named(name: str) -> Callable[..., Any] | None:
    try:
        return oracle(name)
    except LookupError:
        return None


def drawn(samples: Samples, dtype: DType) -> Iterator[Sample]:
    """The samples that PyTorch can make in a dtype. Some are made with ops that do not take it: they end there."""
    torch.manual_seed(SEED)
    try:
        yield from samples.generate(Make(dtype.name, SEED))
    except (RuntimeError, TypeError, ValueError):
        return


def concerns(op: Op, sample: Sample, dtype: DType) -> bool:
    """Whether the op's own computation of a sample is in a dtype, of more than one element."""
    try:
        kwargs = {name: described(value) for name, value in sample.kwargs.items()}
        bound = op.bind([described(arg) for arg in sample.args], kwargs)
        values = [
            ScalarKind.of(value) if param.kind in (Kind.SCALAR, Kind.OPERAND) and ScalarKind.of(value) else value
            for param, value in zip(op.params, bound, strict=True)
        ]
        inferred = op.rule(*values)
    except (GradwireError, TypeError, KeyError):
        return False
    metas = [m for value in values for m in (value if isinstance(value, list | tuple) else [value])]
    largest = max((m.numel for m in [*metas, *inferred.outs] if isinstance(m, Meta)), default=0)
    return largest > 1 and dtype in op.computed_in(inferred, values)
