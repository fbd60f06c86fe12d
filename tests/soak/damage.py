"""Claim: a session with damaged files equals its state after some record, or is refused with the damage's location."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from gradwire_protocol.errors import JournalDamaged
from gradwire_server.durable.store import read_spec
from gradwire_server.hosting.runner import Runner
from tests.server.story import Story, fingerprint, forget_commits, new_runner, policy, spec

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
    others = make_originals(scratch)
    for number in range(most):
        chance = random.Random(f"{seed}.{number}")
        if number % 5 == 4:
            folder = others.copy()
            path = kept_file(folder, chance.choice(KEPT_FILES))
            kind = chance.choice([each for each in FILE_DAMAGES if each != "not readable"])  # nothing is that for root
            FILE_DAMAGES[kind](path, others)
            damage = f"{path.name} is {kind}"
        else:
            folder = scratch / "copy" / "s_story"
            shutil.copytree(originals[number % 2], folder)
            if number // 2 % 2:
                forget_commits(folder)
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


class Originals:
    """Sessions to be damaged: that of the story, with a snapshot, as it was earlier, and another one beside it."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.whole = scratch / "whole" / "s_story"
        self.earlier = scratch / "earlier" / "s_story"
        self.other = scratch / "other" / "s_other"

    def copy(self) -> Path:
        """A folder to be damaged; the last one is gone."""
        folder = self.scratch / "copy" / "s_story"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.whole, folder)
        return folder


def make_originals(scratch: Path) -> Originals:
    """Write sessions to be damaged."""
    made = Originals(scratch)
    runner, story = new_runner(made.whole), Story()
    story.play(runner, end=6)
    assert runner.compact(force=True)
    story.play(runner, begin=6, end=9)
    shutil.copytree(made.whole, made.earlier)
    story.play(runner, begin=9)
    runner.close(keep=True)
    other = Runner(spec(name="s_other", tenant="another"), made.other, policy=policy())
    story.play(other, end=6)
    assert other.compact(force=True)
    story.play(other, begin=6, end=12)
    other.close(keep=True)
    return made


KEPT_FILES: Final = ("session.json", "manifest", "journal", "snapshot")


def kept_file(folder: Path, name: str) -> Path:
    """The file of this kind in a folder."""
    (found,) = folder.glob(name if name in ("session.json", "manifest") else f"{name}-*")
    return found


def _swap(path: Path, originals: Originals) -> None:
    """Put the file of another session in the place of one, under its own name."""
    other = kept_file(originals.other, path.name.partition("-")[0])
    path.unlink()
    shutil.copy(other, path)


def _swap_named(path: Path, originals: Originals) -> None:
    """The same, under the name that the other session has for it."""
    other = kept_file(originals.other, path.name.partition("-")[0])
    path.unlink()
    shutil.copy(other, path.with_name(other.name))


def _restore_earlier(path: Path, originals: Originals) -> None:
    shutil.copy(originals.earlier / path.name, path)


def _replaced(make: Callable[[Path], object]) -> Callable[[Path, Originals], None]:
    def damage(path: Path, _: Originals) -> None:
        path.unlink()
        make(path)

    return damage


def _make_socket(path: Path) -> None:
    # The name of a socket is short: it is made elsewhere.
    with tempfile.TemporaryDirectory() as near, socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{near}/s")
        os.rename(f"{near}/s", path)


def _make_link(path: Path, originals: Originals) -> None:
    path.unlink()
    path.symlink_to(originals.whole / path.name)


FILE_DAMAGES: Final[dict[str, Callable[[Path, Originals], None]]] = {
    "deleted": lambda path, _: path.unlink(),
    "emptied": lambda path, _: os.truncate(path, 0),
    "a byte shorter": lambda path, _: os.truncate(path, path.stat().st_size - 1),
    "halved": lambda path, _: os.truncate(path, path.stat().st_size // 2),
    "another session's": _swap,
    "another session's, by its name": _swap_named,
    "an older copy": _restore_earlier,
    "a pipe": _replaced(os.mkfifo),
    "a directory": _replaced(Path.mkdir),
    "a socket": _replaced(_make_socket),
    "a link": _make_link,
    "a link to nothing": _replaced(lambda path: path.symlink_to("/nowhere")),
    "a device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "not readable": lambda path, _: path.chmod(0),
}
"""What can happen to a file, by what it is afterwards."""


def make_old(folder: Path) -> None:
    """Make of a folder what versions without manifests wrote."""
    encoded = msgspec.json.encode(read_spec(folder).spec)
    digest = hashlib.blake2b(b"empty\0" + encoded, digest_size=16).hexdigest()
    kept = {"digest": digest, "begins": "empty", "spec": msgspec.Raw(encoded)}
    (folder / "session.json").write_bytes(msgspec.json.encode(kept))
    (folder / "manifest").unlink()


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
