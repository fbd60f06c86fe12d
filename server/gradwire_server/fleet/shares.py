"""How processes of the fleet share a tenant's rates.

Each process enforces its share locally, without a round trip. It reports which part of the rate it used, and a value
above 1 when it held requests back. Whoever was not held back keeps what it used and some room to grow; the others
divide the rest equally.
"""

from __future__ import annotations

import time
from typing import Final

ROOM: Final = 1.25
LEAST: Final = 0.05
FORGOTTEN_S: Final = 5.0


class Shares:
    """The use of every tenant's rates by every process."""

    def __init__(self) -> None:
        self._uses: dict[str, dict[str, tuple[float, float]]] = {}

    def report(self, process: str, use: dict[str, float]) -> dict[str, float]:
        """Record a process's use by tenant. Returns its shares, of these tenants."""
        now = time.monotonic()
        for tenant, used in use.items():
            self._uses.setdefault(tenant, {})[process] = (used, now)
        for tenant, uses in list(self._uses.items()):
            for other, (_, at) in list(uses.items()):
                if now - at > FORGOTTEN_S:
                    del uses[other]
            if not uses:
                del self._uses[tenant]
        return {tenant: self._share(tenant, process) for tenant in use}

    def _share(self, tenant: str, process: str) -> float:
        uses = {name: used for name, (used, _) in self._uses[tenant].items()}
        if len(uses) == 1:
            return 1.0
        left, shares = 1.0, {}
        hungry = sorted(uses, key=lambda name: uses[name])
        while hungry:
            equal = left / len(hungry)
            wanted = max(min(uses[hungry[0]] * ROOM, 1.0), LEAST) if uses[hungry[0]] <= 1.0 else 1.0
            shares[hungry[0]] = min(wanted, equal)
            left -= shares[hungry.pop(0)]
        # Nobody wants what is left, so everybody may have it.
        return min(1.0, shares[process] + max(left, 0.0) / len(uses))
