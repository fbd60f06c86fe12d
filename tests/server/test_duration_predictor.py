"""Short frames run in the event loop's thread if that delays nobody; all others run in their session's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gradwire_engine.session.session import Session
from gradwire_protocol.frames import Frame, Payload, Reply
from gradwire_server.hosting import duration_predictor, inline_host
from gradwire_server.hosting.compute_semaphore import ComputeSemaphore
from gradwire_server.hosting.duration_predictor import DOUBT, SHORT_S, DurationPredictor, input_size_of
from gradwire_server.hosting.inline_host import InlineHost
from gradwire_server.http.shortcut_frames import ShortcutFrame
from gradwire_server.observability.metrics import Metrics
from tests.server.story import CLIENT, spec

WITHIN_S = 120
KEY = b"0123456789abcdef"


# What is foreseen


def knowing(input_size: int = 10, nodes: int = 0) -> DurationPredictor:
    """Of a structure that was short once."""
    found = DurationPredictor()
    found.record(KEY, input_size, nodes, 1e-5, 1e-5, in_loop=False)
    return found


def test_a_structure_is_short_if_it_was() -> None:
    assert not DurationPredictor().is_short(KEY, 0, 0)
    assert knowing().is_short(KEY, 10, 0)
    assert not knowing().is_short(b"another", 10, 0)


@pytest.mark.parametrize(
    ("input_size", "nodes", "short"), [(11, 100, False), (9, 125, True), (10, 126, False), (-1, 0, False)]
)
def test_more_than_it_was_short_with_may_be_long(input_size: int, nodes: int, short: bool) -> None:
    assert knowing(10, 100).is_short(KEY, input_size, nodes) is short


def test_time_in_which_others_had_the_processor_is_not_its_own() -> None:
    found = DurationPredictor()
    found.record(KEY, 10, 0, SHORT_S / 2, 3 * SHORT_S, in_loop=False)
    assert found.is_short(KEY, 10, 0)
    found.record(KEY, 10, 0, SHORT_S / 2, 100 * SHORT_S, in_loop=False)
    assert not found.is_short(KEY, 10, 0), "asleep or not, it kept somebody waiting"


def test_a_structure_that_was_wrongly_believed_has_to_prove_itself() -> None:
    found = knowing()
    for doubt in (DOUBT, 2 * DOUBT):
        found.record(KEY, 10, 0, 1.0, 1.0, in_loop=True)
        for _ in range(doubt):
            assert not found.is_short(KEY, 10, 0)
            found.record(KEY, 10, 0, 1e-5, 1e-5, in_loop=False)
        assert found.is_short(KEY, 10, 0)


def test_one_long_run_in_its_own_thread_is_forgiven() -> None:
    found = knowing()
    found.record(KEY, 10, 0, 1.0, 1.0, in_loop=False)
    assert not found.is_short(KEY, 10, 0)
    found.record(KEY, 10, 0, 1e-5, 1e-5, in_loop=False)
    assert found.is_short(KEY, 10, 0)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration_predictor, "STRUCTURES_KEPT", 2)
    found = DurationPredictor()
    keys = [bytes([i]) for i in range(3)]
    for each in keys:
        found.record(each, 0, 0, 1e-5, 1e-5, in_loop=False)
    assert [found.is_short(each, 0, 0) for each in keys] == [False, True, True]


def test_a_frame_reaches_its_operands_its_payloads_and_sizes_among_its_numbers() -> None:
    session = Session()
    builder = ShortcutFrame(0, 0)
    builder.record("ones", (50, 2))
    reply, _ = session.apply(builder.build(False).frame)
    assert input_size_of(Frame(external=[reply.first, 12345]), 7, session) == 107
    assert input_size_of(Frame(scalars=[0.1, 3, True, [1.0, 2.0], 1_000_000]), 0, session) == 1_000_000
    assert input_size_of(Frame(scalars=[float("inf"), float("nan")]), 0, session) > 1 << 50
    assert input_size_of(Frame(external=[1] * 65), 0, session) == -1
    assert input_size_of(Frame(payloads=[Payload(upload=1)]), 0, session) == -1


# Where frames run


def frame(seq: int, ids: int = 10) -> Frame:
    builder = ShortcutFrame(CLIENT, (CLIENT << 32) + ids * seq)
    builder.record("zeros", (4,))
    made = builder.build(False).frame
    made.seq = seq
    return made


class Place:
    """A host, and the threads in which its frames ran."""

    def __init__(self, host: InlineHost, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = host
        self.here: list[bool] = []
        runner = host._thread.runner
        assert runner is not None
        apply, loop = runner.apply, threading.current_thread()

        def watched(*arguments: Any, **more: Any) -> Any:
            self.here.append(threading.current_thread() is loop)
            return apply(*arguments, **more)

        monkeypatch.setattr(runner, "apply", watched)

    async def run(self, *seqs: int) -> list[Reply]:
        """Submit frames at once, and wait for all. Returns the replies in the order in which they came."""
        replies: list[Reply] = []
        over = asyncio.Event()

        def answer(reply: Reply, out: Any) -> None:
            replies.append(reply)
            if len(replies) == len(seqs):
                over.set()

        for seq in seqs:
            self.host.submit(frame(seq), [], False, answer)
        await asyncio.wait_for(over.wait(), WITHIN_S)
        return replies


@asynccontextmanager
async def place(
    monkeypatch: pytest.MonkeyPatch,
    semaphore: ComputeSemaphore | None = None,
    folder: Path | None = None,
    short_s: float = 10.0,
) -> AsyncIterator[Place]:
    """A host to whose frames nobody else's machine is too busy to be short."""
    monkeypatch.setattr("gradwire_server.hosting.compute_semaphore.ALONE_S", 0.0)
    monkeypatch.setattr(inline_host, "BURST_S", 1e9)
    host = InlineHost("s_alone", Metrics(), None, semaphore or ComputeSemaphore(2))
    await host.open(spec("none" if folder is None else "applied"), folder)
    host._predictor.short_s = short_s
    await host.join(0)
    try:
        yield Place(host, monkeypatch)
    finally:
        await host.close()


async def test_the_first_frame_of_its_kind_runs_in_the_sessions_thread_and_the_others_where_they_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with place(monkeypatch) as found:
        for seq in range(1, 6):
            assert [reply.seq for reply in await found.run(seq)] == [seq]
        assert found.here == [False, True, True, True, True]


async def test_long_frames_stay_in_the_sessions_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async with place(monkeypatch, short_s=0.0) as found:
        for seq in range(1, 6):
            await found.run(seq)
        assert not any(found.here)


async def test_sessions_with_a_journal_stay_in_their_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with place(monkeypatch, folder=tmp_path / "s") as found:
        for seq in range(1, 6):
            await found.run(seq)
        assert not any(found.here)


async def test_while_another_session_computes_frames_go_to_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    semaphore = ComputeSemaphore(2)
    async with place(monkeypatch, semaphore) as found:
        for seq in (1, 2):
            await found.run(seq)
        with semaphore.turn():
            await found.run(3)
        await found.run(4)
        assert found.here == [False, True, False, True]


async def test_replies_come_in_order_wherever_frames_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with place(monkeypatch) as found:
        await found.run(1)
        semaphore = found.host._semaphore
        for began in range(2, 200, 9):
            with semaphore.turn():  # the first of them goes to the thread
                found.host.submit(frame(began), [], False, lambda reply, out: None)
            wanted = list(range(began + 1, began + 9))
            replies = await found.run(*wanted)
            assert [reply.seq for reply in replies] == wanted
            assert all(reply.refused is None for reply in replies)


async def test_a_flood_of_short_frames_goes_to_the_thread_and_what_comes_after_it_runs_where_it_arrives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with place(monkeypatch) as found:
        await found.run(1)
        monkeypatch.setattr(inline_host, "BURST_S", 0.0)
        assert [reply.seq for reply in await found.run(*range(2, 22))] == list(range(2, 22))
        assert found.here == [False, True, *[False] * 19]
        await found.run(22)
        assert found.here[-1]


async def test_a_defect_of_the_engine_is_answered_where_it_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    async with place(monkeypatch) as found:
        await found.run(1)

        def fail(*arguments: Any, **more: Any) -> Any:
            raise RuntimeError("broken on purpose")

        assert found.host._thread.runner is not None
        monkeypatch.setattr(found.host._thread.runner, "apply", fail)
        (reply,) = await found.run(2)
        assert reply.refused is not None
        assert reply.refused.code == "internal"
        assert found.host._semaphore.running == 0
