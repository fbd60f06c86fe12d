"""Sizes, rates and times as people read them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def bytes_text(count: float) -> str:
    """A number of bytes with three digits: ``512 bytes``, ``3.20 MiB``, ``80.0 GiB``."""
    unit = 0
    while abs(count) >= 1000 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    if not unit:
        return f"{count:.0f} bytes"
    return f"{count:.{2 if abs(count) < 10 else 1 if abs(count) < 100 else 0}f} {_UNITS[unit]}"


def count_text(number: float) -> str:
    """A count or a rate with at most four characters: ``7``, ``31.4k``, ``2.1M``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            scaled = number / limit
            return f"{scaled:.{1 if abs(scaled) < 100 else 0}f}{unit}"
    return f"{number:.0f}" if number == int(number) or abs(number) >= 10 else f"{number:.1f}"


def seconds_text(seconds: float) -> str:
    """A short time: ``0.4 ms``, ``31 ms``, ``2.5 s``."""
    if seconds < 1:
        return f"{seconds * 1e3:.{1 if seconds < 0.01 else 0}f} ms"
    return f"{seconds:.1f} s"


def age_text(seconds: float) -> str:
    """An age with its largest unit and the next: ``12s``, ``3m 20s``, ``5h 2m``, ``3d 4h``."""
    whole = max(0, int(seconds))
    for size, unit, below, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{unit} {rest}{smaller}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"
