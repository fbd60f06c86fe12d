"""The parameters of a session: enough to recreate it empty."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Final, Literal

import msgspec

from gradwire_engine.runtime.memory import Limits

Durability = Literal["none", "applied", "durable"]
"""What an acknowledged frame survives: nothing, a process crash, a power failure."""

MB: Final = 1 << 20
GB: Final = 1 << 30


class SessionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a session.

    Attributes:
        tenant: the owner.
        device: a name of :mod:`gradwire_engine.runtime.backends`, for example ``cuda:0``.
        limits: the engine's limits by name.
        ttl_s: idle seconds after which the session expires.
        seed: the seed of its random number generator.
        created: Unix time.
        name: what its program calls it; free text for people.
        past_of: the session whose past it shows; empty for any other session.
    """

    id: str
    tenant: str = ""
    device: str = "cpu"
    default_dtype: str = "float32"
    limits: dict[str, int] = {}
    ttl_s: float = 3600.0
    seed: int = 0
    durability: Durability = "none"
    created: float = msgspec.field(default_factory=time.time)
    name: str = ""
    past_of: str = ""

    def engine_limits(self) -> Limits:
        """The engine's limits. Limits that this version does not know are ignored."""
        known = {field.name for field in fields(Limits)}
        return Limits(**{name: value for name, value in self.limits.items() if name in known})

    def with_plans(self, plans: int) -> SessionSpec:
        """A copy with plans on (1) or off (0)."""
        return msgspec.structs.replace(self, limits=self.limits | {"plans": plans})


class JournalPolicy(msgspec.Struct, frozen=True):
    """How much disk space sessions may use.

    Attributes:
        journal_bytes: the journal's length at which a snapshot replaces it.
        max_data_bytes: the limit for the whole data directory; 0 for no limit.
    """

    journal_bytes: int = 64 * MB
    max_data_bytes: int = 64 * GB
