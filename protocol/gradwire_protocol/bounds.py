"""The memory that a message will take when it is decoded, computed from its bytes before any object is made.

One byte can become a list of 64 bytes, so a message has a limit on its decoded size besides its length:
``max_decoded_bytes``.

- :func:`estimate` and :func:`estimate_json` are never too low, and as fast as counting bytes. They suffice for ordinary
  messages.
- :func:`check` measures MessagePack whose estimate is too high, exactly within a few bytes per object. It walks the
  bytes in a loop with an explicit stack, stops at the first excess value, and checks each list, map and text against
  the bounds of its field.

The bounds of fields are those of the schema in :mod:`.frames`. A field without one is a :class:`TypeError` at import of
this module (:func:`bounds_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import inspect

from .errors import LimitExceeded, MalformedFrame
from .frames import Message

SETTING: Final = "GRADWIRE_MAX_DECODED_BYTES"
MAX_DECODED_BYTES: Final = 64 << 20
"""The default: about a million objects. Decoding them blocks all other threads for less than 0.1 s."""

PIECE_BYTES: Final = 1 << 20

WALKED_BYTES: Final = 1024
"""Bytes between two pauses of a walk: about half a millisecond."""

TRUSTED_BYTES: Final = 8 << 20
"""Estimates up to this size are not measured: this much per message does no harm."""

SMALL_BYTES: Final = 512
"""Headers up to this length are not examined: a repeated training step has some 200 bytes."""
MOST_OF_A_BYTE: Final = 144
"""The most memory per byte. The worst case is a map with an empty list under an empty name, in three bytes: 64 + 240
for the map, 16 for the name, 16 + 64 for the list and 16 for the map's own slot are 416, or 139 per byte."""

# Object sizes on 64-bit machines, rounded up to the allocator's 16 bytes. tests/protocol/test_bounds.py compares them
# with the interpreter.
PLACE: Final = 16
"""An entry in the enclosing list: twice the pointer, because a table of ids is copied once."""
LIST: Final = 64
MAP: Final = 64
MAP_OF_SOME: Final = 240
"""The table of a map with up to five entries."""
MAP_ENTRY: Final = 56
"""Each entry of a larger table."""
NUMBER: Final = 32
TEXT: Final = 80
"""Text and bytes without their characters, which take 1 byte each in ASCII, else up to 4."""
OTHER: Final = 256
"""A MessagePack extension type, which the protocol does not use."""


@dataclass(frozen=True)
class Bound:
    """The bounds of one field of a message.

    Attributes:
        longest: entries of any list or map in it.
        deepest: nesting depth of lists and maps.
        text: bytes of any text in it.
    """

    longest: int = 0
    deepest: int = 0
    text: int = 0

    def __or__(self, other: Bound) -> Bound:
        return Bound(max(self.longest, other.longest), max(self.deepest, other.deepest), max(self.text, other.text))

    @property
    def inside(self) -> Bound:
        """The bound of a container of such values."""
        return Bound(self.longest, self.deepest + 1, self.text)


MAX_FIELDS: Final = 64
"""Fields of a map that encodes a message or a part of one. Unknown fields are skipped."""


def bounds_of(messages: Iterable[Any]) -> dict[str, Bound]:
    """The bounds of all fields of these messages, by name.

    Raises:
        TypeError: for a list, map, text or integer in their schema without a bound.
    """
    found: dict[str, Bound] = {}
    for message in messages:
        described = inspect.type_info(message)
        assert isinstance(described, inspect.StructType)
        for field in described.fields:
            bound = _bound(field.type, f"{message.__name__}.{field.name}")
            found[field.encode_name] = found.get(field.encode_name, Bound()) | bound
    return found


def _bound(kind: Any, where: str) -> Bound:
    if isinstance(kind, inspect.Metadata):
        extra = kind.extra or {}
        if isinstance(extra.get("bound"), tuple):
            return Bound(*extra["bound"])
        if "of" in extra:
            return _bound(inspect.type_info(extra["of"]), where)
        return _bound(kind.type, where)
    if isinstance(kind, inspect.UnionType):
        whole = Bound()
        for each in kind.types:
            whole |= _bound(each, where)
        return whole
    if isinstance(kind, inspect.BoolType | inspect.FloatType | inspect.NoneType):
        return Bound()
    if isinstance(kind, inspect.IntType):
        if kind.ge is None or kind.le is None:
            raise TypeError(f"{where}: an integer has no bound")
        return Bound()
    if isinstance(kind, inspect.StructType):
        whole = Bound(longest=MAX_FIELDS, text=MAX_FIELDS)  # its fields' names
        for field in kind.fields:
            whole |= _bound(field.type, f"{where}.{field.name}")
        return whole.inside
    if isinstance(kind, inspect.TupleType):
        whole = Bound(longest=len(kind.item_types))
        for each in kind.item_types:
            whole |= _bound(each, where)
        return whole.inside
    most = getattr(kind, "max_length", None)
    if most is None:
        raise TypeError(f"{where}: {type(kind).__name__} has no bound")
    if isinstance(kind, inspect.StrType | inspect.BytesType):
        return Bound(text=most)
    if isinstance(kind, inspect.ListType):
        return (Bound(longest=most) | _bound(kind.item_type, where)).inside
    if isinstance(kind, inspect.DictType):
        return (Bound(longest=most) | _bound(kind.key_type, where) | _bound(kind.value_type, where)).inside
    raise TypeError(f"{where}: {type(kind).__name__} is an unsupported kind of field")


BOUNDS: Final = bounds_of(Message.__args__)
"""By field name; the wider bound if several messages have a field of that name."""
_UNKNOWN: Final = Bound(longest=MAX_FIELDS, deepest=8, text=1 << 16)


# The estimates

_LISTS: Final = bytes([*range(0x90, 0xA0), 0xDC, 0xDD])
_MAPS: Final = bytes([*range(0x81, 0x90), 0xDE, 0xDF])
_OTHERS: Final = bytes([*range(0xC7, 0xCA), *range(0xD4, 0xD9)])
_OBJECTS: Final = bytes(
    [0x80, *range(0xA1, 0xC0), *range(0xC4, 0xC7), *range(0xCA, 0xD4), *range(0xD9, 0xDC), *range(0xE0, 0xFB)]
)
"""Empty maps, text, bytes, and numbers that the interpreter does not cache."""
_MAP_AT_MOST: Final = MAP + MAP_OF_SOME + 15 * MAP_ENTRY


def estimate(header: bytes | memoryview) -> int:
    """An upper bound of the memory of a MessagePack value's objects: each byte counts as the start of a value."""
    data = bytes(header)
    size = len(data)
    # Deleting a class of bytes counts it, in one pass in C.
    lists, maps, others, objects = [
        size - len(data.translate(None, each)) for each in (_LISTS, _MAPS, _OTHERS, _OBJECTS)
    ]
    return PLACE * size + LIST * lists + _MAP_AT_MOST * maps + OTHER * others + TEXT * objects


def estimate_json(text: bytes | str) -> int:
    """An upper bound of the memory of the objects of a JSON text, or of a piece of one.

    Each value but the first follows one of a few characters.
    """
    if isinstance(text, str):
        lists, maps, values = text.count("["), text.count("{"), text.count(",") + text.count(":")
    else:
        lists, maps, values = text.count(b"["), text.count(b"{"), text.count(b",") + text.count(b":")
    characters = len(text) if text.isascii() else 4 * len(text)
    return characters + LIST * lists + (MAP + MAP_OF_SOME) * maps + (TEXT + PLACE) * values


def check_json(text: bytes | str, most: int) -> int:
    """The estimate of a JSON text.

    Raises:
        LimitExceeded: if it is more than ``most``.
    """
    found = estimate_json(text)
    if found > most:
        raise too_much(most, found)
    return found


def check_embedded_json(text: bytes | memoryview, most: int) -> int:
    """The estimate of a JSON text whose strings are parsed as JSON too. Processes it in pieces and stops at the first
    excess.

    Raises:
        LimitExceeded: if it is more than ``most``.
    """
    found = 0
    for at in range(0, len(text), PIECE_BYTES):
        # An escape can hide any character of an inner text; one that is cut in two counts with the first part. A single
        # wide character widens its whole text.
        piece = bytes(text[at : at + PIECE_BYTES + 1])
        found += 3 * len(piece) + estimate_json(piece)
        found += (LIST + MAP + MAP_OF_SOME + TEXT + PLACE) * piece.count(b"\\u")
        if found > most:
            raise too_much(most, found)
    return found


def too_much(most: int, value: int) -> LimitExceeded:
    """The error of a message whose objects would take more than ``max_decoded_bytes``."""
    return LimitExceeded(
        f"the decoded values of the message need at least {value:,} bytes; the limit is {most:,} ({SETTING}); send "
        "large data as raw buffers",
        setting=SETTING, limit=most, value=value,
    )  # fmt: skip


# The measure


def check(header: bytes | memoryview, most: int, pause: Callable[[], None] | None = None) -> int:
    """About how many bytes the objects of a message's header take.

    Args:
        pause: called after each kilobyte of the walk.

    Raises:
        LimitExceeded: for more than ``most``, or a list, map or text that exceeds its field's bound.
        MalformedFrame: for invalid MessagePack, or nesting that exceeds the field's bound.
    """
    if len(header) <= SMALL_BYTES and len(header) * MOST_OF_A_BYTE <= most:
        return len(header) * MOST_OF_A_BYTE
    trusted = min(most, TRUSTED_BYTES)
    if len(header) * PLACE <= trusted and (found := estimate(header)) <= trusted:
        return found
    return _Measure(bytes(header), most, pause).message()


def number_of(header: bytes | memoryview) -> int:
    """The number of a frame that is too large to decode, so that it can be answered; 0 if other fields precede it."""
    walk = _Measure(bytes(header[:MOST_BEFORE_NUMBER]), MOST_BEFORE_NUMBER * MOST_OF_A_BYTE)
    try:
        for _ in range(walk.fields()):
            name, begin = walk.name(), walk.at
            walk.value(name, _PLAIN)
            if name == "seq":
                return max(int(msgspec.msgpack.decode(walk.data[begin : walk.at], type=int)), 0)
    except (MalformedFrame, LimitExceeded, msgspec.MsgspecError):
        pass
    return 0


MOST_BEFORE_NUMBER: Final = 256
_PLAIN: Final = Bound(text=64)

_FOLLOW: Final = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_LENGTHS: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS: Final = {0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}

_WIDTH: Final = [_FOLLOW.get(byte, -1 if 0x80 <= byte < 0xC0 or 0xC4 <= byte < 0xE0 else 0) for byte in range(256)]
"""By a value's first byte: how many bytes follow; -1 if the length must be read."""
_COST: Final = [PLACE + (NUMBER if byte in _FOLLOW or 0xE0 <= byte < 0xFB else 0) for byte in range(256)]


class _Measure:
    """A walk through one header.

    Attributes:
        at: the next byte.
        cost: the memory of all values so far.
    """

    def __init__(self, data: bytes, most: int, pause: Callable[[], None] | None = None) -> None:
        self.data = data
        self.most = most
        self.pause = pause
        self.at = 0
        self.cost = 0

    def message(self) -> int:
        """Walk a message, field by field."""
        fields = self.fields()
        if fields > MAX_FIELDS:
            raise MalformedFrame(f"the message has {fields:,} fields; the limit is {MAX_FIELDS}")
        for _ in range(fields):
            name = self.name()
            self.value(name, BOUNDS.get(name, _UNKNOWN))
        if self.at != len(self.data):
            raise MalformedFrame(f"the header has {len(self.data):,} bytes, but its message ends at {self.at:,}")
        return self.cost

    def fields(self) -> int:
        """Enter the message's map and return its number of fields."""
        first = self._number(1)
        if 0x80 <= first < 0x90:
            return first - 0x80
        if first in (0xDE, 0xDF):
            return self._number(2 if first == 0xDE else 4)
        raise MalformedFrame("the header is not a map")

    def name(self) -> str:
        """Skip a field's name and return it."""
        first = self._number(1)
        size = first - 0xA0 if 0xA0 <= first < 0xC0 else self._number(1) if first == 0xD9 else -1
        if not 0 <= size <= len(self.data) - self.at:
            raise MalformedFrame(f"missing field name at byte {self.at}")
        self.at += size
        return self.data[self.at - size : self.at].decode(errors="replace")

    def _number(self, width: int) -> int:
        at = self.at
        self.at = at + width
        if self.at > len(self.data):
            raise MalformedFrame("the header is truncated")
        return int.from_bytes(self.data[at : self.at], "big")

    def value(self, name: str, bound: Bound) -> None:
        """Walk one value in a loop, with an explicit stack for its nesting."""
        data, most, size = self.data, self.most, len(self.data)
        at, cost = self.at, self.cost
        width_of, cost_of, deepest = _WIDTH, _COST, bound.deepest
        outer: list[int] = []
        left = 1
        stop = size if self.pause is None else min(at + WALKED_BYTES, size)
        while True:
            while not left:
                if not outer:
                    self.at, self.cost = at, cost
                    return
                left = outer.pop()
            left -= 1
            if at >= stop:
                if at >= size:
                    raise MalformedFrame("the header is truncated")
                assert self.pause is not None  # else stop would equal size
                self.pause()
                stop = min(at + WALKED_BYTES, size)
            first = data[at]
            width = width_of[first]
            cost += cost_of[first]
            if width >= 0:
                at += 1 + width
            elif 0x90 <= first < 0xA0:
                at += 1
                cost += LIST
                if first > 0x90:
                    outer.append(left)
                    left = first & 0x0F
            elif 0xA0 < first < 0xC0:
                at += 1
                length = first & 0x1F
                cost += TEXT if data[at : at + length].isascii() else TEXT + 4 * length
                at += length
            else:
                self.at, self.cost = at, cost
                entries = self._open(name, bound)
                at, cost = self.at, self.cost
                if entries:
                    outer.append(left)
                    left = entries
            if len(outer) > deepest:
                raise MalformedFrame(f"{name} is nested too deeply; the limit is {deepest} lists and maps")
            if cost > most:
                raise too_much(most, cost)

    def _open(self, name: str, bound: Bound) -> int:
        """Skip the head of a list or map, or a whole text, and return the number of contained values."""
        first = self._number(1)
        if first < 0xA0 or first >= 0xDC:
            small = first < 0xA0
            entries = first & 0x0F if small else self._number(4 if first & 1 else 2)
            if entries > bound.longest or entries > len(self.data) - self.at:
                raise LimitExceeded(
                    f"{name} has a list or map of {entries:,} entries; the limit is {bound.longest:,}",
                    field=name, limit=bound.longest, value=entries,
                )  # fmt: skip
            is_map = first < 0x90 or first >= 0xDE
            self.cost += self._map(entries) if is_map else LIST
            if self.cost + entries * PLACE > self.most:
                raise too_much(self.most, self.cost + entries * PLACE)
            return 2 * entries if is_map else entries
        if first in _FIXED_EXTENSIONS:
            self._pass(_FIXED_EXTENSIONS[first], OTHER, 0)
        elif first in _EXTENSIONS:
            self._pass(self._number(_EXTENSIONS[first]) + 1, OTHER, 1)
        else:
            length = first - 0xA0 if first < 0xC0 else self._number(_LENGTHS[first])
            if length > bound.text:
                raise LimitExceeded(
                    f"{name} has a text of {length:,} bytes; the limit is {bound.text:,}",
                    field=name, limit=bound.text, value=length,
                )  # fmt: skip
            text = self.data[self.at : self.at + length]
            self._pass(length, TEXT if length else 0, 1 if text.isascii() else 4)
        return 0

    def _map(self, entries: int) -> int:
        return MAP + (MAP_OF_SOME if entries else 0) + max(entries - 5, 0) * MAP_ENTRY

    def _pass(self, length: int, cost: int, each: int) -> None:
        self.at += length
        if self.at > len(self.data):
            raise MalformedFrame("the header is truncated")
        self.cost += cost + each * length
