"""Snapshots replace journals; an interruption at any moment loses nothing acknowledged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import safetensors

from gradwire_engine.snapshot import NotImageable
from gradwire_protocol.errors import JournalDamaged, OutOfMemory
from gradwire_server.durable.disk import Disk, Piece
from gradwire_server.hosting.runner import Runner
from gradwire_server.hosting.snapshot_schedule import MAX_OVERRUN
from gradwire_server.http.shortcut_frames import ShortcutFrame
from tests.server.story import CLIENT, W1, Story, fingerprint, new_runner, policy

SHORT = 700
"""A journal of this length holds a few records of the story."""

MOST_OPERATIONS = 1000


class Crash(BaseException):
    """The process is gone. Nothing catches it."""


class CrashingDisk(Disk):
    """Stops at its n-th operation, a write in the middle of it."""

    def __init__(self, last: int) -> None:
        self.left = last

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash

    def make_folder(self, path: Path) -> None:
        self._count()
        super().make_folder(path)

    def create(self, path: Path) -> int:
        self._count()
        return super().create(path)

    def write(self, descriptor: int, pieces: Sequence[Piece], at: int) -> int:
        try:
            self._count()
        except Crash:
            whole = b"".join(pieces)
            super().write(descriptor, [whole[: len(whole) // 2]], at)
            raise
        return super().write(descriptor, pieces, at)

    def truncate(self, descriptor: int, size: int) -> None:
        self._count()
        super().truncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        self._count()
        super().sync(descriptor)

    def sync_data(self, descriptor: int) -> None:
        self._count()
        super().sync_data(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        self._count()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self._count()
        super().remove(path)

    def remove_folder(self, path: Path) -> None:
        self._count()
        super().remove_folder(path)

    def sync_folder(self, path: Path) -> None:
        self._count()
        super().sync_folder(path)


class PowerLoss(CrashingDisk):
    """Forgets, when it stops, whatever nobody waited for: contents and names."""

    def __init__(self, last: int, folder: Path) -> None:
        super().__init__(last)
        self.folder = folder
        self.contents: dict[int, bytes] = {}
        self.names: dict[str, int] = {}
        if folder.exists():
            for path in folder.iterdir():
                self.contents[path.stat().st_ino] = path.read_bytes()
            self.sync_names()

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        self._keep(descriptor)

    def sync_data(self, descriptor: int) -> None:
        super().sync_data(descriptor)
        self._keep(descriptor)

    def sync_folder(self, path: Path) -> None:
        super().sync_folder(path)
        if path == self.folder:
            self.sync_names()

    def remove(self, path: Path) -> None:
        """Set aside, so that its inode is not used again."""
        self._count()
        aside = self.folder.parent / "removed"
        aside.mkdir(exist_ok=True)
        path.rename(aside / path.name)

    def sync_names(self) -> None:
        self.names = {path.name: path.stat().st_ino for path in self.folder.iterdir()}

    def _keep(self, descriptor: int) -> None:
        self.contents[os.fstat(descriptor).st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def happen(self) -> None:
        """What a machine finds when it is switched on again."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, inode in self.names.items():
            (self.folder / name).write_bytes(self.contents.get(inode, b""))


@pytest.fixture(scope="module")
def story() -> Story:
    return Story(steps=3)


@pytest.fixture(scope="module")
def states(story: Story) -> list[str]:
    return story.states()


def tell(story: Story, folder: Path, disk: Disk, durability: str) -> tuple[Runner | None, int]:
    """Tell the story until the end or the crash: the runner, and how many records were acknowledged."""
    runner, acknowledged = None, 0
    try:
        runner = new_runner(folder, durability, SHORT, disk=disk)
        for event in story.events:
            event.act(runner)
            runner.commit()
            acknowledged += 1
            runner.compact(force=acknowledged % 5 == 0)
    except Crash:
        if runner is not None and runner._lock is not None:
            runner._lock.release()
        return None, acknowledged
    return runner, acknowledged


def held_against(folder: Path, states: list[str], acknowledged: int) -> int:
    """Recover, and see that what was acknowledged is there; returns how many records are."""
    if not (folder / "session.json").exists():
        assert acknowledged == 0
        return 0
    runner = Runner.recover(folder, policy=policy(SHORT))
    assert runner._journal is not None
    records = runner._journal.last
    assert fingerprint(runner.session) == states[records]
    assert records in (acknowledged, acknowledged + 1)
    runner.close(keep=True)
    return records


class PowerLossOfRecords(PowerLoss):
    """Keeps what was last written to the manifest, though nobody waited for that."""

    def happen(self) -> None:
        manifest = self.folder / "manifest"
        latest = manifest.read_bytes() if manifest.exists() else b""
        super().happen()
        if manifest.exists():
            manifest.write_bytes(latest)


def make_disk(kind: str, last: int, folder: Path) -> CrashingDisk:
    if kind == "process":
        return CrashingDisk(last)
    return PowerLoss(last, folder) if kind == "power" else PowerLossOfRecords(last, folder)


@pytest.mark.parametrize("kind", ["process", "power", "power, not the manifest"])
def test_a_crash_between_any_two_operations_loses_nothing(
    tmp_path: Path, story: Story, states: list[str], kind: str
) -> None:
    """The n-th operation on files is the last one, for every n. And again: the recovery from it goes on to the end."""
    seen = set()
    for last in range(MOST_OPERATIONS):
        folder = tmp_path / str(last) / "s_story"
        disk = make_disk(kind, last, folder)
        runner, acknowledged = tell(story, folder, disk, "applied" if kind == "process" else "durable")
        if runner is not None:
            assert runner.snapshots_taken >= 3
            assert fingerprint(runner.session) == states[-1]
            disk.left = MOST_OPERATIONS
            runner.close()
            break
        if isinstance(disk, PowerLoss):
            disk.happen()
        if folder.exists():
            seen.add(held_against(folder, states, acknowledged))
        shutil.rmtree(folder.parent, ignore_errors=True)
    assert last > 50
    assert seen == set(range(len(states)))


def test_a_crash_while_a_crash_is_recovered_from_loses_nothing(tmp_path: Path, story: Story, states: list[str]) -> None:
    """A torn journal and a half-written snapshot are there; the recovery is stopped at every one of its operations."""
    folder = tmp_path / "s_story"
    runner = new_runner(folder, "durable", SHORT)
    for event in story.events[:9]:
        event.act(runner)
        runner.commit()
    runner.close(keep=True)
    (folder / "snapshot-1.safetensors.part").write_bytes(b"half")
    (journal,) = folder.glob("journal-*")
    with journal.open("ab") as file:
        file.write(bytes(100))
    for last in range(MOST_OPERATIONS):
        copy = tmp_path / str(last) / "s_story"
        shutil.copytree(folder, copy)
        disk = PowerLoss(last, copy)
        try:
            runner = Runner.recover(copy, disk=disk, policy=policy(SHORT))
            assert runner.compact(force=True)
        except Crash:
            if runner._lock is not None:
                runner._lock.release()
            disk.happen()
            assert held_against(copy, states, 9) == 9
        else:
            break
    assert last > 10
    assert not list(copy.glob("*.part"))


def test_a_snapshot_takes_the_place_of_the_journal(tmp_path: Path, story: Story, states: list[str]) -> None:
    folder = tmp_path / "s_story"
    runner = new_runner(folder, journal_bytes=SHORT)
    assert not runner.compact()
    for event in story.events:
        event.act(runner)
        runner.commit()
        runner.compact(force=event.name.startswith("step"))
        names = sorted(path.name.partition("-")[0] for path in folder.iterdir())
        assert names == ["journal", "manifest", "session.json", *(["snapshot"] if runner.snapshots_taken else [])]
    facts = runner.describe()["journal"]
    assert facts["snapshots_taken"] == runner.snapshots_taken > 2
    assert facts["records"] == len(story.events)
    runner.close(keep=True)
    assert fingerprint(Runner.recover(folder).session) == states[-1]


def test_a_snapshot_is_a_safetensors_file(tmp_path: Path, story: Story) -> None:
    runner = new_runner(tmp_path / "s_story", journal_bytes=SHORT)
    story.play(runner)
    assert runner.compact(force=True)
    (path,) = (tmp_path / "s_story").glob("snapshot-*.safetensors")
    with safetensors.safe_open(path, "np") as file:
        facts = msgspec.json.decode(file.metadata()["facts"])
        assert file.keys()
    assert facts["default_dtype"] == "float32"


def test_disk_use_is_bounded(tmp_path: Path, story: Story) -> None:
    """However long a session runs, its folder holds two snapshots and two journals at most, at any moment."""
    folder = tmp_path / "s_story"
    runner = new_runner(folder, journal_bytes=20_000)
    story.play(runner)
    most = 0
    for number in range(300):
        builder = ShortcutFrame(CLIENT, (CLIENT << 32) + 7000)
        builder.record("mul", builder.tensor(W1), 2)
        frame = builder.build(False).frame
        frame.seq, frame.ack = runner.session.expected(CLIENT), number
        assert runner.apply(frame, [])[0].refused is None
        runner.commit()
        runner.compact()
        most = max(most, sum(path.stat().st_size for path in folder.iterdir()))
    assert runner.snapshots_taken > 1
    assert most < 20_000 + 2 * runner._schedule.snapshot_bytes + 2_000


def test_a_journal_that_cannot_be_replaced_is_counted_and_bounded(
    tmp_path: Path, story: Story, monkeypatch: Any
) -> None:
    def never(_: Any) -> Any:
        raise NotImageable("a backward is suspended")

    runner = new_runner(tmp_path / "s_story", journal_bytes=SHORT)
    refused = []
    with monkeypatch.context() as patch:
        patch.setattr("gradwire_server.hosting.runner.take", never)
        for event in story.events:
            event.act(runner)
            runner.commit()
            assert not runner.compact()
        assert runner.describe()["journal"]["postponed"] == "a backward is suspended"
        frame = story.events[3].frame
        assert frame is not None
        while not refused:
            again = msgspec.structs.replace(frame, seq=runner.session.expected(CLIENT), first=(CLIENT << 32) + 8000)
            reply, _ = runner.apply(again, list(story.events[3].buffers))
            runner.commit()
            refused += [reply.refused] if reply.refused else []
    assert refused[0].code == "limit_exceeded"
    assert refused[0].extra["setting"] == "GRADWIRE_JOURNAL_BYTES"
    assert MAX_OVERRUN * SHORT < runner._journal.nbytes < (MAX_OVERRUN + 4) * SHORT  # type: ignore[union-attr]
    assert runner.compact(force=True)
    assert runner.apply(again, list(story.events[3].buffers))[0].refused is None


def test_after_an_op_that_failed_halfway_a_snapshot_is_taken_before_it_is_told(
    tmp_path: Path, story: Story, monkeypatch: Any
) -> None:
    """Leaves may have got their gradients and others not: a replay, in which the op fails at once, would not know."""
    folder = tmp_path / "s_story"
    runner = new_runner(folder)
    story.play(runner, end=4)
    run = runner.session.engine.run

    def scarce(entry: Any, values: Any) -> Any:
        result = run(entry, values)
        if entry.op.name == "backward":
            raise OutOfMemory("after the work was done")
        return result

    with monkeypatch.context() as patch:
        patch.setattr(runner.session.engine, "run", scarce)
        reply = story.events[4].act(runner)
    assert [problem.op for problem in reply.errors] == ["backward"]
    runner.commit()
    assert runner.snapshots_taken == 1
    expected = fingerprint(runner.session)
    runner.close(keep=True)
    assert fingerprint(Runner.recover(folder).session) == expected


def with_older(story: Story, folder: Path) -> tuple[Path, Path]:
    """A folder in which a crash left the older snapshot and its journal beside the newest: both snapshots."""
    runner = new_runner(folder, journal_bytes=SHORT)
    story.play(runner, end=6)
    assert runner.compact(force=True)
    (older,) = folder.glob("snapshot-*")
    story.play(runner, begin=6, end=10)
    aside = folder.parent / "aside"
    shutil.copytree(folder, aside)
    assert runner.compact(force=True)
    (newest,) = folder.glob("snapshot-*")
    story.play(runner, begin=10)
    runner.close(keep=True)
    for path in aside.iterdir():
        if not (folder / path.name).exists():
            shutil.copy(path, folder)
    return older, newest


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def test_behind_a_damaged_snapshot_the_older_one_is_used_if_it_is_there(
    tmp_path: Path, story: Story, states: list[str]
) -> None:
    folder = tmp_path / "s_story"
    _, newest = with_older(story, folder)
    flip(newest)
    assert fingerprint(Runner.recover(folder).session) == states[-1]


def test_a_damaged_snapshot_without_an_older_one_is_refused_by_name(tmp_path: Path, story: Story) -> None:
    folder = tmp_path / "s_story"
    older, newest = with_older(story, folder)
    flip(newest)
    (folder / older.name).unlink()
    with pytest.raises(JournalDamaged, match=newest.name):
        Runner.recover(folder)


def test_an_older_snapshot_is_no_use_without_the_journal_behind_it(tmp_path: Path, story: Story) -> None:
    folder = tmp_path / "s_story"
    _, newest = with_older(story, folder)
    flip(newest)
    (folder / "journal-00000000000000000006.log").unlink()
    with pytest.raises(JournalDamaged, match=newest.name):
        Runner.recover(folder)


def test_what_follows_an_older_snapshot_is_found_when_the_newer_one_can_be_read_again(
    tmp_path: Path, story: Story, states: list[str]
) -> None:
    """A snapshot that a broken cable hid for once: what was acknowledged meanwhile is not behind it."""
    folder = tmp_path / "s_story"
    runner = new_runner(folder, journal_bytes=SHORT)
    story.play(runner, end=6)
    aside = tmp_path / "aside"
    shutil.copytree(folder, aside)
    assert runner.compact(force=True)
    (newest,) = folder.glob("snapshot-*")
    (journal,) = folder.glob("journal-*")
    runner.close(keep=True)
    journal.unlink()  # as after a crash between the two
    shutil.copy(aside / "journal-00000000000000000000.log", folder)
    intact = newest.read_bytes()
    flip(newest)
    runner = Runner.recover(folder)
    assert fingerprint(runner.session) == states[6]
    story.play(runner, begin=6, end=9)
    runner.close(keep=True)
    newest.write_bytes(intact)
    assert fingerprint(Runner.recover(folder).session) == states[9]
