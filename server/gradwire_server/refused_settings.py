"""What is told of settings that cannot be used: the variable, its value, and what it may be."""

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

TELLING: Final = ("value_error", "secret_file")
"""Kinds of refusals whose own text says what is allowed."""

SHOWN: Final = 60
"""Characters of a value that are told."""

OTHERS: Final = ("URL", "API_KEY", "CA_FILE", "PATIENCE", "HEARTBEAT", "RUN_", "TEST_", "OP_DB_")
"""How variables begin that are none of the server's: the client's, and those of the tests."""

_BOUNDS: Final = ((Ge, "ge", "of at least"), (Gt, "gt", "above"), (Le, "le", "at most"), (Lt, "lt", "below"))


def told(error: ValidationError) -> Iterator[str]:
    """A line for each setting that cannot be used."""
    for each in error.errors():
        name = str(each["loc"][0]) if each["loc"] else ""
        if name not in Settings.model_fields:
            yield each["msg"].removeprefix("Value error, ")
            continue
        # A key is not told, not even a wrong one: the message ends in a log.
        value = "" if name in SECRETS or each["input"] is None else f"={str(each['input'])!r:.{SHOWN}}"
        reason = each["msg"].removeprefix("Value error, ")
        if each["type"] == "path_not_file":
            reason = "it must be a file that exists"
        elif each["type"] not in TELLING:
            reason = f"it must be {allowed(Settings.model_fields[name])}"
        yield f"{variable(name)}{value}: {reason}"


def allowed(field: FieldInfo) -> str:
    """What a setting may be, in words."""
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
        return " ".join(["an integer" if field.annotation is int else "a number", " and ".join(bounds)]).strip()
    return "a text"


def _one_of(words: tuple[Any, ...]) -> str:
    return f"one of {', '.join(words)}"


def unknown_variables() -> Iterator[str]:
    """A line for each ``GRADWIRE_`` variable that is no setting, since a misspelt one would have no effect."""
    known = [variable(name) for name in Settings.model_fields]
    known += [variable(name) + SUFFIX for name in SECRETS]
    for name in sorted(os.environ):
        rest = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and name not in known and not rest.startswith(OTHERS):
            near = get_close_matches(name, known, 1)
            yield f"{name} is no setting" + (f": {near[0]} is meant?" if near else "")
