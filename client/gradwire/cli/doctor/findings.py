"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: the name of the check.
        text: what was found.
        advice: what to do about it; empty where nothing is to be done.
        facts: the same for programs.
    """

    check: str
    status: Status
    text: str
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


KEY_SHOWN: Final = "(key)"
SHORTEST_SECRET: Final = 4
"""Shorter ones are part of ordinary words, which would be replaced."""


def without(secrets: list[str], value: Any) -> Any:
    """A value of JSON in which no text contains one of the secrets."""
    if isinstance(value, str):
        for secret in secrets:
            if len(secret) >= SHORTEST_SECRET:
                value = value.replace(secret, KEY_SHOWN)
        return value
    if isinstance(value, list):
        return [without(secrets, each) for each in value]
    if isinstance(value, dict):
        return {without(secrets, name): without(secrets, each) for name, each in value.items()}
    return value
