"""The structures of frames that a session knows by their hashes, so that they need not be sent again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

import msgspec

from gradwire_protocol.bounds import estimate, estimate_json
from gradwire_protocol.errors import LimitExceeded, MalformedFrame, UnknownStructure
from gradwire_protocol.frames import Frame, Structure, structure_hash

from .lifetimes import Frees, last_uses
from .memory import Limits

STRUCTURES_KEPT: Final = 256
STRUCTURE_BYTES_KEPT: Final = 160 << 20
"""Decoded, by an estimate that is never too low."""

_from_msgpack = msgspec.msgpack.Decoder(Structure)
_from_json = msgspec.json.Decoder(Structure)


class Known(NamedTuple):
    """A structure that can be named by its hash: decoded, planned, and as it came.

    Attributes:
        nbytes: at least what it takes in memory.
    """

    structure: Structure
    frees: Frees
    encoded: bytes
    human: bool
    nbytes: int


def decoded_bytes(encoded: bytes, human: bool) -> int:
    """At least what a structure takes in memory, decoded and as it came."""
    return len(encoded) + (estimate_json if human else estimate)(encoded)


class Structures(OrderedDict[bytes, Known]):
    """By hash; the one that would be forgotten first comes first."""

    def find(self, frame: Frame, human: bool, limits: Limits) -> Known:
        """The structure that a frame brings or names, checked; it is not remembered yet.

        Raises:
            UnknownStructure: for a hash that is not held here.
            MalformedFrame, LimitExceeded: for what cannot be a structure.
        """
        encoded = bytes(frame.structure)
        if not encoded:
            if not frame.hash:
                raise MalformedFrame("the frame has neither a structure nor the hash of one")
            known = self.get(frame.hash)
            if known is None:
                raise UnknownStructure("the structure of this hash is not held here (any more): send it whole")
            return known
        try:
            structure = (_from_json if human else _from_msgpack).decode(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedFrame(f"the structure cannot be read: {error}") from None
        if len(structure.ops) > limits.max_ops_per_frame:
            raise LimitExceeded(
                f"the frame has {len(structure.ops):,} ops, {limits.max_ops_per_frame:,} are allowed "
                "(GRADWIRE_MAX_OPS_PER_FRAME)",
                setting="GRADWIRE_MAX_OPS_PER_FRAME", limit=limits.max_ops_per_frame, value=len(structure.ops),
            )  # fmt: skip
        announced = [record[2] for record in structure.ops if len(record) > 2]
        if any(type(n) is not int for n in announced):
            raise MalformedFrame("a record announces a number of results that is not an int")
        if announced and (min(announced) < 0 or sum(announced) > limits.max_tensors):
            # Before a record fails and its results are filled in: their number is the client's word.
            raise MalformedFrame(f"the records announce from {min(announced)} to {max(announced)} results each")
        if frame.hash and structure_hash(encoded) != frame.hash:
            raise MalformedFrame("the hash does not belong to the structure")
        return Known(structure, last_uses(structure), encoded, human, decoded_bytes(encoded, human))

    def remember(self, digest: bytes, known: Known) -> None:
        """Hold a structure under its hash, and forget those that were not used for longest."""
        if self.get(digest) is known:  # as of every frame that repeats
            self.move_to_end(digest)
        elif digest:
            self[digest] = known
            self.move_to_end(digest)
            held = sum(each.nbytes for each in self.values())
            while len(self) > STRUCTURES_KEPT or (held > STRUCTURE_BYTES_KEPT and len(self) > 1):
                held -= self.popitem(last=False)[1].nbytes
