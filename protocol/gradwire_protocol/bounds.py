"""How much a message may make of its bytes: found out on the bytes, before any object is made of them.

A byte can become a list of 64 bytes, so what a message
may take is a bound of its own beside its length: ``max_decoded_bytes``. There are three ways to know it:

- :func:`estimate` and :func:`estimate_json`: never too low, and as fast as counting bytes, since that is what they do.
  For ordinary messages this is all that is done.
- :func:`measured`: exact within a few bytes an object, for MessagePack whose estimate is too high. It walks the bytes
  in a loop and keeps a stack of its own, stops at the first value that is too much, and holds each list, map and text
  to the bounds of its field.

The bounds of the fields are those of the schema in :mod:`.frames`. A field without one is a :class:`TypeError` when
this module is imported (:func:`bounds_of`).
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
"""The default: about a million objects, which take the decoder less than 0.1 s, in which no other thread runs."""

PIECE_BYTES: Final = 1 << 20

TRUSTED_BYTES: Final = 8 << 20
"""What an estimate need not be checked for: so much for each message does no harm."""

SMALL_BYTES: Final = 512
"""A header up to this length is not looked at: the step of a training loop that repeats has some 200 bytes."""
WALKED_BYTES: Final = 1024
"""Between two pauses: half a millisecond."""

MOST_OF_A_BYTE: Final = 144
"""No byte becomes more. Most becomes of a map with an empty list under an empty name, of three bytes: 64 + 240 for the
map, 16 for the name, 16 + 64 for the list and 16 for the map's own place are 416, 139 for each."""

# What an object takes, on 64 bits, rounded up to the allocator's 16 bytes. tests/protocol/test_bounds.py holds the
# interpreter against these.
PLACE: Final = 16
"""In the list around it: twice the pointer, since a table of ids is copied once."""
LIST: Final = 64
MAP: Final = 64
MAP_OF_SOME: Final = 240
"""A map's table beside the map, of up to five entries."""
MAP_ENTRY: Final = 56
"""Of a larger table, for each entry."""
NUMBER: Final = 32
TEXT: Final = 80
"""Text and bytes, beside their characters: 1 byte each in ASCII, else up to 4."""
OTHER: Final = 256
"""An extension type of MessagePack, which nothing here uses."""


@dataclass(frozen=True)
class Bound:
    """What one field of a message may hold.

    Attributes:
        longest: entries of any list or map in it.
        deepest: lists and maps inside one another.
        text: bytes of any text in it.
    """

    longest: int = 0
    deepest: int = 0
    text: int = 0

    def __or__(self, other: Bound) -> Bound:
        return Bound(
            max(self.longest, other.longest), max(self.deepest, other.deepest), max(self.text, other.text)
        )  # fmt: skip

    @property
    def inside(self) -> Bound:
        """The bound of what holds values like this."""
        return Bound(self.longest, self.deepest + 1, self.text)


MAX_FIELDS: Final = 64
"""Of a map that stands for a message or a part of one. Those that are not known are passed over."""


def bounds_of(messages: Iterable[Any]) -> dict[str, Bound]:
    """The bounds of all fields of these messages, by name.

    Raises:
        TypeError: for a list, map, text or integer in their schema that has no bound.
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
        whole = Bound(longest=MAX_FIELDS, text=MAX_FIELDS)  # of its fields' names
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
    raise TypeError(f"{where}: {type(kind).__name__} is a kind of field whose bound is not known")


BOUNDS: Final = bounds_of(Message.__args__)
"""By the name of the field: of those with the same name in several messages, the wider bound."""
_UNKNOWN: Final = Bound(longest=MAX_FIELDS, deepest=8, text=1 << 16)


# The estimates

_LISTS: Final = bytes([*range(0x90, 0xA0), 0xDC, 0xDD])
_MAPS: Final = bytes([*range(0x81, 0x90), 0xDE, 0xDF])
_OTHERS: Final = bytes([*range(0xC7, 0xCA), *range(0xD4, 0xD9)])
_OBJECTS: Final = bytes(
    [0x80, *range(0xA1, 0xC0), *range(0xC4, 0xC7), *range(0xCA, 0xD4), *range(0xD9, 0xDC), *range(0xE0, 0xFB)]
)
"""Empty maps, text, bytes, and the numbers that the interpreter does not keep one object for."""
_MAP_AT_MOST: Final = MAP + MAP_OF_SOME + 15 * MAP_ENTRY


def estimate(header: bytes | memoryview) -> int:
    """At least as many bytes as the objects of a MessagePack value take: each byte counts as if a value began there."""
    data = bytes(header)
    size = len(data)
    # What is left when bytes are deleted: one pass in C for each class of them.
    lists, maps, others, objects = (
        size - len(data.translate(None, each)) for each in (_LISTS, _MAPS, _OTHERS, _OBJECTS)
    )
    return PLACE * size + LIST * lists + _MAP_AT_MOST * maps + OTHER * others + TEXT * objects


def estimate_json(text: bytes | str) -> int:
    """At least as many bytes as the objects of a JSON text, or of a piece of one, take.

    Each value but the first of all follows one of a few signs.
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
        LimitExceeded: when that is more than ``most``.
    """
    found = estimate_json(text)
    if found > most:
        raise too_much(most, found)
    return found


def check_embedded_json(text: bytes | memoryview, most: int) -> int:
    """The estimate of a JSON text that is parsed, and so are texts in it. Looks at a piece of it at a time, and stops
    at the first excess.

    Raises:
        LimitExceeded: when that is more than ``most``.
    """
    found = 0
    for at in range(0, len(text), PIECE_BYTES):
        # An escape may hide any sign of a text within; one that is cut in two is counted with the first part. One wide
        # character makes all of its text as wide.
        piece = bytes(text[at : at + PIECE_BYTES + 1])
        found += 3 * len(piece) + estimate_json(piece)
        found += (LIST + MAP + MAP_OF_SOME + TEXT + PLACE) * piece.count(b"\\u")
        if found > most:
            raise too_much(most, found)
    return found


def too_much(most: int, value: int) -> LimitExceeded:
    """The error of a message whose objects would take more than ``max_decoded_bytes``."""
    return LimitExceeded(
        f"the values of the message would take {value:,} bytes or more in memory, {most:,} are allowed ({SETTING}): "
        "send large data as raw buffers",
        setting=SETTING, limit=most, value=value,
    )  # fmt: skip


# The measure


def check(header: bytes | memoryview, most: int, pause: Callable[[], None] | None = None) -> int:
    """About how many bytes the objects of a message's header take.

    Args:
        pause: called after about a kilobyte that was walked through, each time.

    Raises:
        LimitExceeded: for more than ``most``; for a list, map or text that is longer than its field may be.
        MalformedFrame: for what is no MessagePack, and for lists that are nested more deeply than their field may be.
    """
    if len(header) <= SMALL_BYTES and len(header) * MOST_OF_A_BYTE <= most:
        return len(header) * MOST_OF_A_BYTE
    trusted = min(most, TRUSTED_BYTES)
    if len(header) * PLACE <= trusted and (found := estimate(header)) <= trusted:
        return found
    return _Measure(bytes(header), most, pause).message()


def number_of(header: bytes | memoryview) -> int:
    """The number of a frame that is too much to be decoded, so that it can be answered; 0 where none comes first."""
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
"""By the first byte of a value: how many bytes follow; -1 where that has to be read."""
_COST: Final = [PLACE + (NUMBER if byte in _FOLLOW or 0xE0 <= byte < 0xFB else 0) for byte in range(256)]


class _Measure:
    """One header being walked through.

    Attributes:
        at: the byte that comes next.
        cost: of what came before.
    """

    def __init__(self, data: bytes, most: int, pause: Callable[[], None] | None = None) -> None:
        self.data = data
        self.most = most
        self.pause = pause
        self.at = 0
        self.cost = 0

    def message(self) -> int:
        """Walk through a message, field by field."""
        fields = self.fields()
        if fields > MAX_FIELDS:
            raise MalformedFrame(f"a message of {fields:,} fields")
        for _ in range(fields):
            name = self.name()
            self.value(name, BOUNDS.get(name, _UNKNOWN))
        if self.at != len(self.data):
            raise MalformedFrame(f"the header has {len(self.data):,} bytes, the message in it ends at {self.at:,}")
        return self.cost

    def fields(self) -> int:
        """Go into the map that a message is: how many fields it has."""
        first = self._number(1)
        if 0x80 <= first < 0x90:
            return first - 0x80
        if first in (0xDE, 0xDF):
            return self._number(2 if first == 0xDE else 4)
        raise MalformedFrame("the header is not a map")

    def name(self) -> str:
        """Go past the name of a field."""
        first = self._number(1)
        size = first - 0xA0 if 0xA0 <= first < 0xC0 else self._number(1) if first == 0xD9 else -1
        if not 0 <= size <= len(self.data) - self.at:
            raise MalformedFrame(f"a field without a name at byte {self.at}")
        self.at += size
        return self.data[self.at - size : self.at].decode(errors="replace")

    def _number(self, width: int) -> int:
        at = self.at
        self.at = at + width
        if self.at > len(self.data):
            raise MalformedFrame("the header is cut off")
        return int.from_bytes(self.data[at : self.at], "big")

    def value(self, name: str, bound: Bound) -> None:
        """Walk through one value, in a loop: how deep it is nested is for the stack below to hold."""
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
                    raise MalformedFrame("the header is cut off")
                assert self.pause is not None  # else it would have been the end
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
                raise MalformedFrame(f"{name} is nested in more than {deepest} lists and maps")
            if cost > most:
                raise too_much(most, cost)

    def _open(self, name: str, bound: Bound) -> int:
        """Go past the beginning of a list or map, or past a whole text: how many values there are in it."""
        first = self._number(1)
        if first < 0xA0 or first >= 0xDC:
            small = first < 0xA0
            entries = first & 0x0F if small else self._number(4 if first & 1 else 2)
            if entries > bound.longest or entries > len(self.data) - self.at:
                raise LimitExceeded(
                    f"{name} has a list or map of {entries:,} entries, it may have {bound.longest:,}",
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
                    f"{name} has a text of {length:,} bytes, it may have {bound.text:,}",
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
            raise MalformedFrame("the header is cut off")
        self.cost += cost + each * length
