"""What must hold in every state."""

from __future__ import annotations

from .state import ACKNOWLEDGES, DELETED, LEASE_TICKS, UP, State, replayed
from .storage import Bugs


def violation(state: State, bugs: Bugs = frozenset()) -> str:
    """What a state violates; empty when it is sound."""
    if state.broken:
        return state.broken
    able = [number for number, each in enumerate(state.owners)
            if each.life == UP and each.place in ACKNOWLEDGES and each.lease <= LEASE_TICKS]  # fmt: skip
    if len(able) > 1:
        return f"owners {able} can acknowledge at the same time"
    deleted = state.claims[-1] == DELETED or state.tombstone > 0
    if state.told_deleted:
        if not deleted:
            return "a deleted session exists again"
        return f"owner {able[0]} serves a deleted session" if able else ""
    newest = max(state.published, default=0)
    if state.tombstone and newest > state.tombstone:
        return f"a session that goes on in epoch {newest} counts as deleted by a deletion that was never acknowledged"
    if deleted:
        return ""
    found = replayed(state.files[newest - 1], bugs) if newest else None
    if found is None:
        return f"the newest published epoch, {newest}, cannot be recovered"
    records = found[1]
    if records != tuple(range(1, len(records) + 1)):
        return f"the surviving history is {list(records)}"
    if len(records) < state.acked:
        return f"frames up to {state.acked} were acknowledged, the surviving history is {list(records)}"
    return ""


def finished(state: State, frames: int) -> bool:
    """Whether all frames were acknowledged, or the session deleted."""
    return state.acked == frames or state.claims[-1] == DELETED or state.tombstone > 0


def hopeful(state: State) -> bool:
    """Whether a process is or will be there that can go on."""
    return any(each.life == UP and each.lease <= LEASE_TICKS for each in state.owners)
