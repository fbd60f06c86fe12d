"""The files of vectors: where they are and what is in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import gradwire_protocol
from gradwire_protocol.frames import PROTOCOL_VERSION

Vector = dict[str, Any]

MANIFEST: Final = "manifest.json"


def folder(version: int = PROTOCOL_VERSION) -> Path:
    """The folder with the vectors of a protocol version: inside the package where it is installed, beside it in a
    source tree."""
    package = Path(str(gradwire_protocol.__file__)).parent
    packaged = package / "vectors"
    return (packaged if packaged.is_dir() else package.parent / "vectors") / f"v{version}"


def names(where: Path) -> list[str]:
    """The groups in a folder, by the names of their files: ``envelope``, ``ops/pointwise``, ..."""
    found = (path.relative_to(where).with_suffix("").as_posix() for path in where.rglob("*.json"))
    return sorted(name for name in found if f"{name}.json" != MANIFEST)


def load(where: Path, group: str) -> list[Vector]:
    """The vectors of a group, in their order."""
    vectors: list[Vector] = json.loads((where / f"{group}.json").read_text("utf-8"))["vectors"]
    return vectors


def load_all(where: Path, only: str = "") -> Iterator[tuple[str, list[Vector]]]:
    """Each group with those of its vectors whose id contains ``only``; groups without any are left out."""
    for group in names(where):
        chosen = [vector for vector in load(where, group) if only in vector["id"]]
        if chosen:
            yield group, chosen
