"""The structures of frames that a session keeps by hash, so that clients need not resend them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from gradwire_protocol.bounds import estimate, estimate_json
from gradwire_protocol.errors import LimitExceeded, MalformedFrame, UnknownStructure
from gradwire_protocol.frames import Frame, Structure, structure_hash

from ..runtime.memory import Limits
from .liveness import Frees, last_uses

STRUCTURES_KEPT: Final = 256
LINE_BYTES: Final = 80
STRUCTURE_BYTES_KEPT: Final = 160 << 20
"""The limit for the estimated decoded size of all structures."""

_from_msgpack = msgspec.msgpack.Decoder(Structure)
_from_json = msgspec.json.Decoder(Structure)


class Known(NamedTuple):
    """A structure, decoded and encoded.

    Attributes:
        nbytes: an upper bound of its memory.
        lines: where the client called each record, if it said so.
    """

    structure: Structure
    frees: Frees
    encoded: bytes
    human: bool
    nbytes: int
    lines: tuple[str, ...] = ()


def decoded_bytes(encoded: bytes, human: bool) -> int:
    """An upper bound of a structure's memory, decoded and encoded."""
    return len(encoded) + (estimate_json if human else estimate)(encoded)


def bytes_of_lines(lines: Sequence[str]) -> int:
    """An upper bound of the memory of a structure's lines, which are file names as a rule."""
    return sum([LINE_BYTES + 4 * len(line) for line in lines])


class Structures(OrderedDict[bytes, Known]):
    """Structures by hash, least recently used first."""

    def find(self, frame: Frame, human: bool, limits: Limits) -> Known:
        """The validated structure that a frame contains or names by hash. Does not store it.

        Raises:
            UnknownStructure: for an unknown hash.
            MalformedFrame, LimitExceeded: for an invalid structure.
        """
        encoded = bytes(frame.structure)
        if not encoded:
            if not frame.hash:
                raise MalformedFrame("the frame has neither a structure nor the hash of one")
            known = self.get(frame.hash)
            if known is None:
                raise UnknownStructure(
                    "the server does not hold the structure with this hash; send the whole structure"
                )
            return known
        try:
            structure = (_from_json if human else _from_msgpack).decode(encoded)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedFrame(f"invalid structure: {error}") from None
        if len(structure.ops) > limits.max_ops_per_frame:
            raise LimitExceeded(
                f"the frame has {len(structure.ops):,} ops; the limit is {limits.max_ops_per_frame:,} "
                "(GRADWIRE_MAX_OPS_PER_FRAME)",
                setting="GRADWIRE_MAX_OPS_PER_FRAME", limit=limits.max_ops_per_frame, value=len(structure.ops),
            )  # fmt: skip
        announced = [record[2] for record in structure.ops if len(record) > 2]
        if announced and any(type(n) is not int for n in announced):
            raise MalformedFrame("the number of results in a record must be an int")
        if announced and (min(announced) < 0 or sum(announced) > limits.max_tensors):
            # Check this before a record fails, because its results are then filled in by the client's number.
            raise MalformedFrame(
                f"the numbers of results in records are from {min(announced)} to {max(announced)}, which is out of "
                "range"
            )
        if frame.hash and structure_hash(encoded) != frame.hash:
            raise MalformedFrame("the hash does not match the structure")
        lines = tuple(frame.lines)
        nbytes = decoded_bytes(encoded, human) + bytes_of_lines(lines)
        return Known(structure, last_uses(structure), encoded, human, nbytes, lines)

    def remember(self, digest: bytes, known: Known) -> None:
        """Store a structure by its hash, and evict the least recently used ones."""
        if self.get(digest) is known:  # the common case: a repeated frame
            self.move_to_end(digest)
        elif digest:
            self[digest] = known
            self.move_to_end(digest)
            held = sum(each.nbytes for each in self.values())
            while len(self) > STRUCTURES_KEPT or (held > STRUCTURE_BYTES_KEPT and len(self) > 1):
                held -= self.popitem(last=False)[1].nbytes
