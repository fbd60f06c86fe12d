"""Journals restore sessions exactly, or not at all."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gradwire_engine.session.session import Session
from gradwire_protocol.errors import InternalError, JournalDamaged, LimitExceeded, OutOfMemory
from gradwire_protocol.frames import Chunk, Frame
from gradwire_server.durable import records
from gradwire_server.durable.records import Reader
from gradwire_server.durable.store import read_spec
from gradwire_server.hosting.opening import open_runner
from gradwire_server.hosting.runner import Runner
from gradwire_server.http.shortcut_frames import ShortcutFrame
from tests.live_server import ROOT, SOURCES
from tests.server.story import CLIENT, W1, Event, Story, fingerprint, forget_commits, new_runner, spec
from tests.soak import damage

KILLS = 5


@pytest.fixture(scope="module")
def story() -> Story:
    return Story()


@pytest.fixture(scope="module")
def states(story: Story) -> list[str]:
    return story.states()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "s_story"


@pytest.fixture
def kept(story: Story, folder: Path) -> Path:
    """The folder of a session that was told the whole story."""
    runner = new_runner(folder)
    story.play(runner)
    runner.close(keep=True)
    return folder


def journal_of(folder: Path) -> Path:
    (found,) = folder.glob("journal-*.log")
    return found


def offsets(folder: Path) -> list[int]:
    """Where the records begin, and where the last one ends."""
    with Reader(journal_of(folder), "s_story") as reader:
        return [record.offset for record in reader] + [reader.size]


def recovered(folder: Path) -> str:
    runner = Runner.recover(folder)
    found = fingerprint(runner.session)
    runner.close(keep=True)
    return found


def test_a_session_is_what_it_was_after_every_record(story: Story, states: list[str], folder: Path) -> None:
    new_runner(folder).close(keep=True)
    for number, event in enumerate(story.events):
        runner = Runner.recover(folder)
        assert fingerprint(runner.session) == states[number]
        event.act(runner)
        runner.commit()
        runner.close(keep=True)
    assert recovered(folder) == states[-1]


def test_a_frame_sent_again_after_the_recovery_has_its_old_answer(story: Story, folder: Path) -> None:
    runner = new_runner(folder)
    story.play(runner)
    last = [event for event in story.events if event.frame is not None][-2]
    assert last.frame is not None
    before, values = runner.apply(last.frame, [])
    runner.close(keep=True)
    runner = Runner.recover(folder)
    after, again = runner.apply(last.frame, [])
    assert (after, [bytes(b) for b in again]) == (before, [bytes(b) for b in values])
    assert before.values
    assert not runner.dirty


def test_after_the_loss_of_power_the_end_may_be_cut_anywhere(story: Story, states: list[str], kept: Path) -> None:
    """Every length of the last two records: what is whole is there, and the session goes on from it."""
    path, begins = journal_of(kept), offsets(kept)
    data = path.read_bytes()
    for size in range(begins[-3], begins[-1] + 1, 7):
        forget_commits(kept)
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in begins[1:])
        runner = Runner.recover(kept)
        assert fingerprint(runner.session) == states[whole]
        assert path.stat().st_size == begins[whole]
        story.play(runner, begin=whole)
        runner.close(keep=True)
        assert recovered(kept) == states[-1]
        path.write_bytes(data)


def test_a_torn_end_is_told_in_the_log(kept: Path, monkeypatch: Any) -> None:
    told: list[tuple[str, dict[str, Any]]] = []

    class Log:
        def warning(self, text: str, **facts: Any) -> None:
            told.append((text, facts))

    path, begins = journal_of(kept), offsets(kept)
    os.truncate(path, begins[-1] - 1)
    forget_commits(kept)
    monkeypatch.setattr("gradwire_server.durable.recovery.log", Log())
    Runner.recover(kept).close(keep=True)
    ((text, facts),) = told
    assert "torn end" in text
    assert (facts["offset"], facts["bytes"]) == (begins[-2], begins[-1] - 1 - begins[-2])


@pytest.mark.parametrize("rest", [bytes(4096), b"\xff" * 100, b"GWIREJNL"])
def test_what_never_became_a_record_is_cut(kept: Path, states: list[str], rest: bytes) -> None:
    with journal_of(kept).open("ab") as file:
        file.write(rest)
    assert recovered(kept) == states[-1]


def test_damage_in_front_of_an_intact_record_is_refused_with_its_place(kept: Path) -> None:
    path, begins = journal_of(kept), offsets(kept)
    data = path.read_bytes()
    for number in (0, 3, len(begins) - 3):
        for at in (begins[number], begins[number] + 9, begins[number + 1] - 1):
            damaged = bytearray(data)
            damaged[at] ^= 16
            path.write_bytes(damaged)
            with pytest.raises(
                JournalDamaged, match=f"s_story/{path.name} is damaged at byte {begins[number]:,}"
            ) as it:
                Runner.recover(kept)
            assert it.value.details == {"file": f"s_story/{path.name}", "offset": begins[number]}
            assert path.read_bytes() == bytes(damaged)


def test_a_record_that_is_missing_is_refused(kept: Path) -> None:
    path, begins = journal_of(kept), offsets(kept)
    data = path.read_bytes()
    path.write_bytes(data[: begins[4]] + data[begins[5] :])
    with pytest.raises(JournalDamaged, match="record 6 follows record 4") as refused:
        Runner.recover(kept)
    assert refused.value.details["offset"] == begins[4]


def test_a_record_that_is_there_twice_is_refused(kept: Path) -> None:
    path, begins = journal_of(kept), offsets(kept)
    data = path.read_bytes()
    path.write_bytes(data[: begins[5]] + data[begins[4] :])
    with pytest.raises(JournalDamaged, match="record 5 follows record 5"):
        Runner.recover(kept)


def test_what_a_client_sends_is_never_taken_for_a_record(folder: Path, tmp_path: Path) -> None:
    """A tensor that is itself a journal, in a record that is torn: its records are no intact ones behind the damage."""
    other = new_runner(tmp_path / "other" / "s_story")
    Story().play(other)
    other.close(keep=True)
    bait = memoryview(journal_of(tmp_path / "other" / "s_story").read_bytes())
    runner = new_runner(folder)
    Story().play(runner)
    before = fingerprint(runner.session)
    runner.add_chunk(CLIENT, Chunk(9, 0, len(bait)), bait)
    runner.close(keep=True)
    path = journal_of(folder)
    os.truncate(path, path.stat().st_size - 1)
    forget_commits(folder)
    assert recovered(folder) == before


@pytest.mark.parametrize("change", ["flip", "cut", "remove"])
def test_a_damaged_session_json_is_refused(kept: Path, change: str) -> None:
    path = kept / "session.json"
    data = bytearray(path.read_bytes())
    if change == "flip":
        at = data.index(b'"seed":11') + len(b'"seed":1')
        data[at] ^= 1
    path.write_bytes(data if change == "flip" else data[:-9])
    if change == "remove":
        path.unlink()
    with pytest.raises(JournalDamaged, match=r"session\.json"):
        Runner.recover(kept)


def test_a_first_journal_that_is_missing_is_refused(kept: Path) -> None:
    journal_of(kept).unlink()
    with pytest.raises(JournalDamaged, match=r"journal-0{20}\.log is damaged at byte 0: the file is missing"):
        Runner.recover(kept)


def test_the_spec_is_kept(kept: Path) -> None:
    assert read_spec(kept) == (spec(), "empty", True)


# Failures that depend on the moment


def failing_frame(runner: Runner) -> Frame:
    builder = ShortcutFrame(CLIENT, (CLIENT << 32) + 9000)
    (first,) = builder.record("exp", builder.tensor(W1))
    builder.record("log1p", first)
    (third,) = builder.record("exp", builder.tensor(W1))
    builder.read(third)
    frame = builder.build(False).frame
    frame.seq = runner.session.expected(CLIENT)
    return frame


@pytest.mark.parametrize("failure", [OutOfMemory, LimitExceeded, InternalError])
def test_an_op_that_failed_by_the_moment_fails_again(
    folder: Path, story: Story, monkeypatch: Any, failure: type[Exception]
) -> None:
    runner = new_runner(folder)
    story.play(runner, end=5)
    run = runner.session.engine.run

    def scarce(entry: Any, values: Any) -> Any:
        if entry.op.name == "log1p":
            raise failure("not now")
        return run(entry, values)

    frame = failing_frame(runner)
    with monkeypatch.context() as patch:
        patch.setattr(runner.session.engine, "run", scarce)
        reply, _ = runner.apply(frame, [])
    assert [problem.op for problem in reply.errors] == ["log1p"]
    runner.commit()
    expected = fingerprint(runner.session)
    runner.close(keep=True)
    runner = Runner.recover(folder)
    assert fingerprint(runner.session) == expected
    assert runner.apply(frame, [])[0].errors == reply.errors


def test_too_little_memory_for_a_recovery_is_not_taken_for_damage(kept: Path, monkeypatch: Any) -> None:
    def scarce(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("gradwire_engine.autograd.engine.Engine.run", scarce)
        with pytest.raises(OutOfMemory):
            Runner.recover(kept)
    assert recovered(kept)


def test_a_frame_that_fails_in_an_unforeseen_way_takes_the_session_back_to_its_journal(
    folder: Path, story: Story, states: list[str], monkeypatch: Any
) -> None:
    runner = new_runner(folder)
    story.play(runner, end=6)

    apply = Session.apply
    calls: list[Any] = []

    def broken(session: Session, *arguments: Any, **options: Any) -> Any:
        calls.append(session)
        answer = apply(session, *arguments, **options)
        if len(calls) == 1:
            raise ZeroDivisionError("a defect")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(Session, "apply", broken)
        with pytest.raises(ZeroDivisionError):
            story.events[6].act(runner)
    assert fingerprint(runner.session) == states[6]
    story.play(runner, begin=6)
    assert fingerprint(runner.session) == states[-1]


# Files that people exchange


def test_an_exported_session_is_adopted(folder: Path, story: Story, tmp_path: Path) -> None:
    runner = new_runner(folder)
    story.play(runner)
    file = runner.export()
    there = tmp_path / "s_adopted"
    adopted = open_runner(spec(name="s_adopted"), there, "adopt", file)
    builder = ShortcutFrame(0, 77)
    builder.read(builder.tensor(W1))
    built = builder.build(False)
    expected = runner.apply(built.frame, [])[1]
    found = adopted.apply(built.frame, [])[1]
    assert bytes(found[0]) == bytes(expected[0])
    adopted.commit()
    state = fingerprint(adopted.session)
    adopted.close(keep=True)
    assert recovered(there) == state


# Damage of all kinds


@pytest.mark.parametrize("seed", range(3))
def test_damage_is_cut_or_refused_and_never_a_wrong_value(tmp_path: Path, seed: int) -> None:
    found = Counter(damage.outcomes(tmp_path, seed, 80))
    assert sum(found.values()) == 80
    assert found["refused"] > 10
    assert found["cut"] > 0


# A process that is killed


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """A process applies frames and prints the number of each that was committed; it is killed at random moments."""
    folder = tmp_path / "s_story"
    chance = random.Random(5)
    expected_loss = 0.0
    for _ in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.server.endless", str(folder)],
            stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": SOURCES + os.pathsep + str(ROOT)},
        ) as process:  # fmt: skip
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randrange(1, 60))]
            process.send_signal(signal.SIGKILL)
            lines += process.stdout.readlines()
        acknowledged = int(lines[-1] if lines[-1].endswith(b"\n") else lines[-2])
        runner = Runner.recover(folder)
        done = runner.session.clients[CLIENT].expected - 1
        assert done >= acknowledged > expected_loss
        (_, total) = runner.apply(reading(runner), [])
        assert np.frombuffer(total[0], np.float32)[0] == done
        runner.commit()
        expected_loss = acknowledged
        runner.close(keep=True)


def reading(runner: Runner) -> Frame:
    """A frame of people's that reads the counter of that process."""
    builder = ShortcutFrame(0, 5)
    builder.read(builder.tensor((CLIENT << 32) + 1))
    return builder.build(False).frame


def test_the_story_has_every_kind_of_event(story: Story) -> None:
    codes: set[str] = set()
    runner = Runner(spec("none"))
    for event in story.events:
        codes |= _codes(event, runner)
    assert {"shape_mismatch", "limit_exceeded"} <= codes
    hashed = [e for e in story.events if e.frame is not None and e.frame.hash and not e.frame.structure]
    assert hashed


def _codes(event: Event, runner: Runner) -> set[str]:
    reply = event.act(runner)
    return {problem.code for problem in getattr(reply, "errors", ())}


def test_a_journal_of_another_version_is_told(kept: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(records, "VERSION", records.VERSION + 1)
    with pytest.raises(JournalDamaged, match="has version 1; this gradwire reads version 2"):
        Runner.recover(kept)


def test_a_copy_of_a_folder_is_a_backup(kept: Path, states: list[str], tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "s_story"
    shutil.copytree(kept, copy)
    assert recovered(copy) == states[-1]
    assert msgspec.json.decode((copy / "session.json").read_bytes())["spec"]["id"] == "s_story"
