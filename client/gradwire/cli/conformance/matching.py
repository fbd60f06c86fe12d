"""Comparison of an answer with what a vector expects of it."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from .values import SPELLED, number

DEFAULTS: Final[tuple[Any, ...]] = ([], {}, "", 0, False, None)
"""A field with one of these values may be absent: messages omit defaults."""
TOLERANCE: Final = ("rtol", "atol")
SHOWN: Final = 300


def differences(expected: Any, found: Any, at: str = "") -> list[str]:
    """How an answer differs from the expectation, one line each.

    A map is a subset: other fields are not compared. Lists have the same length. The maps ``{"$present": true}``,
    ``{"$absent": true}`` and ``{"$above": n}`` stand for any value, none, and a larger number. In a map with ``dtype``,
    ``values`` are a tensor's and may differ by its ``atol + rtol * |expected|``.
    """
    if isinstance(expected, dict):
        return _map(expected, found, at)
    if isinstance(expected, list):
        if not isinstance(found, list):
            return [_line(at, expected, found)]
        if len(expected) != len(found):
            return [f"{at or 'the list'} has {len(found)} entries instead of {len(expected)}: {_text(found)}"]
        return [line for i, each in enumerate(expected) for line in differences(each, found[i], f"{at}[{i}]")]
    same = (type(expected) is bool and type(found) is bool) or (type(expected) is not bool and type(found) is not bool)
    return [] if same and expected == found else [_line(at, expected, found)]


def _map(expected: dict[str, Any], found: Any, at: str) -> list[str]:
    if "$present" in expected:
        return []
    if "$above" in expected:
        above = isinstance(found, int | float) and found > expected["$above"]
        return [] if above else [f"{at} is {_text(found)}, expected more than {expected['$above']}"]
    if not isinstance(found, dict):
        return [_line(at, expected, found)]
    lines: list[str] = []
    for name, each in expected.items():
        where = f"{at}.{name}" if at else name
        if isinstance(each, dict) and "$absent" in each:
            lines += [f"{where} is {_text(found[name])}, expected nothing"] if name in found else []
        elif name == "values" and "dtype" in expected:
            lines += numbers(each, found.get(name), expected, where)
        elif name in TOLERANCE and "dtype" in expected:
            continue
        elif name in found:
            lines += differences(each, found[name], where)
        elif not any(type(each) is type(default) and each == default for default in DEFAULTS):
            lines.append(f"{where} is missing, expected {_text(each)}")
    return lines


def numbers(expected: Any, found: Any, facts: dict[str, Any], at: str) -> list[str]:
    """How the numbers of a tensor differ: more than ``atol + rtol * |expected|``, by default not at all."""
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return [_line(at, expected, found)]
        lines = (line for i, e in enumerate(expected) for line in numbers(e, found[i], facts, f"{at}[{i}]"))
        return list(lines)
    if isinstance(expected, list | bool) or isinstance(found, list | bool) or found is None or expected is None:
        return [] if expected is found or (expected == found and type(expected) is type(found)) else [
            _line(at, expected, found)
        ]  # fmt: skip
    rtol, atol = facts.get("rtol", 0.0), facts.get("atol", 0.0)
    return [] if near(expected, found, rtol, atol) else [_line(at, expected, found)]


def near(expected: Any, found: Any, rtol: float, atol: float) -> bool:
    """Whether two numbers, which may be spelled, are as close as that."""
    if (isinstance(expected, str) and expected in SPELLED) or (isinstance(found, str) and found in SPELLED):
        return bool(expected == found)
    one, other = number(expected), number(found)
    return one == other or math.isclose(one, other, rel_tol=0, abs_tol=atol + rtol * abs(one))


def _line(at: str, expected: Any, found: Any) -> str:
    return f"{at or 'the answer'} is {_text(found)}, expected {_text(expected)}"


def _text(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
