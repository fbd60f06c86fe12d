"""A host answers frames in groups after their commit, and can be inspected meanwhile."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gradwire_protocol.errors import GradwireError, SessionGone, Unavailable
from gradwire_protocol.frames import Chunk, Frame, Reply
from gradwire_server.hosting.inline_host import MAX_QUERIES, InlineHost
from gradwire_server.hosting.runner import Runner
from gradwire_server.http.shortcut_frames import ShortcutFrame
from gradwire_server.observability.metrics import Metrics
from tests.server.story import CLIENT, Story, fingerprint, spec

WITHIN_S = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "s_story"


@pytest.fixture
async def host(folder: Path) -> AsyncIterator[InlineHost]:
    found = InlineHost("s_story", Metrics())
    await found.open(spec("durable"), folder)
    await found.join(0)
    yield found
    await found.close()


def numbered(seq: int) -> Frame:
    builder = ShortcutFrame(CLIENT, (CLIENT << 32) + 10 * seq)
    builder.record("randn", (4,))
    frame = builder.build(False).frame
    frame.seq = seq
    return frame


class Gate:
    """Holds the session's thread at the next frame, until it is opened."""

    def __init__(self, host: InlineHost, monkeypatch: Any) -> None:
        runner = host._thread.runner
        assert runner is not None
        self.runner: Runner = runner
        self.reached = asyncio.Event()
        self.opened = threading.Event()
        loop, apply = asyncio.get_running_loop(), runner.apply

        def held(*arguments: Any, **more: Any) -> Any:
            loop.call_soon_threadsafe(self.reached.set)
            assert self.opened.wait(WITHIN_S)
            return apply(*arguments, **more)

        monkeypatch.setattr(runner, "apply", held)


def noting(commit: Callable[[], None], log: list[Any]) -> Callable[[], None]:
    def noted() -> None:
        commit()
        log.append("commit")

    return noted


async def test_frames_that_wait_are_committed_together_and_told_after_that(host: InlineHost, monkeypatch: Any) -> None:
    gate = Gate(host, monkeypatch)
    log: list[Any] = []
    monkeypatch.setattr(gate.runner, "commit", noting(gate.runner.commit, log))
    host._thread._group_s = WITHIN_S
    done = asyncio.Event()

    def answer(reply: Reply, _: Any) -> None:
        log.append(reply.seq)
        if reply.seq == 20:
            done.set()

    for seq in range(1, 21):
        host.submit(numbered(seq), [], False, answer)
    await asyncio.wait_for(gate.reached.wait(), WITHIN_S)
    assert log == []
    gate.opened.set()
    await asyncio.wait_for(done.wait(), WITHIN_S)
    assert log == ["commit", *range(1, 21)]


async def test_looks_are_answered_while_an_op_runs(host: InlineHost, monkeypatch: Any) -> None:
    await host.apply(numbered(1), [])
    free = await host.describe()
    assert "busy" not in free
    gate = Gate(host, monkeypatch)
    running = asyncio.create_task(host.apply(numbered(2), []))
    await asyncio.wait_for(gate.reached.wait(), WITHIN_S)
    seen = await asyncio.wait_for(host.describe(), WITHIN_S)
    assert seen.pop("busy") is True
    assert seen.pop("age_s") >= 0
    assert seen == free
    assert (await asyncio.wait_for(host.memory(), WITHIN_S))["busy"] is True
    assert len(await asyncio.wait_for(host.tensors(), WITHIN_S)) == 1
    assert await asyncio.wait_for(host.tensors(after=1 << 40), WITHIN_S) == []
    gate.opened.set()
    await running
    assert (await host.describe())["tensors"] == 2


async def test_a_look_that_has_begun_is_waited_for(host: InlineHost, monkeypatch: Any) -> None:
    """Counting a large graph takes its time; what was seen before would not be the answer."""
    await host.apply(numbered(1), [])
    free = await host.describe()
    monkeypatch.setattr("gradwire_server.hosting.inline_host.QUERY_PATIENCE_S", 0.001)
    opened, tried = threading.Event(), asyncio.Event()
    describe, wait = Runner.describe, asyncio.wait

    def slow(runner: Runner) -> dict[str, Any]:
        assert opened.wait(WITHIN_S)
        return describe(runner)

    async def counted(*arguments: Any, **more: Any) -> Any:
        found = await wait(*arguments, **more)
        rounds.append(found)
        if len(rounds) == 5:
            tried.set()
        return found

    rounds: list[Any] = []
    monkeypatch.setattr(Runner, "describe", slow)
    monkeypatch.setattr(asyncio, "wait", counted)
    look = asyncio.create_task(host.describe())
    await asyncio.wait_for(tried.wait(), WITHIN_S)
    assert not look.done()
    opened.set()
    assert await asyncio.wait_for(look, WITHIN_S) == free


async def test_many_who_look_at_a_busy_session_leave_one_look_behind(host: InlineHost, monkeypatch: Any) -> None:
    gate = Gate(host, monkeypatch)
    running = asyncio.create_task(host.apply(numbered(1), []))
    await asyncio.wait_for(gate.reached.wait(), WITHIN_S)
    await asyncio.gather(*(host.describe() for _ in range(50)))
    assert host._thread._jobs.qsize() == 1
    gate.opened.set()
    await running


async def test_looks_at_different_pages_of_a_busy_session_are_few(host: InlineHost, monkeypatch: Any) -> None:
    await host.apply(numbered(1), [])
    gate = Gate(host, monkeypatch)
    running = asyncio.create_task(host.apply(numbered(2), []))
    await asyncio.wait_for(gate.reached.wait(), WITHIN_S)
    looks = [host.tensors(after, 1) for after in range(100)]
    seen = await asyncio.wait_for(asyncio.gather(*looks), WITHIN_S)
    assert len(seen) == 100
    assert host._thread._jobs.qsize() == MAX_QUERIES
    gate.opened.set()
    await running
    await host.apply(numbered(3), [])  # behind the looks
    assert host._queries == {}
    assert len(await host.tensors()) == 3


async def test_what_the_disk_did_not_take_is_refused_and_answered_later(host: InlineHost, monkeypatch: Any) -> None:
    runner = host._thread.runner
    assert runner is not None
    first, _ = await host.apply(numbered(1), [])
    assert first.refused is None

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runner.disk, "write", full, raising=False)
        for seq in (2, 2, 3):
            reply, _ = await host.apply(numbered(seq), [])
            assert reply.refused is not None
            assert (reply.refused.code, reply.refused.retryable) == ("unavailable", True)
        failures: list[Any] = []
        taken = asyncio.Event()
        host.add_chunk(CLIENT, Chunk(1, 0, 8), memoryview(bytes(8)), lambda f: (failures.append(f), taken.set()))
        await asyncio.wait_for(taken.wait(), WITHIN_S)
        assert isinstance(failures[0], Unavailable)
        with pytest.raises(Unavailable):
            await host.join(CLIENT)
        assert (await host.describe())["frames_applied"] == 2  # reads go on
    for seq in (2, 3):
        reply, _ = await host.apply(numbered(seq), [])
        assert reply.refused is None
    assert (await host.describe())["frames_applied"] == 3


async def test_a_kept_session_goes_on_in_another_host(folder: Path) -> None:
    story, states = Story(), Story().states()
    runner = Runner(spec(), folder)
    story.play(runner)
    runner.close(keep=True)
    for _ in range(2):
        host = InlineHost("s_story", Metrics())
        await host.open(spec(), folder, "recover")
        assert host._thread.runner is not None
        assert fingerprint(host._thread.runner.session) == states[-1]
        await host.close(keep=True)
        with pytest.raises(Unavailable):
            await host.describe()
    host = InlineHost("s_story", Metrics())
    await host.open(spec(), folder, "recover")
    await host.close()
    with pytest.raises(SessionGone):
        await host.describe()
    assert not await asyncio.to_thread(folder.exists)


async def test_an_exported_session_is_adopted_by_a_host_without_a_folder(host: InlineHost) -> None:
    reply, _ = await host.apply(numbered(1), [])
    file = await host.export()
    other = InlineHost("s_other", Metrics())
    await other.open(spec("none"), None, "adopt", file)
    assert [row["id"] for row in await other.tensors()] == [reply.first]
    await other.close()
    with pytest.raises(GradwireError, match="not an exported session"):
        await InlineHost("s_third", Metrics()).open(spec("none"), None, "adopt", file[:-1])
