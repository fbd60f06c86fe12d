"""Bugs that can be planted in the model; each must be found. The bounds are the smallest ones that suffice."""

from __future__ import annotations

from typing import Final, NamedTuple

from .state import Bounds

SMALL: Final = Bounds(owners=2, late=0, retries=0, frames=1, releases=0, deletion=False, rotations=0)
HANDED_OVER: Final = SMALL._replace(releases=1)


class Planted(NamedTuple):
    """A bug, and the bounds within which it is looked for."""

    text: str
    bounds: Bounds = SMALL


PLANTED: Final[dict[str, Planted]] = {
    "unchecked_reply": Planted("no check of the lease between the write and the reply"),
    "lease_from_answer": Planted("a lease counts from the answer of its write instead of from before it"),
    "no_margin": Planted("a contender waits as long as a lease, without the margin for the clocks' rates"),
    "renewal_after_lapse": Planted("a renewal is accepted after the lease has lapsed"),
    "shared_claim": Planted(
        "a claim is not exclusive: the last writer has it", HANDED_OVER._replace(frames=0, crashes=False, clocks=False)
    ),
    "unchecked_removal": Planted(
        "files that a snapshot replaces are removed without a check of the lease, and a takeover that misses a file of "
        "its list does not begin anew (each alone does no harm)",
        SMALL._replace(late=1, rotations=1),
    ),
    "unchecked_epochs": Planted(
        "older epochs are removed after the publication without a check of the lease",
        HANDED_OVER._replace(late=1, crashes=False),
    ),
    "early_publication": Planted("an epoch is published before its copy is complete"),
    "unpublished_source": Planted(
        "a takeover copies the newest epoch, published or not", HANDED_OVER._replace(clocks=False)
    ),
    "clock_after_last_read": Planted(
        "the wait ends at a time noted after the last read of the counter instead of before it"
    ),
    "clock_before_first_read": Planted(
        "the wait begins at a time noted before the first read of the counter instead of after it"
    ),
    "longer_retry": Planted(
        "a write without an answer is sent again under the same key with more records",
        SMALL._replace(owners=1, late=1, retries=1, frames=2),
    ),
    "start_from_manifest": Planted(
        "a recovery starts from what the manifest names, which a late write may bring back",
        SMALL._replace(owners=1, late=1, retries=1, frames=2, rotations=2),
    ),
    "late_snapshot_counts": Planted(
        "the newest snapshot counts, also one that was given up and took effect later",
        SMALL._replace(owners=1, late=1, retries=1, frames=2, rotations=1),
    ),
    "manifest_names_a_journal": Planted(
        "a recovery misses the journal that the manifest names, although it was given up",
        SMALL._replace(owners=1, late=1, retries=1, frames=2, rotations=2),
    ),
    "given_up_and_again": Planted(
        "a snapshot that was given up is taken again after the same record, so a late removal meets the same keys",
        SMALL._replace(owners=1, late=1, retries=2, frames=2, rotations=2),
    ),
    "claims_removed": Planted(
        "claims of older epochs are removed, and a contender does not look again after its claim",
        SMALL._replace(frames=0, releases=2, late=1, crashes=False, clocks=False),
    ),
    "tombstone_beside_claims": Planted(
        "a deletion writes a tombstone of its own instead of the next claim", SMALL._replace(late=1, deletion=True)
    ),
    "word_of_a_node": Planted("an owner counts as ended when its node cannot be reached"),
    "resent_is_new": Planted("a successor does not recognise a frame that its predecessor applied"),
    "own_claim_unrecognised": Planted(
        "a claim whose answer was lost is taken for somebody else's (nobody goes on)", SMALL._replace(retries=1, late=1)
    ),
    "kept_claim": Planted("a takeover that fails keeps its claim (nobody goes on)"),
}
LIVENESS: Final = frozenset({"own_claim_unrecognised", "kept_claim"})
"""These lose nothing, but the client waits for ever."""
