"""Numbers as people read them."""

from __future__ import annotations

import math


def spell_bytes(count: int) -> str:
    """A readable size: ``"512 B"``, ``"1.5 KB"``, ``"12 MB"``; a KB is 1024 bytes."""
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KB", "MB", "GB", "TB"):
        size /= 1024
        if size < 999.5 or unit == "TB":
            return f"{size:.{1 if size < 9.95 else 0}f} {unit}".replace(".0 ", " ")
    raise AssertionError("unreachable")


def spell_number(value: float) -> str:
    """A number in few digits: ``"0.3333"``, ``"1.5e+09"``, ``"12"``, ``"nan"``."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e7:
        return str(int(value))
    return f"{value:.4g}"


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun: ``"1 node"``, ``"1,200 nodes"``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def spell_seconds(seconds: float) -> str:
    """A time with a unit that suits it."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.0f} us"
