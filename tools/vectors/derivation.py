"""All groups together: deriving, checking, writing and freezing them."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

from gradwire.cli.conformance.vectors import MANIFEST

from . import conversations, envelopes, exchanges, natural, numbers, operations, problems, records, structures
from .store import Broken, Groups, broken, frozen_ids, manifest, merged, read, releases, same, same_words, write


def derived(stored: Groups) -> Groups:
    """What the code says now."""
    found: Groups = {
        "envelope": list(envelopes.vectors()),
        "values": list(numbers.vectors()),
        "structure_hash": list(structures.vectors()),
        "records": list(records.vectors(stored.get("records", []))),
        "http": list(exchanges.vectors()),
        "natural": list(natural.vectors()),
        "stream": list(conversations.vectors()),
        **operations.derived(stored),
    }
    found["errors"] = list(problems.vectors(chain.from_iterable(found.values())))
    return {name: json.loads(json.dumps(vectors)) for name, vectors in found.items()}


def stale(folder: Path) -> list[str]:
    """What is missing, superfluous or wrong in a folder, in words."""
    stored, frozen = read(folder), releases(folder)
    found = list(broken(stored, frozen))
    now, kept = derived(stored), frozen_ids(stored, frozen)
    for name, vectors in now.items():
        known = {vector["id"]: vector for vector in stored.get(name, [])}
        for vector in vectors:
            old = known.pop(vector["id"], None)
            if old is None:
                found.append(f"{vector['id']} is missing")
            elif not same(old, vector) or (vector["id"] not in kept and not same_words(old, vector)):
                found.append(f"{vector['id']} does not hold")
        found += [f"{name} is derived from nothing" for name in known]
    found += [f"the group {name} is derived from nothing" for name in stored if name not in now]
    path = folder / MANIFEST
    if not found and (not path.exists() or path.read_text("utf-8") != manifest(stored, frozen)):
        found.append(f"{MANIFEST} does not tell what is there")
    return found


def update(folder: Path) -> list[Path]:
    """Bring a folder up to date; returns the written files.

    Raises:
        Broken: when a frozen vector no longer holds, or is gone.
    """
    stored, frozen = read(folder), releases(folder)
    groups = merged(stored, derived(stored), frozen)
    gone = list(broken(groups, frozen))
    if gone:
        raise Broken("\n".join(gone))
    return write(folder, groups, frozen)


def frozen(folder: Path, release: str) -> None:
    """Freeze what a folder holds as the vectors of a release.

    Raises:
        Broken: when the release is frozen already.
    """
    stored, before = read(folder), releases(folder)
    if release in before:
        raise Broken(f"release {release} is frozen already")
    now = json.loads(manifest(stored, {}))["groups"]
    write(folder, stored, before | {release: now})
