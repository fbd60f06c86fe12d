"""Prints what the op table's rules say of every sample of ``tests/samples``, for clients that predict it otherwise.

``python -m tools.rule_samples`` writes one JSON array a line: the op, its arguments in the order of its parameters, and
``[dtype, shape]`` of each result, or the code of the error. In-place forms have samples, too.

Arguments are JSON, but for ``{"tensor": [dtype, shape]}``, ``{"float": "2.0"}``, ``{"complex": [re, im]}`` and
``{"int": "..."}`` of an integer beyond 2^53. An extent of -1 depends on data. Samples that look alike appear once.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from typing import Any, Final

import torch
from tests.samples import Sample, load

import gradwire_protocol.ops  # noqa: F401  fills the table
from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.meta import Meta, meta
from gradwire_protocol.params import Kind
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import TABLE, Op

EXACT: Final = 1 << 53


def described(value: Any) -> Any:
    """An argument of a sample as the op's rule takes it: tensors as metas."""
    if isinstance(value, torch.Tensor):
        return meta(tuple(value.shape), _dtype(value.dtype), "cpu", tuple(value.stride()))
    if isinstance(value, torch.dtype):
        return _dtype(value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value)(described(item) for item in value)
    return value


def _dtype(given: torch.dtype) -> DType:
    return dtypes.BY_NAME[str(given).removeprefix("torch.")]


def encoded(value: Any) -> Any:
    """An argument as JSON."""
    if isinstance(value, Meta):
        return {"tensor": [value.dtype.name, value.shape]}
    if isinstance(value, DType):
        return value.name
    if isinstance(value, (list, tuple)):
        return [encoded(item) for item in value]
    if isinstance(value, complex):
        return {"complex": [str(value.real), str(value.imag)]}
    if isinstance(value, float):
        return {"float": str(value)}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= EXACT:
        return {"int": str(value)}
    return value


def judged(op: Op, values: list[Any]) -> Any:
    """What the op's rule says: ``[dtype, shape]`` of each result, or the code of the error."""
    taken = [
        ScalarKind.of(value) if param.kind in (Kind.SCALAR, Kind.OPERAND) and ScalarKind.of(value) else value
        for param, value in zip(op.params, values, strict=True)
    ]
    try:
        inferred = op.infer(taken)
        if inferred.check is not None:
            inferred.check(*values)
    except GradwireError as error:
        return error.code
    return [[out.dtype.name, out.shape] for out in inferred.outs[: op.results]]


def lines() -> Iterator[str]:
    """One line a sample and form."""
    seen: set[str] = set()
    for name, declared in load().items():
        op = TABLE.get(name)
        if op is None or op.internal:
            continue
        form = TABLE.get(f"{name}_")
        forms = [op, form] if form is not None and form.base is op else [op]
        for samples in declared:
            for dtype in samples.dtypes:
                for sample in samples.draw(dtype, zlib.crc32(f"{name}{dtype}".encode())):
                    for one in forms:
                        line = _line(one, sample)
                        if line is not None and line not in seen:
                            seen.add(line)
                            yield line


def _line(op: Op, sample: Sample) -> str | None:
    kwargs = {name: described(value) for name, value in sample.kwargs.items()}
    try:
        values = op.bind([described(arg) for arg in sample.args], kwargs)
        shown = encoded(values)
        line = [op.name, shown, judged(op, values)]
        return json.dumps(line, separators=(",", ":"))
    except (GradwireError, TypeError):  # a sample of what no client can encode
        return None


if __name__ == "__main__":
    for written in lines():
        sys.stdout.write(written + "\n")
