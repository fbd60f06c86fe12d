"""Structures, their bytes and their hashes; and the hash function on other bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gradwire.cli.conformance.vectors import Vector
from gradwire_protocol import envelope
from gradwire_protocol.frames import Structure, structure_hash

STRUCTURES: Final[tuple[tuple[str, str, Structure], ...]] = (
    ("empty", "no records", Structure([])),
    ("record", "one record and a read", Structure([["full", [[2, 3], "float"]]], reads=[0])),
    ("heard", "nothing is read, but the client waits", Structure([["ones", [[]]]], heard=True)),
    ("drops", "a result that does not outlive the frame",
     Structure([["ones", [[4]]], ["neg", [0]], ["exp", [1]]], reads=[2], drops=[0, 1])),
    ("attributes", "attributes of every kind: list, text, null, bool, float, negative number",
     Structure([["zeros", [[300, 70000], "float64", None]], ["sum", [0, [-1], True]], ["cumsum", [1, -2]],
                ["gelu", [0, "tanh"]], ["dropout", [0, 0.5]]])),
    ("keeps", "names for results", Structure([["ones", [[1]]]], keeps={"w": 0, "größe": 0})),
    ("results", "a number of results in the record", Structure([["ones", [[6]]], ["split", [0, [1, 2, 3]], 3]],
        [1, 2, 3])),
    ("externals", "references to entries of external, beyond the small integers",
        Structure([["add", [-1, -33]], ["mul", [0, -129]]])),
    ("text", "letters beyond ASCII", Structure([["ones", [[1]]], ["set_name", [0, "größe ∇ 𝛁"]]])),
    ("long", "more records than a small list holds", Structure([["ones", [[1]]],
        *[["neg", [i]] for i in range(40)]], [40])),
    ("longest-text", "a text beyond 31 and one beyond 255 bytes",
     Structure([["by_name", ["n" * 32]], ["by_name", ["m" * 256]]])),
)  # fmt: skip

DIGESTS: Final = (0, 1, 3, 64, 127, 128, 129, 255, 256, 257, 1000)
"""Lengths around the block of 128 bytes."""


def vectors() -> Iterator[Vector]:
    """The group."""
    for name, text, structure in STRUCTURES:
        encoded = envelope.encode_part(structure)
        yield _facts(name, text, encoded, {"structure": msgspec.msgpack.decode(encoded)})
    for size in DIGESTS:
        yield _facts(f"digest/{size}", f"blake2b-128 of {size} bytes", bytes(i % 251 for i in range(size)), {})


def _facts(name: str, text: str, data: bytes, more: dict[str, Any]) -> Vector:
    found = {"id": f"structure_hash/{name}", "text": text} | more
    return found | {"bytes": data.hex(), "hash": structure_hash(data).hex()}
