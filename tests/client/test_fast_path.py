"""An op with a known signature takes the fast path, which leaves exactly the same state as the slow path."""

from __future__ import annotations

import dis
import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.recorded_state import node_of

import gradwire as gw
from gradwire._core.context.biased_lock import NOBODY
from gradwire._core.context.modes import MODES
from gradwire._core.dispatch import dispatch, fast_path, signatures
from gradwire._core.session.frame_builder import FrameBuilder

F = gw.nn.functional
pytestmark = pytest.mark.usefixtures("uncut")


def pairs(x, w) -> Any:
    h = (x * w + 1.5) @ w
    return [h, w - 2, h / x, x > 0, w * True, h**2]


def singles(x, w) -> Any:
    h = w.relu()
    return [h, h.exp().sum(), h.softmax(-1), w.sum(0), w.mean(dim=1, keepdim=True), (w * 2).t(), h.sigmoid()]


def views(x, w) -> Any:
    h = w * 2
    seen = h.view(9)
    row = h[0]
    return [seen, seen * 2, row + 1, h.transpose(0, 1) @ x, h.view(3, 3).sum(), w.reshape(9)]


def views_without_history(x, w) -> Any:
    part = x[0:2]
    with gw.no_grad():
        frozen = w.view(9)  # of a leaf that requires grad
    return [part @ w, part.relu(), F.linear(part, w), w[0:2] * part, x.view(9) * 2, frozen * 2, frozen.exp()]


def gradients(x, w) -> Any:
    leaf = w.detach().requires_grad_()
    found = []
    for _ in range(3):
        leaf.grad = None
        (leaf * x).relu().sum().backward()
        found.append(leaf.grad)
    found.append(leaf.grad * 2)
    return found


def several(x, w) -> Any:
    return [
        gw.cat([x, w]),
        gw.cat((w, w), 1),
        gw.stack([x, x]),
        F.linear(x, w),
        F.linear(x, w, w[0]),
        gw.where(x > 0, w, 0.5),
    ]


def receivers(x, w) -> Any:
    """Whichever operands receive gradients: what a derivative keeps depends on some of them."""
    found = []
    rows = gw.select(x, 0, 0), gw.select(w, 0, 0)
    for a, b, c in product((x, w), (x, w), rows):
        found += [F.linear(a, b, c), gw.addcmul(a, b, c), gw.lerp(a, b, c), gw.addmm(c, a, b)]
    return found


def without_gradients(x, w) -> Any:
    with gw.no_grad():
        first = [x * w, w.relu(), w.view(9)]
    return [*first, first[0] * w, w.detach() + x]


def defaults(x, w) -> Any:
    return [
        gw.add(x, w),
        gw.add(x, w, alpha=1),
        gw.add(x, w, alpha=2),
        gw.add(x, 1),
        gw.add(x, 1.0),
        x.sum(),
        x.sum(dim=0),
    ]


def integers(x, w) -> Any:
    n = gw.arange(4)
    return [n + 1, n * 2.5, n / 2, n.sum(), n == 2, n.view(2, 2)]


def optimizer_steps(x, w) -> Any:
    leaf = w.detach().requires_grad_()
    optimizer = gw.optim.SGD([leaf], lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        (leaf * x).sum().backward()
        optimizer.step()
    return [leaf]


def several_results(x, w) -> Any:
    h = w * 2
    parts = h.split(1, dim=1)
    rows = h.unbind(0)
    largest = h.max(dim=1)
    ordered = (w * x).sort(dim=0)
    return [*parts, *rows, parts[1] * 2, rows[0] + x[0], largest.values, largest.indices, *ordered, *h.chunk(2)]


def writes(x, w) -> Any:
    y = x.clone()
    rows = y[0:2]
    found = [y.add_(1), y.mul_(x), rows.copy_(x[0:2]), y.lerp_(x, 0.5), y.addcmul_(x, x, value=2), rows.fill_(3.0)]
    recorded = w * 2
    recorded.add_(x).mul_(w)  # autograd's, which the long way notes
    saved = y.exp() * w
    y.zero_()
    return [*found, recorded, recorded.exp(), saved, y + rows.sum()]


PROGRAMS = [
    writes, several_results, pairs, singles, views, views_without_history, gradients, several, receivers,
    without_gradients, defaults, integers, optimizer_steps,
]  # fmt: skip


def let_nobody_through(builder: Any) -> None:
    builder.lock.ready = builder.lock.joins = NOBODY


def left_by(program: Callable[..., Any], session: Any, monkeypatch: Any, signature: bool) -> Any:
    """What the program leaves: its frames, the lines, and the results with their history and what that keeps."""
    sent: list[Any] = []
    submit = session.link.submit

    def noted(frame: Any, structure: bytes, key: bytes, payloads: Any, lines: Any, *more: Any, **named: Any) -> int:
        sent.append((structure, list(frame.scalars), [n - frame.first for n in frame.external], lines))
        return submit(frame, structure, key, payloads, lines, *more, **named)

    values = np.arange(9, dtype="f4").reshape(3, 3) + 1
    x, w = gw.tensor(values), gw.tensor(values / 4, requires_grad=True)
    session.synchronize()
    with monkeypatch.context() as patched:
        patched.setattr(session.link, "submit", noted)
        if not signature:
            patched.setattr(FrameBuilder, "_let_through", let_nobody_through)
        results = program(x, w)
        session.flush()
    first = session.builder.first
    nodes = [node_of(r._node, lambda number: number - first) for r in results]
    described = [(r._id - first, r._form, r._slot, r.requires_grad, r.is_leaf, r._is_view()) for r in results]
    return sent, described, nodes, [r.tolist() for r in results]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_both_ways_leave_the_same(alone, monkeypatch, program) -> None:
    signatures.forget()
    long = left_by(program, alone, monkeypatch, signature=False)
    for _ in range(2):  # learnt, and taken
        signature = left_by(program, alone, monkeypatch, signature=True)
    assert signature == long


def test_a_repeated_op_does_not_work_out_anything_anew(alone, monkeypatch) -> None:
    x, w = gw.ones(2, 2), gw.ones(2, 2, requires_grad=True)

    def ops() -> Any:
        return gw.relu((x * w + 1) @ w).sum().view(1), F.linear(x[0:1], w)

    for _ in range(3):
        ops()
    ways = []
    monkeypatch.setattr(dispatch, "_run", lambda entry, values, form: ways.append(entry.op.name))
    ops()
    assert ways == []


def test_a_repeated_write_does_not_work_out_anything_anew(alone, monkeypatch) -> None:
    x, y = gw.ones(2, 2), gw.ones(2, 2)

    def ops() -> Any:
        return x.add_(y).mul_(2.0), x[0:1].copy_(y[0:1]), x._version

    versions = [ops()[-1] for _ in range(3)]
    ways = []
    monkeypatch.setattr(dispatch, "_run", lambda entry, values, form: ways.append(entry.op.name))
    versions.append(ops()[-1])
    assert ways == [] and versions == [3, 6, 9, 12]


@pytest.mark.parametrize("write", [lambda x, y: x.add_(y), lambda x, y: y.add_(x), lambda x, y: x[0].zero_()])
def test_a_write_that_is_known_is_refused_where_it_is_not_allowed(alone, write) -> None:
    y = gw.ones(2, 2)
    for _ in range(3):
        write(gw.ones(2, 2), y.clone())
    with pytest.raises(RuntimeError):
        write(gw.ones(2, 2, requires_grad=True), gw.ones(2, 2, requires_grad=True))


def test_a_repeated_step_takes_no_turn_by_the_lock(alone, monkeypatch) -> None:
    leaf = gw.ones(2, 2, requires_grad=True)
    optimizer = gw.optim.SGD([leaf], lr=0.5)

    def step() -> Any:
        optimizer.zero_grad()
        leaf.grad = None
        (leaf * 2).sum().backward()
        found = leaf.grad
        optimizer.step()
        return found.tolist()

    for _ in range(3):
        step()
    locked = []
    monkeypatch.setattr(alone.builder, "record", lambda op, *more: locked.append(op.name))
    assert step() == [[2.0, 2.0], [2.0, 2.0]]
    assert locked == []


def test_threads_that_record_in_one_session_do_not_disturb_each_other(alone) -> None:
    x = gw.ones(4)
    _ = (x * 2 + 1).tolist()
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        h = x * number
        for _ in range(300):
            h = h + 1
            h = h * 1
        found[number] = h.tolist()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {n: [300.0 + n] * 4 for n in range(4)}


def test_a_thread_that_comes_late_does_not_end_the_turn_of_another(alone) -> None:
    signatures.forget()
    x = gw.ones(11, 13, requires_grad=True)  # of a shape that no function remembers from elsewhere
    for _ in range(2):
        x.grad = None
        (gw.relu(x) + x.sum(0)).sum().backward()
        _ = x.grad
        gw.cat([x, x])
    lock, key = alone.lock, MODES.key
    calls = [
        (signature, [[x, x] if i in signature.lists else x for i in range(len(signature.entry.op.params))])
        for signature in [*signatures._signatures.values(), *dispatch._tellers.values()]
    ]
    assert len(calls) >= 7 and {signature.joins for signature, _ in calls} == {True, False}
    for signature, operands in calls:
        recorded = alone.recorded
        lock.ready = lock.joins = key + 2  # another thread has begun to record since
        lock.busy = True
        try:
            assert signature.record(signature, alone, key, *operands) is fast_path.NOT_APPLICABLE
            assert lock.busy and lock.ready == lock.joins == key + 2
        finally:
            lock.ready, lock.joins, lock.busy = NOBODY, NOBODY, False
        assert alone.recorded == recorded


def test_no_other_thread_can_come_in_where_nobody_may(alone) -> None:
    x, w = gw.ones(3, 3), gw.ones(3, 3, requires_grad=True)
    for _ in range(3):
        for program in PROGRAMS:
            program(x, w)
    assert len(fast_path._functions) > 15
    for source, way in fast_path._functions.items():
        steps = list(dis.get_instructions(way))
        changes = [at for at, step in enumerate(steps) if "CALL" in step.opname or "BACKWARD" in step.opname]
        busy = [at for at, step in enumerate(steps) if step.opname == "STORE_ATTR" and step.argval == "busy"]
        look = max(at for at, step in enumerate(steps[: busy[0]]) if step.argval in ("ready", "joins"))
        assert not any(look < at < busy[0] for at in changes), f"between the look and the turn:\n{source}"
        look = max(at for at, step in enumerate(steps) if step.opname == "LOAD_ATTR" and step.argval == "busy")
        counted = max(at for at, step in enumerate(steps) if step.opname == "STORE_ATTR" and step.argval == "next_id")
        assert not any(look < at < counted for at in changes), f"while the record is written down:\n{source}"


def test_a_form_is_not_taken_for_another_of_equal_numbers(alone) -> None:
    x = gw.ones(3, dtype=gw.int64)
    for _ in range(2):
        assert (x + 1).dtype is gw.int64
        assert (x + 1.0).dtype is gw.float32
        assert (x * True).dtype is gw.int64
        assert gw.full_like(x, 1).dtype is gw.int64
        assert x.sum(0).shape == () and x.view(1, 3).sum(1).shape == (1,)


def test_what_a_mode_changes_is_not_left_out(alone) -> None:
    packed: list[Any] = []
    x, w = gw.ones(2, 2), gw.ones(2, 2, requires_grad=True)
    for _ in range(3):
        assert (x @ w).requires_grad
        with gw.no_grad():
            assert not (x @ w).requires_grad
        with gw.inference_mode():
            assert (x @ w).is_inference()
        with gw.autocast("cpu", dtype=gw.bfloat16):
            assert (x @ w).dtype is gw.bfloat16
        assert gw.func.vmap(lambda row: row @ w)(x).shape == (2, 2)
        with gw.profiler.profile() as seen:
            _ = x @ w
        assert [event.name for event in seen.events() if "matmul" in event.name]
        with gw.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            _ = x * w
    assert len(packed) == 3


def test_a_required_argument_that_was_none_is_still_required(alone) -> None:
    x = gw.ones(3, 11)
    for _ in range(2):
        gw.logsumexp(x, None)
    with pytest.raises(TypeError, match="missing"):
        gw.logsumexp(x)


def test_forms_are_learnt_under_the_usual_default_dtype_alone(alone) -> None:
    signatures.forget()
    n = gw.arange(3)
    gw.set_default_dtype(gw.float64)
    try:
        assert [(n * 1.5).dtype for _ in range(3)] == [gw.float64] * 3
    finally:
        gw.set_default_dtype(gw.float32)
    assert [(n * 1.5).dtype for _ in range(3)] == [gw.float32] * 3


@pytest.mark.parametrize("index", [0, 3, -1, -4])
def test_rows_are_found_wherever_they_lie(alone, index) -> None:
    x = gw.arange(12).view(4, 3)
    for _ in range(2):
        assert x[index].tolist() == list(range(index % 4 * 3, index % 4 * 3 + 3))
    for outside in (4, -5):
        with pytest.raises(IndexError):
            x[outside]
