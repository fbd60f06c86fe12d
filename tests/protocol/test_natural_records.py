"""Every op of the table takes a record in natural form, and computes what the compact form computes."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.autograd.registry import row
from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.json_values import to_json
from gradwire_engine.session.session import Session
from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.frames import Frame, Payload, Structure
from gradwire_protocol.natural_frames import decode_frame
from gradwire_protocol.natural_records import AS, OP
from gradwire_protocol.records import encode_args
from gradwire_protocol.table import TABLE, Op
from tests.engine.test_parity import convert, listed, to_dtype, to_ours
from tests.samples import Sample, load

LIMITS = Limits(max_tensor_bytes=1 << 24, max_op_work=1 << 26)
SAMPLES = load()
PER_OP = 3


def declared(op: Op) -> list[Any]:
    return SAMPLES.get(op.name) or (SAMPLES.get(op.base.name, []) if op.base is not None else [])


OPS = sorted(name for name, op in TABLE.items() if not op.internal and declared(op) and name != "upload")


def test_no_argument_is_named_like_a_part_of_the_record() -> None:
    for op in TABLE.values():
        assert not {OP, AS} & set(op.positions), op.signature


def test_nearly_every_op_that_clients_offer_is_tried() -> None:
    offered = [name for name, op in TABLE.items() if op.exposed and not op.internal]
    assert len(set(offered) & set(OPS)) > 0.95 * len(offered)


class Written:
    """A sample as a frame in compact form and as the same frame in natural form."""

    def __init__(self, op: Op, sample: Sample) -> None:
        engine = Engine(LIMITS)
        self.op = op
        self.operands: list[Tensor] = []

        def ours(given: Any) -> Tensor:
            self.operands.append(to_ours(engine, given.detach()))
            return self.operands[-1]

        args = [convert(a, ours, to_dtype) for a in sample.args]
        self.values = op.bind(args, {name: convert(a, ours, to_dtype) for name, a in sample.kwargs.items()})
        # Written before the op runs, because it may change its operands.
        self.uploads = [(to_json(engine.to_numpy(t), t.dtype), t.dtype.name, list(t.shape)) for t in self.operands]
        self.at = {id(t): i for i, t in enumerate(self.operands)}
        results = [r for r in listed(engine.run(row(op.name), list(self.values))) if isinstance(r, Tensor)]
        self.results = 0 if op.mutates is not None else len(results)

    def compact(self) -> Frame:
        """As the Python client writes it."""
        ops: list[Any] = [["upload", ["payload", dtype, shape]] for _, dtype, shape in self.uploads]
        numbers: list[Any] = []
        record = encode_args(
            self.op, self.values, lambda v: isinstance(v, Tensor), lambda t: self.at[id(t)], numbers, []
        )
        count = len(self.uploads)
        ops.append([self.op.name, record] if self.op.results is not None else [self.op.name, record, self.results])
        reads = [0] if self.op.mutates is not None else list(range(count, count + self.results))
        structure = msgspec.json.encode(Structure(_json(ops), reads))
        payloads = [Payload(values=values) for values, _, _ in self.uploads]
        return Frame(structure=msgspec.Raw(structure), scalars=numbers, payloads=payloads)

    def natural(self, as_list: bool) -> Frame:
        """As people write it: defaults are left out, names and literals take the place of references and tables."""
        ops: list[Any] = []
        for i, (values, dtype, shape) in enumerate(self.uploads):
            record = {"op": "upload", "data": values, "dtype": dtype, "as": f"t{i}"}
            ops.append(record if math.prod(shape) else record | {"size": shape})
        names = [f"r{i}" for i in range(self.results)]
        if as_list:
            ops.append([self.op.name, [self._value(v) for v in self.values], names])
        else:
            given = {
                param.name: self._value(value)
                for param, value in zip(self.op.params, self.values, strict=True)
                if param.required or value is not param.default
            }
            ops.append({"op": self.op.name, **given} | ({"as": names if len(names) > 1 else names[0]} if names else {}))
        body = {"ops": ops, "reads": ["t0"] if self.op.mutates is not None else names}
        return decode_frame(json.dumps(body, allow_nan=False)).frame

    def _value(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return f"t{self.at[id(value)]}"
        if isinstance(value, list | tuple):
            return [self._value(each) for each in value]
        return _json(value)


def _json(value: Any) -> Any:
    """Literal values in the JSON form."""
    if isinstance(value, list | tuple):
        return [_json(each) for each in value]
    if isinstance(value, DType):
        return value.name
    if isinstance(value, complex):
        return [_json(value.real), _json(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def outcome(frame: Frame) -> tuple[Any, Any]:
    session = Session(LIMITS, seed=7)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        reply, _ = session.apply(frame, human=True)
    assert reply.refused is None, reply.refused
    values = [(value.dtype, value.shape, value.values, value.error) for value in reply.values]
    return values, [(problem.code, problem.op) for problem in reply.errors]


@pytest.mark.parametrize("name", OPS)
def test_an_op_in_natural_form_computes_the_same(name: str) -> None:
    op, tried = TABLE[name], 0
    wanted_dtypes = ("float32", "int64", "complex64", "float64", "bool")
    for samples in declared(op):
        drawn = [sample for dtype in wanted_dtypes if dtype in samples.dtypes for sample in samples.draw(dtype, 1)]
        for sample in drawn:
            if sample.expects_error or tried >= PER_OP:
                continue
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    written = Written(op, sample)
            except GradwireError:
                continue  # it does not take the dtype, or the in-place form would change dtype or shape
            wanted = outcome(written.compact())
            assert not wanted[1], wanted
            assert outcome(written.natural(as_list=False)) == wanted, sample
            assert outcome(written.natural(as_list=True)) == wanted, sample
            tried += 1
    assert tried
