"""The files of vectors: reading, merging with what was derived anew, writing, and freezing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from gradwire.cli.conformance.matching import near
from gradwire.cli.conformance.vectors import MANIFEST, Vector, names
from gradwire_protocol.frames import PROTOCOL_VERSION

FOLDER: Final = Path(__file__).parents[2] / "protocol" / "vectors" / f"v{PROTOCOL_VERSION}"

Groups = dict[str, list[Vector]]

WORDS: Final = ("text", "provoked_by")
"""What explains a vector: it may differ from a frozen one's."""


class Broken(Exception):
    """A frozen vector is missing or would change."""


def line(vector: Vector) -> str:
    """A vector as its line of the file."""
    return json.dumps(vector, ensure_ascii=False, allow_nan=False)


def text(group: str, vectors: list[Vector]) -> str:
    """A group as its file: one vector a line."""
    lines = ",\n".join(map(line, vectors))
    return f'{{"protocol": {PROTOCOL_VERSION}, "group": "{group}", "vectors": [\n{lines}\n]}}\n'


def read(folder: Path) -> Groups:
    """All groups that are stored."""
    if not folder.is_dir():
        return {}
    return {name: json.loads((folder / f"{name}.json").read_text("utf-8"))["vectors"] for name in names(folder)}


def summary(vectors: Iterable[Vector]) -> dict[str, Any]:
    """How many vectors there are, and the digest of their lines."""
    lines = [line(vector) for vector in vectors]
    return {"vectors": len(lines), "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def releases(folder: Path) -> dict[str, dict[str, Any]]:
    """Of each release, the summaries of its groups: a release has the first vectors of each file."""
    path = folder / MANIFEST
    found: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8"))["releases"] if path.exists() else {}
    return found


def manifest(groups: Groups, frozen: dict[str, dict[str, Any]]) -> str:
    """The manifest as a file."""
    facts = {
        "protocol": PROTOCOL_VERSION,
        "vectors": sum(map(len, groups.values())),
        "groups": {name: summary(vectors) for name, vectors in sorted(groups.items())},
        "releases": frozen,
    }
    return json.dumps(facts, indent=1) + "\n"


def broken(groups: Groups, frozen: dict[str, dict[str, Any]]) -> Iterator[str]:
    """What differs from the releases, in words."""
    for release, summaries in frozen.items():
        for name, wanted in summaries.items():
            if summary(groups.get(name, [])[: wanted["vectors"]]) != wanted:
                yield f"{name}.json no longer begins with the {wanted['vectors']} vectors of release {release}"


def merged(stored: Groups, derived: Groups, frozen: dict[str, dict[str, Any]]) -> Groups:
    """The stored vectors where they still hold, in their order, then the new ones.

    Raises:
        Broken: naming frozen vectors that the code now contradicts.
    """
    found: Groups = {}
    contradicted: list[str] = []
    for name in sorted({*stored, *derived}):
        kept = max((summaries.get(name, {}).get("vectors", 0) for summaries in frozen.values()), default=0)
        fresh = {vector["id"]: vector for vector in derived.get(name, [])}
        group: list[Vector] = []
        for at, vector in enumerate(stored.get(name, [])):
            new = fresh.pop(vector["id"], None)
            if new is not None and same(vector, new):
                words = {} if at < kept else {name: new[name] for name in WORDS if name in new}
                group.append(vector | words)
            elif at < kept:
                contradicted.append(vector["id"])
            elif new is not None:
                group.append(new)
        group += fresh.values()
        if group:
            found[name] = group
    if contradicted:
        raise Broken(f"frozen vectors no longer hold: {', '.join(contradicted[:20])}")
    return found


def frozen_ids(groups: Groups, frozen: dict[str, dict[str, Any]]) -> set[str]:
    """The vectors that some release has."""
    return {
        vector["id"]
        for summaries in frozen.values()
        for name, facts in summaries.items()
        for vector in groups.get(name, [])[: facts["vectors"]]
    }


def same_words(stored: Vector, derived: Vector) -> bool:
    """Whether two vectors are explained in the same words."""
    return all(stored.get(name) == derived.get(name) for name in WORDS)


def same(stored: Any, derived: Any, tolerance: tuple[float, float] = (0.0, 0.0)) -> bool:
    """Whether two vectors say the same: computed numbers may differ within the vector's tolerance, and the words."""
    if isinstance(stored, dict) and isinstance(derived, dict):
        if "rtol" in stored:
            tolerance = (stored["rtol"], stored.get("atol", 0.0))
        if stored.keys() != derived.keys():
            return False
        return all(same(stored[name], derived[name], tolerance) for name in stored if name not in WORDS)
    if isinstance(stored, list) and isinstance(derived, list):
        return len(stored) == len(derived) and all(map(lambda a, b: same(a, b, tolerance), stored, derived))
    if isinstance(stored, float) and isinstance(derived, int | float) and type(derived) is not bool:
        return near(stored, derived, *tolerance)
    return type(stored) is type(derived) and bool(stored == derived)


def write(folder: Path, groups: Groups, frozen: dict[str, dict[str, Any]]) -> list[Path]:
    """Write the files that differ, and remove those of groups that are gone; returns the written ones."""
    texts = {f"{name}.json": text(name, vectors) for name, vectors in groups.items()}
    texts[MANIFEST] = manifest(groups, frozen)
    for name in names(folder) if folder.is_dir() else []:
        if name not in groups:
            (folder / f"{name}.json").unlink()
    changed = []
    for name, content in texts.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
            changed.append(path)
    return changed
