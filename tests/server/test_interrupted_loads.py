"""A load that nobody waits for any more leaves the session on disk."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from gradwire_server.hosting import session_thread
from gradwire_server.hosting.compute_semaphore import SHARED
from gradwire_server.hosting.session_thread import SessionThread
from tests.server.story import Story, new_runner, spec


async def test_a_recovery_that_is_given_up_deletes_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "s_story"
    runner = new_runner(folder)
    Story(1).play(runner)
    runner.close(keep=True)
    begun, go_on = threading.Event(), threading.Event()
    opened = session_thread.open_runner

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return opened(*arguments)

    monkeypatch.setattr(session_thread, "open_runner", slow)
    thread = SessionThread("s_story", None, SHARED)
    opening = asyncio.create_task(thread.open(spec(), folder, "recover", b""))
    await asyncio.to_thread(begun.wait, 60)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    go_on.set()
    await asyncio.wait_for(thread.finished.wait(), 60)
    assert (folder / "session.json").exists()
