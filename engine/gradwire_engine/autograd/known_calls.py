"""What rules have answered, for all sessions of a process: a new session need not ask again.

An answer follows from what the rule sees, which is all in the key, and from the default dtype. Sessions share nothing
else by it: no values, and no limits.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from gradwire_protocol.meta import Inference

from .plain_calls import PlainCall
from .plain_views import PlainView

ShortWay = PlainCall | PlainView

MOST_ANSWERS: Final = 16_384
MOST_ARGUMENTS: Final = 2_000_000
"""Entries of all arguments in the keys, which may be long: sizes of a thousand pieces, an equation of a megabyte."""


class KnownCall(NamedTuple):
    """A call of one op as far as it is the same each time.

    Attributes:
        inferred: what the rule says.
        plain: the short way of the call, if it has one.
        steps: how much work it is, once that was counted.
    """

    inferred: Inference
    plain: ShortWay | None
    steps: int | None


class KnownCalls(dict[tuple[Any, ...], KnownCall]):
    """Calls by their keys, as many as may be kept. It is emptied when it is full."""

    def __init__(self) -> None:
        super().__init__()
        self._arguments = 0

    def keep(self, key: tuple[Any, ...], call: KnownCall, rule_args: list[Any]) -> None:
        self._arguments += 32 + sum(len(v) for v in rule_args if type(v) in (tuple, str))
        if len(self) >= MOST_ANSWERS or self._arguments > MOST_ARGUMENTS:
            self.clear()
            self._arguments = 0
        self[key] = call


SHARED: Final = KnownCalls()
