"""Sessions on a shared directory are deleted once and for all, whoever is stopped or interrupted meanwhile; sweeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradwire_protocol.errors import NotFound, SessionGone, Unavailable
from gradwire_server.durable.shared import epochs, shared_store
from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from gradwire_server.durable.shared.ownership import OwnershipLost
from gradwire_server.durable.shared.storage import Storage
from gradwire_server.durable.shared.tombstones import KEPT_S, Tombstone
from gradwire_server.hosting.runner import Runner
from gradwire_server.settings.session_spec import SessionSpec
from tests.server.shared.owners import Server
from tests.server.shared.stopping import CrashingStorage, StoppingStorage
from tests.server.story import Story, fingerprint
from tests.server.test_compaction import MOST_OPERATIONS, SHORT, Crash

Make = Callable[..., Server]


def test_a_deleted_session_stays_deleted(server: Make, storage: DirectoryStorage, story: Story) -> None:
    owner, other, zombie = server(), server(), server()
    runner = zombie.create(journal_bytes=SHORT)
    story.play(runner, 0, 4)
    owner.sees_the_end_of(zombie)
    owner.take_over().close(keep=False)
    assert storage.keys("sessions/") == []
    assert isinstance(other.store.find("s_story"), Tombstone)
    with pytest.raises((SessionGone, NotFound)):
        other.take_over()
    story.events[4].act(runner)
    with pytest.raises(Unavailable):
        runner.commit()
    runner.close(keep=True)
    with pytest.raises(OwnershipLost):
        zombie.take_over()
    other.store.sweep_now(time.time() + KEPT_S + 1)
    assert storage.keys("sessions/") == storage.keys("deleted/") == []


def test_a_dormant_session_is_deleted_by_anyone(server: Make, storage: DirectoryStorage) -> None:
    first, second = server(), server()
    first.create().close(keep=True)
    second.store.remove("s_story")
    assert storage.keys("sessions/") == []
    second.store.remove("s_story")


@pytest.mark.parametrize("stop", ["claims/", "deleted/"])
def test_a_deletion_that_was_stopped_removes_nothing_of_another_owner(
    tmp_path: Path, story: Story, states: list[str], stop: str
) -> None:
    """The owner is stopped after its last check of the lease, and another one takes over and acknowledges."""
    storage = StoppingStorage(tmp_path / "shared")
    zombie, successor, third = (Server(storage, tmp_path) for _ in range(3))
    runner = zombie.create()
    story.play(runner, 0, 6)
    taken: list[Runner] = []

    def meanwhile(key: str) -> None:
        if stop not in key:
            return
        storage.before_create = lambda key: None
        successor.sees_the_end_of(zombie)
        try:
            taken.append(successor.take_over())
        except SessionGone:
            return
        story.play(taken[0], 6, 8)

    storage.before_create = meanwhile
    if stop == "deleted/":  # nobody can be between the two: the other one finds the session deleted
        runner.close(keep=False)
        assert taken == []
        assert storage.keys("sessions/") == []
        assert isinstance(third.store.find("s_story"), Tombstone)
        return
    with pytest.raises(OwnershipLost, match="another server has it"):
        runner.close(keep=False)
    assert storage.keys("deleted/") == []
    story.play(taken[0], 8)
    third.sees_the_end_of(successor)
    assert fingerprint(third.take_over().session) == states[-1]


@pytest.mark.parametrize("finish", ["open", "remove", "sweep"])
def test_a_deletion_that_is_interrupted_anywhere_is_finished(tmp_path: Path, story: Story, finish: str) -> None:
    interrupted = 0
    for last in range(MOST_OPERATIONS):
        storage = CrashingStorage(tmp_path / str(last), MOST_OPERATIONS)
        owner, other = Server(storage, tmp_path), Server(DirectoryStorage(storage.root), tmp_path)
        runner = owner.create()
        story.play(runner, 0, 2)
        storage.left = last
        try:
            runner.close(keep=False)
        except Crash:
            interrupted += 1
        else:
            break
        if not last:  # nothing was done
            continue
        assert other.store.owner_of("s_story") is None
        if finish == "open":
            with pytest.raises((SessionGone, NotFound)):
                other.take_over()
        if finish == "remove":
            other.store.remove("s_story")
        assert isinstance(other.store.find("s_story"), Tombstone) or finish == "sweep"
        other.store.sweep_now(time.time())
        found = other.store.find("s_story")
        assert isinstance(found, Tombstone)
        assert found.tenant == runner.spec.tenant
        assert storage.keys("sessions/") == []
    assert interrupted > 4


def test_an_owner_that_could_not_delete_acknowledges_no_more(server: Make, story: Story, monkeypatch: Any) -> None:
    """The storage did not answer, so the session may be deleted."""
    owner, other = server(), server()
    runner = owner.create()
    story.play(runner, 0, 4)
    home = runner._home
    assert home is not None

    def unanswered(*_: Any) -> None:
        raise OSError(5, "no answer")

    with monkeypatch.context() as patch:
        patch.setattr("gradwire_server.durable.shared.claims.claim_for_nobody", unanswered)
        with pytest.raises(OSError, match="no answer"):
            home.remove(runner.spec.tenant)
    with pytest.raises(OwnershipLost):
        runner.commit()
    owner.store.remove("s_story")
    assert isinstance(other.store.find("s_story"), Tombstone)


def test_a_sweep_that_was_stopped_removes_no_session_that_began_meanwhile(
    tmp_path: Path, story: Story, states: list[str], monkeypatch: Any
) -> None:
    """A creation was interrupted. While the sweeper has looked for what was published, it is done again."""
    storage = StoppingStorage(tmp_path / "shared")
    first, sweeper, third = (Server(storage, tmp_path) for _ in range(3))
    first.home().open(new=True)
    first.lease.end()
    made: list[Runner] = []

    def late(storage: Storage, session_id: str) -> Any:
        found = epochs.newest_published(storage, session_id)
        if not made:
            made.append(third.create())
            story.play(made[0], 0, 4)
            made[0].close(keep=True)
        return found

    monkeypatch.setattr(shared_store, "newest_published", late)
    sweeper.store.sweep_now(time.time())
    assert made
    assert storage.keys("deleted/") == []
    assert fingerprint(third.take_over().session) == states[4]


def test_a_session_that_runs_elsewhere_is_not_deleted_here(server: Make) -> None:
    first, second = server(), server()
    runner = first.create()
    with pytest.raises(Unavailable, match="runs on another server"):
        second.store.remove("s_story")
    runner.commit()


def test_expired_sessions_and_remains_are_swept(
    server: Make, storage: DirectoryStorage, story: Story, monkeypatch: Any
) -> None:
    first, second, third = server(), server(), server()
    first.create().close(keep=True)
    now = time.time()
    second.store.sweep_now(now + 3000)
    assert isinstance(second.store.find("s_story"), SessionSpec)
    runner = second.take_over()
    third.store.sweep_now(now + 10_000)  # it is in use
    assert isinstance(second.store.find("s_story"), SessionSpec)
    runner.close(keep=True)
    third.store.sweep_now(now + 10_000)
    assert isinstance(second.store.find("s_story"), Tombstone)
    # A creation that was interrupted: claimed, but never published.
    first.home("s_begun").open(new=True)
    third.store.sweep_now(now)
    assert storage.keys("sessions/s_begun/")
    first.lease.end()
    third.store.sweep_now(now)
    assert not storage.keys("sessions/s_begun/")
    # What a zombie wrote after the deletion.
    storage.put("sessions/s_late/epochs/0000000001/s_late/manifest", b"x")
    third.store.sweep_now(now)
    third.store.sweep_now(now + 1000)
    assert storage.keys("sessions/") == []


def test_one_server_sweeps_at_a_time(server: Make) -> None:
    first, second = server(), server()
    assert first.store.sweep() + second.store.sweep() == 1


def test_all_sessions_are_listed_one_by_one(server: Make) -> None:
    first, second = server(), server()
    first.create()
    found = second.store.specs()
    assert [(name, spec.id) for name, spec in found if isinstance(spec, SessionSpec)] == [("s_story", "s_story")]
    assert second.store.find("s_unknown") is None
    assert second.store.find("../owners") is None
