"""Claim: a session whose files were damaged is what it was after some record, or is refused with the place; no third.

Every result is held against the recorded states bit by bit.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gradwire_protocol.errors import JournalDamaged
from gradwire_server.runner import Runner
from tests.server.story import Story, fingerprint, new_runner

from . import Figures, enough, progress

SECONDS = 300.0
DAMAGES = 1000


def run(most_seconds: float) -> Figures:
    """Damage sessions until there were enough, or until the time is over."""
    until = time.monotonic() + most_seconds
    with tempfile.TemporaryDirectory(prefix="gradwire-damage-") as scratch:
        found: Counter[str] = Counter()
        for outcome in outcomes(Path(scratch), seed=int(time.time()), most=DAMAGES):
            found[outcome] += 1
            progress(f"{sum(found.values())} of {DAMAGES}")
            if time.monotonic() > until:
                break
    enough(found.total(), DAMAGES, "damages")
    return {"damages": sum(found.values()), **found}


def outcomes(scratch: Path, seed: int, most: int) -> Iterator[str]:
    """Damage a session in one way after the other; what came of it each time.

    Raises:
        AssertionError: with the seed and the damage, for a session that is not what it was after any record.
    """
    story = Story()
    states = story.states()
    originals = [scratch / "journal", scratch / "snapshot"]
    keep(story, originals[0], snapshot_after=0)
    keep(story, originals[1], snapshot_after=9)
    for number in range(most):
        chance = random.Random(f"{seed}.{number}")
        folder = scratch / "copy" / "s_story"
        shutil.copytree(originals[number % 2], folder)
        damage = inflict(folder, chance)
        yield check(folder, states, f"seed {seed}, number {number}: {damage}")
        shutil.rmtree(folder, ignore_errors=True)


def keep(story: Story, folder: Path, snapshot_after: int) -> None:
    """A folder of the session with the whole story, and a snapshot after so many records of it."""
    runner = new_runner(folder)
    story.play(runner, end=snapshot_after)
    if snapshot_after:
        assert runner.compact(force=True)
    story.play(runner, begin=snapshot_after)
    runner.close(keep=True)


def inflict(folder: Path, chance: random.Random) -> str:
    """Damage one file in a random way."""
    path = chance.choice(sorted(folder.iterdir()))
    data = bytearray(path.read_bytes())
    kind = chance.choice(("flip", "flip", "flips", "truncate", "truncate", "zeros", "swap", "repeat"))
    at = chance.randrange(len(data))
    size = min(chance.choice((1, 8, 60, 500)), len(data) - at)
    if kind == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif kind == "flips":
        for _ in range(chance.randrange(2, 20)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == "truncate":
        del data[at:]
    elif kind == "zeros":
        data[at : at + size] = bytes(size)
    elif kind == "swap":
        other = chance.randrange(len(data) - size + 1)
        data[at : at + size], data[other : other + size] = data[other : other + size], data[at : at + size]
    else:
        data[at:at] = data[at : at + size]
    path.write_bytes(data)
    return f"{kind} of {size} at {at} in {path.name}"


def check(folder: Path, states: list[str], damage: str) -> str:
    """Recover a session and hold it against the states that it had."""
    try:
        runner = Runner.recover(folder)
    except JournalDamaged as error:
        assert isinstance(error.details["offset"], int), damage
        assert "/" in error.details["file"], damage
        return "refused"
    assert runner._journal is not None
    records = runner._journal.last
    assert fingerprint(runner.session) == states[records], f"after {records} records it is another session: {damage}"
    runner.close()
    return "whole" if records == len(states) - 1 else "cut"
