"""Suggestions for misspelled words in errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

import msgspec

from .errors import MalformedFrame

MAX_CHARS: Final = 100
"""Of words that are compared."""
MARGIN: Final = 0.1
"""How much less similar than the closest word a second suggestion may be."""
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(?P<name>.*?)`", re.DOTALL)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error about a word: the known words that are close to it, or nothing."""
    found = get_close_matches(word, known, n=3) if len(word) <= MAX_CHARS else []
    similar = [SequenceMatcher(None, each, word).ratio() for each in found]
    close = [each for each, ratio in zip(found, similar, strict=True) if ratio >= similar[0] - MARGIN]
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def unknown_field(name: str, what: str, known: Iterable[str]) -> MalformedFrame:
    """The error for a field that does not exist. ``what`` has it, with its article."""
    return MalformedFrame(f"unknown field {name!r:.80} of {what}{did_you_mean(name, known)}", field=name[:MAX_CHARS])


def explained(error: Exception, what: str, known: Iterable[str]) -> MalformedFrame | None:
    """The error for an unknown field, if that is what msgspec found."""
    if not isinstance(error, msgspec.ValidationError):
        return None
    found = _UNKNOWN_FIELD.match(str(error))
    return None if found is None else unknown_field(found["name"], what, known)
