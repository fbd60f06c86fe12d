"""The claims on a session: each owner's right to it has a number, the epoch."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from .ownership import Observer, OwnerLease
from .storage import Storage

SESSIONS: Final = "sessions/"
DIGITS: Final = 10

DELETED: Final = "deleted:"
"""What the claim of a deletion begins with, in the place of an owner; the session's tenant follows."""


class Claim(NamedTuple):
    """A claim: who has it since which epoch. Epoch 0: nobody ever."""

    epoch: int
    owner: str

    @property
    def tenant(self) -> str | None:
        """The tenant of a session that was deleted by this claim; ``None`` if it was not."""
        return self.owner.removeprefix(DELETED) if self.owner.startswith(DELETED) else None


class ClaimHeld(Exception):
    """Another owner has the session. ``held``: its claim; without an owner if a concurrent contender was faster."""

    def __init__(self, held: Claim) -> None:
        super().__init__(held)
        self.held = held


def numbered(session_id: str, kind: str, epoch: int) -> str:
    """The key of one epoch's claim, release or publication."""
    return f"{SESSIONS}{session_id}/{kind}/{epoch:0{DIGITS}d}"


def placement_key(session_id: str) -> str:
    """The key of what a session asked of its machine. It goes with the session."""
    return f"{SESSIONS}{session_id}/placement"


def epochs_of(storage: Storage, session_id: str, kind: str) -> list[int]:
    """The epochs that have a key of this kind, ascending."""
    return [int(name) for name in storage.children(f"{SESSIONS}{session_id}/{kind}/") if name.isdecimal()]


def newest_claim(storage: Storage, session_id: str) -> Claim:
    """The newest claim on a session."""
    while True:
        epochs = epochs_of(storage, session_id, "claims")
        if not epochs:
            return Claim(0, "")
        owner = storage.get(numbered(session_id, "claims", epochs[-1]))
        if owner is not None:
            return Claim(epochs[-1], owner.decode())
        # A newer claim has superseded it meanwhile.


def is_free(storage: Storage, session_id: str, claim: Claim, observer: Observer) -> bool:
    """Whether a claim has ended: it was released, or its owner has ended. That of a deletion never ends."""
    if claim.tenant is not None:
        return False
    if not claim.epoch or storage.get(numbered(session_id, "released", claim.epoch)) is not None:
        return True
    return observer.ended(claim.owner)


def claim(storage: Storage, session_id: str, lease: OwnerLease, observer: Observer) -> int:
    """Claim a session. Returns the epoch.

    Raises:
        ClaimHeld: when an owner has it, or it was deleted.
        OwnershipLost: when this owner's lease has ended.
        OSError: when the storage is unreachable.
    """
    held = newest_claim(storage, session_id)
    if not is_free(storage, session_id, held, observer):
        raise ClaimHeld(held)
    lease.check()
    epoch = held.epoch + 1
    if not storage.create(numbered(session_id, "claims", epoch), lease.owner.encode()):
        raise ClaimHeld(Claim(epoch, ""))
    # The newest claim is never removed. So if another contender got further since the first look, it is seen here, even
    # if it has removed the claim whose place this one took.
    if newest_claim(storage, session_id) != (epoch, lease.owner):
        raise ClaimHeld(Claim(epoch, ""))
    lease.check()
    for kind in ("claims", "released"):
        older = [numbered(session_id, kind, each) for each in epochs_of(storage, session_id, kind) if each < epoch]
        storage.delete(*older)
    return epoch


def claim_for_nobody(storage: Storage, session_id: str, epoch: int, tenant: str) -> None:
    """Delete a session: its next claim, after the own one, is nobody's. No owner can be between the two.

    Raises:
        ClaimHeld: when another owner has the session meanwhile.
        OSError: when the storage is unreachable. The session may be deleted then, or later.
    """
    storage.create(numbered(session_id, "claims", epoch + 1), f"{DELETED}{tenant}".encode())
    # An earlier attempt, whose answer was lost, may have created it. And another owner may have come, and removed the
    # claim whose place this one took.
    held = newest_claim(storage, session_id)
    if held.epoch != epoch + 1 or held.tenant is None:
        raise ClaimHeld(held)


def release(storage: Storage, session_id: str, epoch: int) -> None:
    """Release a claim. Its owner writes nothing of this epoch after that.

    Raises:
        OSError: when the storage is unreachable.
    """
    storage.create(numbered(session_id, "released", epoch), str(time.time()).encode())
