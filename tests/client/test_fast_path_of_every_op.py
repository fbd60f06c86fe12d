"""For every op of the table, the fast path leaves what the slow path leaves: record, numbers, line, node, proxies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
import torch
from tests.recorded_state import node_of
from tests.samples import Make, Sample, load

import gradwire as gw
from gradwire._core.context.biased_lock import NOBODY
from gradwire._core.dispatch import dispatch, signatures
from gradwire._core.dispatch.signatures import LOOKS
from gradwire._core.graph.recorded_call import entry_of
from gradwire_protocol.table import TABLE, Op

pytestmark = pytest.mark.usefixtures("uncut")

SAMPLES = load()
SUITED = [
    op for op in TABLE.values()
    if op.name in SAMPLES and op.mutates is None and op.results != 0 and not op.internal and not entry_of(op).payloads
    and (not op.control or op.name in LOOKS)
]  # fmt: skip
FAMILIES = sorted({op.family for op in SUITED})
SAMPLES_EACH = 6
TIMES = 4


def cases(op: Op) -> Iterator[tuple[str, Sample]]:
    """Samples of an op, in float32 where it takes that."""
    for declared in SAMPLES[op.name]:
        dtype = "float32" if "float32" in declared.dtypes else declared.dtypes[0]
        for at, sample in enumerate(declared.generate(Make(dtype, 1))):
            if at == SAMPLES_EACH:
                break
            if not sample.expects_error:
                yield f"{op.name}, sample {at}", sample


def uploaded(value: Any, requires: set[int], count: list[int]) -> Any:
    """The argument with its tensors on the server; those whose numbers are in ``requires`` require a gradient."""
    if isinstance(value, torch.Tensor):
        made = gw.tensor(value.detach().numpy())
        count[0] += 1
        return made.requires_grad_() if value.requires_grad and count[0] in requires else made
    if isinstance(value, torch.dtype):
        return getattr(gw, str(value).removeprefix("torch."))
    if isinstance(value, (list, tuple)):
        return type(value)([uploaded(each, requires, count) for each in value])
    return value


def tensors_in(value: Any) -> int:
    """How many tensors an argument has."""
    if isinstance(value, (list, tuple)):
        return sum(map(tensors_in, value))
    return int(isinstance(value, torch.Tensor))


def state_after(session: Any, call: Any) -> Any:
    """What a call leaves in the frame, in the graph and in its results."""
    builder = session.builder
    before = builder.next_id, len(builder.records), len(builder.scalars)
    made = call()
    results = made if isinstance(made, tuple) else (made,)
    first, records, scalars = before

    def spell(number: int) -> int | str:
        return number - first if number >= first else f"operand {number}"

    described = [
        (r._id - first, r._form, r._slot, r.requires_grad, r._is_view(), r._creation, node_of(r._node, spell))
        for r in results if isinstance(r, gw.Tensor)
    ]  # fmt: skip
    frame = builder.records[records:], builder.scalars[scalars:], builder.lines[records:], builder.next_id - first
    return type(made), frame, [(r._versions is None) for r in results if isinstance(r, gw.Tensor)], described


def compare(session: Any, label: str, op: Op, sample: Sample, requires: set[int]) -> bool:
    """Compare both ways of a call. Returns whether its form has a signature; then the fast path was taken."""
    count = [0]
    args = [uploaded(value, requires, count) for value in sample.args]
    named = {name: uploaded(value, requires, count) for name, value in sample.kwargs.items()}
    lock = session.lock

    def call(slow: bool) -> Any:
        if slow:
            lock.ready = lock.joins = NOBODY
        return dispatch.call(op.name, *args, **named)

    session.flush()  # so that none is cut in between
    try:
        call(True)  # whatever operands get when they are first used, they have then
    except gw.GradwireError:
        return False  # a sample of what is refused when it requires a gradient
    expected = state_after(session, lambda: call(True))
    slowly: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        describe = dispatch._describe
        patched.setattr(dispatch, "_describe", lambda *given: slowly.append(given) or describe(*given))
        for _ in range(TIMES):
            slowly.clear()
            found = state_after(session, lambda: call(False))
            assert found == expected, label
    known = signatures.known(signatures.key_of(entry_of(op), op.bind(args, named))) is not None
    assert not slowly or not known, f"{label} takes the slow path, with a signature"
    return known


@pytest.mark.parametrize("family", FAMILIES)
def test_both_ways_leave_the_same(alone, family) -> None:
    for op in [op for op in SUITED if op.family == family]:
        for label, sample in cases(op):
            count = sum(tensors_in(value) for value in (*sample.args, *sample.kwargs.values()))
            some = [set(chosen) for n in (0, 1, 2) for chosen in combinations(range(1, min(count, 3) + 1), n)]
            for requires in [*some, set(range(1, count + 1))]:
                compare(alone, f"{label}, requiring {requires}", op, sample, requires)


def test_ordinary_ops_have_signatures(alone) -> None:
    for name in ("add", "cat", "conv2d", "gelu", "layer_norm", "linear", "matmul", "softmax", "sum", "view", "where"):
        assert any(compare(alone, label, TABLE[name], sample, {1}) for label, sample in cases(TABLE[name])), name
