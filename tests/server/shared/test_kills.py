"""An owner's process is killed while it commits, at random points: the next owner has the same bits."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gradwire_server.durable.shared.directory_storage import DirectoryStorage
from tests.server.shared.owners import Server
from tests.server.story import Story, fingerprint
from tests.server.test_compaction import SHORT

STEPS = 8
KILLS = 20


def tell(root: Path, begin: int, acknowledged: Connection) -> None:
    """The process of an owner: it takes the session over and goes on with the story, again and again."""
    server = Server(DirectoryStorage(root), root)
    server.clock = time.monotonic  # type: ignore[assignment]
    server.lease._clock = time.monotonic
    server.lease._until = time.monotonic() + 600
    acknowledged.send(server.lease.owner)
    runner = server.create("applied", SHORT) if begin == 0 else server.take_over(journal_bytes=SHORT)
    acknowledged.send(begin)
    for number, event in enumerate(Story(STEPS).events[begin:], begin + 1):
        event.act(runner)
        runner.commit()
        acknowledged.send(number)
        runner.compact(force=number % 7 == 0)
    runner.close(keep=True)


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def test_a_kill_at_any_moment_loses_nothing(
    tmp_path: Path, processes: multiprocessing.context.ForkServerContext
) -> None:
    story = Story(STEPS)
    states = story.states()
    chance = random.Random(5)
    kills = rounds = 0
    while kills < KILLS:
        rounds += 1
        root, at = tmp_path / str(rounds), 0
        while at < len(story.events) and kills < KILLS:
            receiver, sender = processes.Pipe(duplex=False)
            process = processes.Process(target=tell, args=(root, at, sender))
            process.start()
            sender.close()
            owner = receiver.recv()
            seen = [receiver.recv()]
            for _ in range(chance.randrange(4)):
                seen += [receiver.recv()] if receiver.poll(30) else []
            time.sleep(chance.uniform(0, 0.003))
            process.kill()
            process.join(30)
            kills += 1
            try:
                while receiver.poll():
                    seen.append(receiver.recv())
            except EOFError:
                pass
            successor = Server(DirectoryStorage(root), root)
            successor.store.certify_ended(owner)  # its process is known to have ended
            runner = successor.take_over(journal_bytes=SHORT)
            assert runner._journal is not None
            at = runner._journal.last
            assert seen[-1] <= at <= seen[-1] + 1
            assert fingerprint(runner.session) == states[at]
            runner.close(keep=True)
