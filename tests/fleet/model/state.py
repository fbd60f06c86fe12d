"""The states: what is on the storage, what each owner knows, what the client was told."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

FRAMES: Final = 3
LEASE_TICKS: Final = 1
"""The most ticks after which a lease may still be valid."""
WAIT_TICKS: Final = 2
"""The fewest ticks that a contender waits. More than LEASE_TICKS: that is the margin for the clocks' rates."""
OLD: Final = 2
"""An age of this many ticks or more. Ages are not counted further."""

UP, DEAD = range(2)
NO_OP, SENT, DONE, REFUSED = range(4)
"""A storage operation: none; sent; it took effect; it took effect and refused (a create of an existing key)."""

DELETED: Final = 98
"""In place of an owner in a claim: the session is deleted. A claim that never ends."""
ABSENT: Final = 99
"""A claim that was removed (only a planted bug does that). (Python gives -1 and -2 the same hash.)"""

# Where an owner is in the protocol.
IDLE: Final = "idle"
CLAIM: Final = "claim"
LOAD: Final = "load"
COPY: Final = "copy"
COPY_JOURNAL: Final = "copy journal"
PUBLISH: Final = "publish"
SERVE: Final = "serve"
WRITE: Final = "write"
REPLY: Final = "reply"
SNAPSHOT: Final = "snapshot"
BEGIN: Final = "begin"
MANIFEST: Final = "manifest"
GIVE_UP: Final = "give up"
RELEASE: Final = "release"
DELETE: Final = "delete"

ACKNOWLEDGES: Final = frozenset({SERVE, WRITE, REPLY, SNAPSHOT, BEGIN, MANIFEST, GIVE_UP})
"""The places in which an owner acknowledges frames, now or after its next check."""

Records = tuple[int, ...]


class Files(NamedTuple):
    """The files of one epoch.

    Attributes:
        manifest: the number of records before the current journal, as the last write says; -1 without one.
        snapshots: by the number of records, their content.
        journals: those that were begun, by the number of records before them.
        segments: of journals: (records before the journal, offset in it, records).
    """

    manifest: int = -1
    snapshots: tuple[tuple[int, Records], ...] = ()
    journals: tuple[int, ...] = ()
    segments: tuple[tuple[int, int, Records], ...] = ()


class Operation(NamedTuple):
    """An operation on the storage. ``number``: records before the journal, or the epoch to keep."""

    kind: str
    epoch: int
    owner: int = DELETED
    number: int = 0
    offset: int = 0
    records: Records = ()


class Watch(NamedTuple):
    """A contender watches the lease of an owner.

    Attributes:
        since: ticks since the counter was first seen.
        changed: whether the owner's counter was written since.
        stage: of a read that is under way, for planted bugs that read clocks at the wrong time.
    """

    target: int
    since: int = 0
    changed: bool = False
    stage: int = 0


class Owner(NamedTuple):
    """A worker process.

    Attributes:
        lease: ticks since the time noted for the last lease.
        renewal: ticks since the time noted for the renewal under way; -1 without one.
        renewed: whether this renewal took effect.
        epoch: of its claim, or of the claim that it tries to get.
        place: where it is in the protocol.
        op: how far the current storage operation is.
        memory: the records that it applied.
        base: the number of records before its current journal; while it takes over, what the manifest says.
        barred: the number of records after which it gave a snapshot up; it takes none there any more.
        source: the epoch that it takes over, or the records of the operation under way.
        outdated: whether it has yet to delete older epochs.
    """

    life: int = UP
    lease: int = 0
    renewal: int = -1
    renewed: bool = False
    watch: Watch | None = None
    epoch: int = 0
    place: str = IDLE
    op: int = NO_OP
    memory: Records = ()
    base: int = 0
    barred: int = 0
    source: int = 0
    outdated: bool = False


FRESH: Final = Owner()
"""A process that has done nothing yet. (Its lease counts from its first claim on.)"""

DEAD_OWNER: Final = Owner(life=DEAD, lease=OLD)


class State(NamedTuple):
    """One state.

    Attributes:
        acked: how many frames were acknowledged to the client.
        told_deleted: whether a deletion was acknowledged.
        claims: the owner of each epoch.
        released: the epochs that were released.
        ended: the owners that have ended by the storage's word.
        published: the published epochs.
        files: of each epoch.
        tombstone: the epoch of a tombstone beside the claims; 0 without one (only a planted bug writes one).
        late: operations under way whose process does not wait for them any more.
        retries, releases, rotations: how often something of this kind may still happen.
        broken: what the last action violated by itself.
    """

    acked: int
    told_deleted: bool
    claims: tuple[int, ...]
    released: tuple[int, ...]
    ended: tuple[int, ...]
    published: tuple[int, ...]
    files: tuple[Files, ...]
    tombstone: int
    late: tuple[Operation, ...]
    retries: int
    releases: int
    rotations: int
    owners: tuple[Owner, ...]
    broken: str = ""


class Bounds(NamedTuple):
    """What an exploration is limited to.

    Attributes:
        owners: how many processes there are, one after another or beside each other.
        late: how many operations without a waiting process there are at a time.
        retries: how many operations are sent again without an answer; 0 on a file system.
        lost_owner_writes: whether an operation may take effect after its process has ended (an object store).
        frames: how many frames the client sends.
        releases, rotations: how often a session is handed over, or a snapshot replaces a journal.
        deletion: whether it may be deleted.
        crashes, clocks: whether processes crash and time passes; without them, only a planted bug is found sooner.
    """

    owners: int = 3
    late: int = 1
    retries: int = 1
    late_after_end: bool = True
    frames: int = FRAMES
    releases: int = 1
    deletion: bool = True
    crashes: bool = True
    clocks: bool = True
    rotations: int = 1


def initial(bounds: Bounds) -> State:
    """The first owner serves an empty session in epoch 1; the others have not started."""
    first = Owner(life=UP, epoch=1, place=SERVE)
    return State(
        0, False, (0,), (), (), (1,), (Files(manifest=0, journals=(0,)),), 0, (), bounds.retries, bounds.releases,
        bounds.rotations, (first, *(FRESH for _ in range(bounds.owners - 1))),
    )  # fmt: skip


@lru_cache(100_000)
def replayed(files: Files, bugs: frozenset[str] = frozenset()) -> tuple[int, Records] | None:
    """What recovery makes of an epoch's files: where it starts, and the records; ``None`` when it must refuse.

    durable/recovery.py: the newest snapshot that is complete counts, whatever the manifest says, which may be older or
    newer. It has a journal of its own, or is the last record, and its own journal has not begun yet. One that was given
    up is followed by records in the journal before it. The manifest may name a journal that was given up.
    """
    if files.manifest < 0:
        return None
    reached = max(files.manifest, *(number for number, _ in files.snapshots), *files.journals, 0)
    if "start_from_manifest" in bugs:
        return _from(files, files.manifest, dict(files.snapshots).get(files.manifest, ()), reached)
    for number, content in reversed(files.snapshots):
        before = max((base for base in files.journals if base < number), default=-1)
        if number not in files.journals and "late_snapshot_counts" not in bugs:
            last = before + len(_journal(files, before) or ()) if before >= 0 else -1
            if last > number:
                continue
            known = files.manifest in files.journals or (last == number and "manifest_names_a_journal" not in bugs)
            if number < reached or files.manifest >= number or not known:
                return None
        return _from(files, number, content, reached)
    return _from(files, 0, (), reached) if 0 in files.journals else None


def _from(files: Files, start: int, records: Records, reached: int) -> tuple[int, Records] | None:
    """The replay of all journals from a snapshot on."""
    if len(records) < start:
        return None
    at = start
    while at in files.journals:
        more = _journal(files, at)
        if more is None:
            return None
        records += more
        at += len(more)
        if not more:
            break
    return None if at < reached else (start, records)


def _journal(files: Files, base: int) -> Records | None:
    """The records of a journal; ``None`` when one before others is missing."""
    records: Records = ()
    for number, offset, more in files.segments:
        if number == base:
            if offset != len(records):
                return None
            records += more
    return records
