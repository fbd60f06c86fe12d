"""Each file of a session, damaged in each way: the session is intact, or an error names the file. It never hangs."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradwire_protocol.errors import JournalDamaged
from gradwire_server.auth.audit import AuditLog
from gradwire_server.auth.keys import DamagedKeys, KeyStore
from gradwire_server.durable.store import Store
from gradwire_server.hosting.runner import Runner
from tests.live_server import live_server
from tests.server.exchange import post, problem, stream, upload
from tests.server.story import Story, fingerprint, new_runner
from tests.soak import damage
from tests.soak.damage import FILE_DAMAGES, KEPT_FILES

NOBODY = 65534


@pytest.fixture(scope="module")
def states() -> list[str]:
    return Story().states()


@pytest.fixture(scope="module")
def originals() -> Iterator[damage.Originals]:
    # Not below pytest's own folder, which a user without privileges may not look into.
    scratch = Path(tempfile.mkdtemp(prefix="gradwire-damaged-"))
    scratch.chmod(0o755)
    yield damage.make_originals(scratch)
    shutil.rmtree(scratch)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", KEPT_FILES)
@pytest.mark.parametrize("kind", FILE_DAMAGES)
def test_a_damaged_file_is_named_or_nothing_is_lost(
    kind: str, name: str, originals: damage.Originals, states: list[str]
) -> None:
    folder = originals.copy()
    FILE_DAMAGES[kind](damage.kept_file(folder, name), originals)
    try:
        with unprivileged(folder):
            found = Runner.recover(folder)
    except JournalDamaged as error:
        file = error.details["file"]
        assert file.startswith(f"s_story/{name}"), error
        assert file in str(error)
    else:
        assert fingerprint(found.session) == states[-1]
        found.close()


class unprivileged:
    """As a user that permissions hold for; whoever runs the tests may be root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
            os.seteuid(NOBODY)

    def __exit__(self, *_: object) -> None:
        if os.getuid() == 0:
            os.seteuid(0)


@pytest.mark.parametrize("host", ["inline", "process"])
def test_damaged_sessions_say_so_to_their_owner_and_disturb_no_other(host: str, tmp_path: Path) -> None:
    names = [name for name in KEPT_FILES if name != "snapshot"]
    harmless = ("not readable", "an older copy", "a byte shorter")
    kinds = [kind for kind in FILE_DAMAGES if "another" not in kind and kind not in harmless]
    wanted: dict[str, Any] = {"data_dir": tmp_path, "session_host": host, "max_sessions": 100, "log_level": "error"}
    with live_server(**wanted) as server, server.http() as http:
        sessions = {}
        for name, kind in [("", ""), *itertools.product(names, kinds)]:
            location = http.post("/v1/sessions").headers["location"]
            post(http, location, upload([1, 2], "float32", [2]))
            sessions[name, kind] = location
    nothing = damage.Originals(tmp_path)
    folders = {each: tmp_path / "sessions" / location.rsplit("/", 1)[-1] for each, location in sessions.items()}
    for (name, kind), folder in folders.items():
        if name:
            nothing.whole = folder.with_name(folder.name + "-no")
            FILE_DAMAGES[kind](damage.kept_file(folder, name), nothing)
    with live_server(**wanted) as server, server.http() as http, server.http(server.other_key) as other:
        http.timeout = 20
        rows = {row["id"]: row["state"] for row in http.get("/v1/sessions").json()["sessions"]}
        for (name, kind), location in sessions.items():
            folder = folders[name, kind]
            if not name:
                assert http.get(f"{location}/tensors/1").json()["values"] == [1, 2]
                continue
            assert rows[folder.name] == ("damaged" if name == "session.json" else "dormant")
            found = problem(http.get(location), 500, "journal_damaged")
            assert found["extra"]["file"].startswith(f"{folder.name}/{name}"), kind
            problem(http.get(f"{location}/tensors/1"), 500, "journal_damaged")
            problem(other.get(location), 404, "not_found")
            with stream(server, location, greet=False) as peer:
                assert peer.hello().problem.code == "journal_damaged"
        for (name, kind), location in sessions.items():
            assert http.delete(location).status_code == 204, (name, kind)
            assert not os.path.lexists(folders[name, kind])
        assert http.get("/v1/sessions").json()["sessions"] == []


def test_a_pipe_in_the_place_of_the_keys_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys.json")
    with pytest.raises(DamagedKeys, match="a named pipe"):
        KeyStore(tmp_path / "keys.json")


def test_a_pipe_in_the_place_of_the_audit_log_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "audit.log")
    with pytest.raises(OSError, match="No such device"):
        AuditLog(tmp_path / "audit.log")


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    Store(tmp_path).close()


def test_a_journal_that_is_missing_behind_a_snapshot_is_named(tmp_path: Path) -> None:
    """Nothing else tells that records were in it: the snapshot is intact, and it is the newest."""
    folder = tmp_path / "s_story"
    runner, story = new_runner(folder, "durable"), Story()
    story.play(runner, end=9)
    assert runner.compact(force=True)
    story.play(runner, begin=9)
    runner.close(keep=True)
    (journal,) = folder.glob("journal-*.log")
    journal.unlink()
    for _ in range(2):
        with pytest.raises(JournalDamaged, match=f"{journal.name} is damaged at byte 0: the file is missing"):
            Runner.recover(folder)
        assert not journal.exists()


def test_a_journal_that_is_shorter_than_it_was_is_named(tmp_path: Path, states: list[str]) -> None:
    """It ends with a whole record; what was committed behind that is known to be missing."""
    folder = tmp_path / "s_story"
    runner, story = new_runner(folder), Story()
    story.play(runner, end=6)
    (journal,) = folder.glob("journal-*.log")
    older = journal.read_bytes()
    story.play(runner, begin=6)
    runner.close(keep=True)
    whole = journal.read_bytes()
    journal.write_bytes(older)
    with pytest.raises(JournalDamaged, match=f"record 7 is missing, but records up to {len(states) - 1} were written"):
        Runner.recover(folder)
    journal.write_bytes(whole)
    assert fingerprint(Runner.recover(folder).session) == states[-1]


def test_a_session_of_an_earlier_version_comes_back_and_has_a_manifest_from_then_on(
    tmp_path: Path, states: list[str]
) -> None:
    folder = tmp_path / "s_story"
    runner = new_runner(folder)
    Story().play(runner)
    runner.close(keep=True)
    damage.make_old(folder)
    for _ in range(2):
        runner = Runner.recover(folder)
        assert fingerprint(runner.session) == states[-1]
        runner.close(keep=True)
    (journal,) = folder.glob("journal-*.log")
    os.truncate(journal, journal.stat().st_size - 1)
    with pytest.raises(JournalDamaged, match=journal.name):
        Runner.recover(folder)


def test_what_cannot_be_begun_behind_a_snapshot_takes_the_snapshot_back(
    tmp_path: Path, states: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records go on into the old journal; a snapshot without a journal behind it would hide them."""
    folder = tmp_path / "s_story"
    runner, story = new_runner(folder), Story()
    story.play(runner, end=9)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("gradwire_server.durable.manifest.Manifest.follow", full)
        assert not runner.compact(force=True)
    assert not list(folder.glob("snapshot-*"))
    story.play(runner, begin=9)
    assert runner._lock is not None
    runner._lock.release()
    assert fingerprint(Runner.recover(folder).session) == states[-1]
