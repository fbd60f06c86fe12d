"""What a session is, before it holds anything: enough to begin it again from nothing."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Final, Literal

import msgspec

from gradwire_engine.memory import Limits

Durability = Literal["none", "applied", "durable"]
"""What an acknowledged frame survives: nothing, the death of its process, the loss of power."""

MB: Final = 1 << 20
GB: Final = 1 << 30


class SessionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a session was asked for.

    Attributes:
        tenant: the owner.
        device: as :mod:`gradwire_engine.backends` names it, such as ``cuda:0``.
        limits: the engine's limits by name.
        ttl_s: seconds of disuse after which it expires.
        seed: where its random numbers start.
        created: Unix time.
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

    def engine_limits(self) -> Limits:
        """The limits as the engine takes them; those that this version does not know are left out."""
        known = {field.name for field in fields(Limits)}
        return Limits(**{name: value for name, value in self.limits.items() if name in known})

    def with_plans(self, mode: int) -> SessionSpec:
        """The same, with frames that repeat run in this mode of :mod:`gradwire_engine.plans`."""
        return msgspec.structs.replace(self, limits=self.limits | {"plans": mode})


class JournalPolicy(msgspec.Struct, frozen=True):
    """How much disk the sessions may take.

    Attributes:
        journal_bytes: the length at which a journal is replaced by a snapshot.
        max_data_bytes: of the whole data directory; 0 for no limit.
    """

    journal_bytes: int = 64 * MB
    max_data_bytes: int = 64 * GB
