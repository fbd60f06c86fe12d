"""Huge numbers as arguments of any op: refused at once, with a typed error, without an allocation.

The cases come from the op table's samples: one size, count or distance at a time becomes a number that no tensor has
room for.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradwire_engine.autograd.engine import Engine
from gradwire_engine.runtime.memory import Limits
from gradwire_protocol.errors import GradwireError, LimitExceeded
from gradwire_protocol.table import TABLE, Kind, Param
from tests.engine.test_parity import Ours
from tests.samples import Sample, load

MB = 1 << 20
LIMITS = Limits(max_tensor_bytes=4 * MB, max_session_bytes=8 * MB, max_op_work=100_000_000, max_frame_seconds=0)
HUGE = (
    1 << 62,
    (1 << 62) - 1,
    1 << 40,
    1 << 31,
    123_456_789,
    1 << 64,
    1 << 200,
    -1,
    -(1 << 40),
    -(1 << 63),
    -(1 << 70),
)
MOST_BYTES = 40 * MB
MOST_S = 5.0
"""Of the processor, which a busy machine does not lengthen. It is a hundred times what the slowest takes."""


def replaced(value: Any, huge: int) -> Iterator[Any]:
    """The value with a huge number in place of one or of all ints in it."""
    if type(value) is int:
        yield huge
    elif type(value) in (tuple, list) and value and all(type(v) is int for v in value):
        yield type(value)((huge, *value[1:]))
        yield type(value)([huge] * len(value))
    elif type(value) in (tuple, list) and value and all(type(v) in (tuple, list) for v in value):
        for inner in replaced(value[0], huge):
            yield type(value)((inner, *value[1:]))


def takes_numbers(param: Param) -> bool:
    return param.kind in (Kind.ATTRIBUTE, Kind.POSITION, Kind.SCALAR, Kind.OPERAND)


def hostile(name: str) -> Iterator[Sample]:
    """Samples of an op with one argument huge. The first sample that has the argument is taken."""
    op = TABLE[name]
    for declared in load()[name]:
        dtype = "float32" if "float32" in declared.dtypes else declared.dtypes[0]
        done: set[str] = set()
        for sample in declared.draw(dtype, 1):
            if sample.expects_error:
                continue
            try:
                bound = op.bind(sample.args, sample.kwargs)
            except GradwireError:
                continue
            for i, param in enumerate(op.params):
                if param.name in done or not takes_numbers(param):
                    continue
                given = list(bound)
                value = given[i]
                if value is None and int in param.check:
                    value = 1
                for huge in HUGE:
                    for other in replaced(value, huge):
                        done.add(param.name)
                        yield Sample(*given[:i], other, *given[i + 1 :])


NAMES = sorted(name for name in load() if not TABLE[name].internal and not TABLE[name].control)


@pytest.mark.parametrize("name", NAMES)
def test_huge_arguments_are_refused_at_once(name: str) -> None:
    engine = Engine(LIMITS)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in hostile(name):
            ours = Ours(engine, sample)
            tracemalloc.start()
            before, started = tracemalloc.get_traced_memory()[0], time.thread_time()
            try:
                ours.call(name)
            except GradwireError as error:
                assert error.code != "internal", f"{sample!r}: {error}"
            took, peak = time.thread_time() - started, tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
            assert took < MOST_S, f"{sample!r} took {took:.2f} s"
            assert peak < MOST_BYTES, f"{sample!r} took {peak:,} bytes"


@pytest.mark.parametrize(
    ("name", "values", "more"),
    [
        ("bincount", [1 << 62], ()),
        ("bincount", [(1 << 63) - 1], ()),
        ("one_hot", [1 << 62], ()),
        ("one_hot", [1 << 40] * 8, ()),
        ("repeated_positions", [1 << 62], ()),
        ("repeated_positions", [1 << 62, 1 << 62, 1 << 62, 1 << 62], ()),
        ("special_legendre_polynomial_p", [0.5] * 2000, (900_000,)),
    ],
)
def test_values_that_ask_for_much_are_refused_at_once(name: str, values: list[float], more: tuple[Any, ...]) -> None:
    engine = Engine(LIMITS)
    tensor = engine.from_numpy(np.array(values))
    tracemalloc.start()
    before, started = tracemalloc.get_traced_memory()[0], time.thread_time()
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_"):
        engine.call(name, tensor, *more)
    took, peak = time.thread_time() - started, tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert took < MOST_S and peak < MB, (took, peak)


def test_as_many_nonzero_elements_as_a_tensor_may_hold() -> None:
    engine = Engine(Limits(max_tensor_bytes=4000))
    few, many = np.zeros((10, 10, 10), bool), np.ones((10, 10, 10), bool)
    few[0, 0, :3] = True
    assert engine.call("nonzero", engine.from_numpy(few)).shape == (3, 3)
    with pytest.raises(LimitExceeded, match="nonzero makes of these values"):
        engine.call("nonzero", engine.from_numpy(many))
