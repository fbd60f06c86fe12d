"""What a certificate says about itself, also one that is not trusted, of which the ``ssl`` module tells nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

SEQUENCE: Final = 0x30
VERSION: Final = 0xA0
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
VALIDITY: Final = 3
"""The position of the validity after the version, which may be missing: serial number, algorithm, issuer, validity."""


class UnreadableCertificate(ValueError):
    """The bytes are not a certificate in DER."""


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """From when to when a certificate in DER is valid.

    Raises:
        UnreadableCertificate: when it cannot be read.
    """
    try:
        _, whole = next(_elements(certificate))
        _, signed = next(_elements(whole))
        fields = [each for each in _elements(signed) if each[0] != VERSION]
        first, last = _elements(fields[VALIDITY][1])
        return _time(*first), _time(*last)
    except (IndexError, StopIteration, ValueError, RuntimeError) as error:
        raise UnreadableCertificate(f"not a certificate: {error}") from None


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The tags and contents of the elements that follow each other in DER."""
    at = 0
    while at < len(data):
        tag, length = data[at], data[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[at : at + count], "big")
            at += count
        if at + length > len(data):
            raise ValueError("an element is longer than its container")
        yield tag, data[at : at + length]
        at += length


def _time(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == UTC_TIME:  # two digits of the year: RFC 5280 puts 50 to 99 into the last century
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif tag != GENERALIZED_TIME:
        raise ValueError(f"a time has the tag {tag}")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
