"""What operations do on the shared storage. Each takes effect at once, at some time after it was sent."""

from __future__ import annotations

from typing import TypeVar

from .state import ABSENT, DELETED, DONE, REFUSED, Files, Operation, State

Bugs = frozenset[str]
T = TypeVar("T")


def take_effect(state: State, op: Operation, bugs: Bugs) -> tuple[State, int]:
    """The state after the operation, and whether it was done or refused."""
    if op.kind in ("claim", "claim deleted"):
        return _claim(state, op.epoch, op.owner if op.kind == "claim" else DELETED, bugs)
    if op.kind == "publish":
        return state._replace(published=_with(state.published, op.epoch)), DONE
    if op.kind == "release":
        return state._replace(released=_with(state.released, op.epoch)), DONE
    if op.kind == "tombstone":
        return state._replace(tombstone=max(state.tombstone, op.epoch)), DONE
    if op.kind == "remove epochs":
        kept = tuple(Files() if number < op.epoch else each for number, each in enumerate(state.files, 1))
        published = tuple(each for each in state.published if each >= op.epoch)
        claims = state.claims
        if "claims_removed" in bugs:
            claims = tuple(ABSENT if number < op.epoch else each for number, each in enumerate(claims, 1))
        return state._replace(files=kept, published=published, claims=claims), DONE
    if op.kind == "remove all":
        return state._replace(files=(Files(),) * len(state.files), published=()), DONE
    if state.claims[-1] == DELETED:
        return state, DONE  # nobody reads the files of a deleted session
    files = list(state.files)
    while len(files) < op.epoch:
        files.append(Files())
    files[op.epoch - 1] = _written(files[op.epoch - 1], op)
    return state._replace(files=tuple(files)), DONE


def _claim(state: State, epoch: int, owner: int, bugs: Bugs) -> tuple[State, int]:
    claims = state.claims
    if epoch == len(claims) + 1:
        if owner == DELETED:
            # Nobody reads its files any more; what happens to them is left out.
            return state._replace(claims=(*claims, owner), files=(), published=(), late=()), DONE
        return state._replace(claims=(*claims, owner)), DONE
    if claims[epoch - 1] == owner and "own_claim_unrecognised" not in bugs:
        return state, DONE  # the answer of an earlier attempt was lost
    if claims[epoch - 1] == ABSENT or "shared_claim" in bugs:
        return state._replace(claims=(*claims[: epoch - 1], owner, *claims[epoch:])), DONE
    return state, REFUSED


def _written(files: Files, op: Operation) -> Files:
    number = op.number
    match op.kind:
        case "manifest":
            return files._replace(manifest=number)
        case "snapshot":
            return files._replace(snapshots=_with(files.snapshots, (number, op.records)))
        case "begin":
            return files._replace(journals=_with(files.journals, number))
        case "segment":
            others = tuple(each for each in files.segments if each[:2] != (number, op.offset))
            return files._replace(segments=_with(others, (number, op.offset, op.records)))
        case "copy":
            snapshots = _with(files.snapshots, (number, op.records)) if number else files.snapshots
            return files._replace(manifest=number, snapshots=snapshots, journals=_with(files.journals, number))
        case "remove given up":
            return files._replace(
                snapshots=tuple(each for each in files.snapshots if each[0] != number),
                journals=tuple(each for each in files.journals if each != number),
            )
    assert op.kind == "remove replaced", op.kind
    return Files(
        files.manifest,
        tuple(each for each in files.snapshots if each[0] >= number),
        tuple(each for each in files.journals if each >= number),
        tuple(each for each in files.segments if each[0] >= number),
    )


def _with(items: tuple[T, ...], item: T) -> tuple[T, ...]:
    return items if item in items else tuple(sorted((*items, item)))  # type: ignore[type-var]
