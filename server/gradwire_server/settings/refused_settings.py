"""Messages for invalid settings: the variable, its value and the allowed values."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from .secret_files import SECRETS, SUFFIX
from .settings import PREFIX, Settings, variable

SELF_EXPLANATORY: Final = ("value_error", "secret_file")
"""Types of pydantic errors whose own message says what is allowed."""

MAX_SHOWN_CHARS: Final = 60
"""How much of a value a message shows."""

FOREIGN_PREFIXES: Final = ("URL", "API_KEY", "CA_FILE", "PATIENCE", "HEARTBEAT", "DIRECT", "RUN_", "TEST_", "OP_DB_")
"""Prefixes of the variables of the client and of the tests."""

_BOUNDS: Final = ((Ge, "ge", "at least"), (Gt, "gt", "above"), (Le, "le", "at most"), (Lt, "lt", "below"))


def describe_errors(error: ValidationError) -> Iterator[str]:
    """One line per invalid setting."""
    for each in error.errors():
        name = str(each["loc"][0]) if each["loc"] else ""
        if name not in Settings.model_fields:
            yield each["msg"].removeprefix("Value error, ")
            continue
        # Never show a key, not even a wrong one: the message ends up in a log.
        value = "" if name in SECRETS or each["input"] is None else f"={str(each['input'])!r:.{MAX_SHOWN_CHARS}}"
        reason = each["msg"].removeprefix("Value error, ")
        if each["type"] == "path_not_file":
            reason = "must be an existing file"
        elif each["type"] not in SELF_EXPLANATORY:
            reason = f"must be {describe_allowed(Settings.model_fields[name])}"
        yield f"{variable(name)}{value}: {reason}"


def describe_allowed(field: FieldInfo) -> str:
    """The allowed values of a setting, in words."""
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    if get_origin(field.annotation) is Literal:
        return _one_of(get_args(field.annotation))
    for kind in kinds:
        if get_origin(kind) is Literal:
            return _one_of(get_args(kind))
    if field.annotation in (int, float):
        bounds = [
            f"{words} {getattr(bound, name):,}"
            for kind, name, words in _BOUNDS for bound in field.metadata if isinstance(bound, kind)
        ]  # fmt: skip
        kind = "an integer" if field.annotation is int else "a number"
        return f"{kind}, {' and '.join(bounds)}" if bounds else kind
    return "true or false" if field.annotation is bool else "a string"


def _one_of(words: tuple[Any, ...]) -> str:
    return f"one of {', '.join(words)}"


def unknown_variables() -> Iterator[str]:
    """One line per ``GRADWIRE_`` variable that is not a setting: a misspelt one would have no effect."""
    known = [variable(name) for name in Settings.model_fields]
    known += [variable(name) + SUFFIX for name in SECRETS]
    for name in sorted(os.environ):
        rest = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and name not in known and not rest.startswith(FOREIGN_PREFIXES):
            matches = get_close_matches(name, known, 1)
            yield f"unknown setting {name}" + (f"; did you mean {matches[0]}?" if matches else "")
