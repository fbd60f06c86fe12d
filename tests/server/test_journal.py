"""The journal of a running session: what is written, when, and what happens if the disk fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gradwire_protocol.errors import JournalDamaged, LimitExceeded, MalformedFrame, Unavailable
from gradwire_protocol.frames import Chunk, Frame
from gradwire_server.durable.disk import Disk, Piece
from gradwire_server.durable.records import HEADER_BYTES, RECORD_BYTES, Kind, Reader
from gradwire_server.hosting.runner import Runner
from gradwire_server.http.shortcut_frames import ShortcutFrame
from gradwire_server.settings.session_spec import JournalPolicy
from tests.server.story import CLIENT, W1, Story, fingerprint, new_runner, policy, spec


class FullDisk(Disk):
    """A disk that takes ``room`` more bytes, and notes what it is asked to wait for."""

    def __init__(self) -> None:
        self.room = 1 << 40
        self.broken_sync = False
        self.synced: list[str] = []

    def write(self, descriptor: int, pieces: Sequence[Piece], at: int) -> int:
        size = sum(map(len, pieces))
        if size > self.room:
            half = b"".join(pieces)[: self.room]
            super().write(descriptor, [half], at)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= size
        return super().write(descriptor, pieces, at)

    def sync_data(self, descriptor: int) -> None:
        if self.broken_sync:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        super().sync_data(descriptor)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s_story"


def journal_of(folder: Path) -> Path:
    (found,) = folder.glob("journal-*.log")
    return found


def kinds(folder: Path) -> list[Kind]:
    with Reader(journal_of(folder), "s_story") as reader:
        return [record.kind for record in reader]


def test_every_event_is_one_record(folder: Path) -> None:
    runner, story = new_runner(folder), Story()
    story.play(runner)
    names = {"a client joins": Kind.JOIN, "it resumes": Kind.JOIN, "another joins": Kind.JOIN, "a chunk": Kind.CHUNK}
    assert kinds(folder) == [names.get(event.name, Kind.FRAME) for event in story.events]


def test_nothing_is_on_disk_before_it_is_committed(folder: Path) -> None:
    runner, story = new_runner(folder), Story()
    for event in story.events[:5]:
        event.act(runner)
    assert runner.dirty
    assert kinds(folder) == []
    runner.commit()
    assert not runner.dirty
    assert len(kinds(folder)) == 5


def test_a_refused_frame_and_one_sent_twice_leave_no_record(folder: Path) -> None:
    runner, story = new_runner(folder), Story()
    story.play(runner, end=6)
    last = next(event.frame for event in reversed(story.events[:6]) if event.frame is not None)
    first, _ = runner.apply(last, [])
    gap, _ = runner.apply(msgspec.structs.replace(last, seq=last.seq + 5), [])
    stranger, _ = runner.apply(Frame(seq=1, client=77), [])
    assert first.refused is None
    assert [gap.refused.code, stranger.refused.code] == ["frame_out_of_order", "malformed_frame"]
    assert not runner.dirty


def test_a_chunk_that_does_not_fit_leaves_no_record(folder: Path) -> None:
    runner = new_runner(folder)
    runner.join(0)
    runner.commit()
    with pytest.raises(MalformedFrame):
        runner.add_chunk(CLIENT, Chunk(1, 50, 100), memoryview(bytes(10)))
    assert not runner.dirty


def test_a_durable_commit_waits_for_the_medium_and_an_applied_one_does_not(tmp_path: Path) -> None:
    for durability, expected in (("applied", 0), ("durable", 3)):
        disk = FullDisk()
        runner = new_runner(tmp_path / durability / "s_story", durability, disk=disk)
        for _ in range(3):
            runner.join(0)
            runner.join(0)
            runner.commit()
        assert sum(name.endswith(".log") for name in disk.synced) == expected


def test_looking_changes_nothing_that_a_journal_would_have_to_tell(folder: Path) -> None:
    """The number of a node decides when its gradient arrives: nobody who looks may make one."""
    runner, story = new_runner(folder), Story()
    story.play(runner, end=8)
    assert runner.apply(view_with_stale_history(runner), [])[0].errors == []
    runner.commit()
    before = fingerprint(runner.session)
    runner.describe()
    runner.tensors()
    runner.graph(None)
    runner.export()
    assert not runner.dirty
    assert fingerprint(runner.session) == before


def view_with_stale_history(runner: Runner) -> Frame:
    """A frame that makes a view and then writes to its base, with history."""
    builder = ShortcutFrame(CLIENT, (CLIENT << 32) + 5000)
    (base,) = builder.record("exp", builder.tensor(W1))
    builder.record("select", base, 0, 1)
    builder.record("mul_", base, 3)
    frame = builder.build(False).frame
    frame.seq = runner.session.expected(CLIENT)
    return frame


# A disk that is full


@pytest.mark.parametrize("room", [0, 1, RECORD_BYTES - 1, RECORD_BYTES + 7])
def test_what_a_full_disk_did_not_take_is_written_first_when_there_is_room(folder: Path, room: int) -> None:
    disk, story = FullDisk(), Story()
    runner = new_runner(folder, disk=disk)
    story.play(runner, end=6)
    disk.room = room
    story.events[6].act(runner)
    with pytest.raises(Unavailable, match="No space left"):
        runner.commit()
    assert runner.dirty
    refused, _ = runner.apply(story.events[7].frame or Frame(), [])
    assert refused.refused is not None
    assert (refused.refused.code, refused.refused.retryable) == ("unavailable", True)
    with pytest.raises(Unavailable):
        runner.join(0)
    disk.room = 1 << 40
    story.play(runner, begin=7)
    expected = fingerprint(runner.session)
    assert expected == story.states()[-1]
    runner.close(keep=True)
    assert fingerprint(Runner.recover(folder).session) == expected


def test_a_medium_that_fails_to_confirm_is_written_to_again(folder: Path) -> None:
    disk, story = FullDisk(), Story()
    runner = new_runner(folder, "durable", disk=disk)
    story.play(runner, end=6)
    disk.broken_sync = True
    story.events[6].act(runner)
    with pytest.raises(Unavailable, match="Input/output"):
        runner.commit()
    written = disk.room
    disk.broken_sync = False
    runner.commit()
    assert disk.room < written
    assert fingerprint(after_death(runner, folder).session) == story.states()[7]


def after_death(runner: Runner, folder: Path) -> Runner:
    """What a new process finds: the first one's descriptors are gone, and what it held in memory."""
    assert runner._lock is not None
    runner._lock.release()
    return Runner.recover(folder)


def test_a_frame_that_the_disk_did_not_take_is_answered_when_it_comes_again(folder: Path) -> None:
    disk, story = FullDisk(), Story()
    runner = new_runner(folder, disk=disk)
    story.play(runner, end=4)
    step = story.events[4]
    disk.room = 5
    first = step.act(runner)
    with pytest.raises(Unavailable):
        runner.commit()
    disk.room = 1 << 40
    again = step.act(runner)
    runner.commit()
    assert again == first
    assert runner.session.frames_applied == 2


def test_a_file_size_limit_of_the_system_is_such_an_error(tmp_path: Path) -> None:
    """The same without a disk of our own: the kernel refuses to let the file grow."""
    import resource
    import signal

    runner, story = new_runner(tmp_path / "s_story"), Story()
    story.play(runner, end=5)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (journal_of(tmp_path / "s_story").stat().st_size + 10, before[1]))
        story.events[5].act(runner)
        with pytest.raises(Unavailable, match="File too large"):
            runner.commit()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    story.play(runner, begin=6)
    assert fingerprint(after_death(runner, tmp_path / "s_story").session) == story.states()[-1]


# Limits


def test_a_full_data_directory_takes_no_new_session_and_no_upload(tmp_path: Path) -> None:
    small = JournalPolicy(1 << 30, 200_000)
    runner = Runner(spec(), tmp_path / "s_story", policy=small)
    runner.join(0)
    runner.add_chunk(CLIENT, Chunk(1, 0, 150_000), memoryview(bytes(100_000)))
    runner.commit()
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_DATA_BYTES") as refused:
        runner.add_chunk(CLIENT, Chunk(2, 0, 150_000), memoryview(bytes(100_000)))
    assert refused.value.details["limit"] == 200_000
    assert not runner.dirty
    runner.join(0)
    runner.commit()
    runner.add_chunk(CLIENT, Chunk(1, 100_000, 150_000), memoryview(bytes(50_000)))
    runner.commit()
    with pytest.raises(LimitExceeded, match="GRADWIRE_MAX_DATA_BYTES"):
        Runner(spec(name="s_other"), tmp_path / "s_other", policy=small)
    assert not (tmp_path / "s_other").exists()


def test_a_folder_is_used_by_one_runner_at_a_time(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("gradwire_server.durable.store.LOCK_PATIENCE_S", 0.05)
    runner = new_runner(folder)
    with pytest.raises(Unavailable, match="in use"):
        Runner.recover(folder)
    runner.close(keep=True)
    Runner.recover(folder).close(keep=True)


def test_a_closed_session_is_gone_or_kept(folder: Path) -> None:
    runner = new_runner(folder)
    runner.join(0)
    runner.close(keep=True)
    assert kinds(folder) == [Kind.JOIN]
    Runner.recover(folder).close()
    assert not folder.exists()


def test_a_journal_of_another_session_is_not_read(tmp_path: Path) -> None:
    new_runner(tmp_path / "s_story").close(keep=True)
    path = journal_of(tmp_path / "s_story")
    with pytest.raises(JournalDamaged, match="belongs to another session than s_other"):
        Reader(path, "s_other")


def test_frames_that_messagepack_cannot_hold_are_refused_before_they_are_applied(folder: Path) -> None:
    runner = new_runner(folder, journal_bytes=policy().journal_bytes)
    structure = msgspec.Raw(b'{"ops":[["full",[[2],"int"]]]}')
    reply, _ = runner.apply(Frame(structure=structure, scalars=[1 << 70]), [], human=True)
    assert reply.refused is not None
    assert reply.refused.code == "malformed_frame"
    assert runner.session.frames_applied == 0


def test_the_header_is_the_length_that_the_documents_say() -> None:
    assert (HEADER_BYTES, RECORD_BYTES) == (64, 32)
