"""``docs/missing-names.md``, and the table of reasons in ``docs/differences.md``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from .gradwire_names import lacking
from .reasons import reason_of, unused_patterns

RECORD: Final = Path(__file__).with_name("torch.json")
PAGE: Final = "missing-names.md"
BEGIN: Final = "<!-- Derived from tools/public_names: run `make derive`. -->\n"
END: Final = "<!-- End of the derived part. -->\n"


class Unexplained(Exception):
    """A missing name has no reason, or a reason explains nothing."""


def page() -> str:
    """The page: every missing name, by reason and module."""
    return "".join(f"{line}\n" for line in _page())


def with_table(differences: str) -> str:
    """``docs/differences.md`` with its derived part renewed."""
    before, _, rest = differences.partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(_table())
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


@cache
def _record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


@cache
def _by_reason() -> dict[str, list[str]]:
    """The missing names by reason, the most frequent reason first.

    Raises:
        Unexplained: if a name has no reason, or a pattern matches no name.
    """
    missing = list(lacking(_record()["names"]))
    found: dict[str, list[str]] = {}
    for name in missing:
        found.setdefault(reason_of(name) or "", []).append(name)
    unexplained, unused = found.get("", []), unused_patterns(missing)
    if unexplained or unused:
        raise Unexplained(
            f"tools/public_names/reasons.py has no reason for {len(unexplained)} missing names "
            f"({', '.join(unexplained[:40])}), and patterns that match no missing name: {', '.join(unused) or 'none'}"
        )
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def _page() -> Iterator[str]:
    reasons = _by_reason()
    yield BEGIN
    yield "# Missing names\n"
    yield (
        f"PyTorch {_record()['torch']} has {_count(_record()['names']):,} public names: modules, functions, classes, "
        f"their members and keywords. gradwire lacks {sum(map(len, reasons.values())):,} of them, for these "
        f"{len(reasons)} reasons. A missing module or class stands for everything in it. `f(k=)` is the keyword `k` "
        "of `f`. [differences.md](differences.md) describes what behaves otherwise.\n"
    )
    for reason, names in reasons.items():
        yield f"## {reason}\n"
        for module, own in _by_module(names).items():
            yield f"* {module}: {', '.join(f'`{name}`' for name in own)}" if module else f"* {_code(own)}"
        yield ""


def _table() -> Iterator[str]:
    yield "| missing names | number | such as |"
    yield "|---|---:|---|"
    for reason, names in _by_reason().items():
        yield f"| {reason} | {len(names)} | {_code(names[:: max(1, len(names) // 3)][:3])} |"


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _by_module(names: list[str]) -> dict[str, list[str]]:
    """Names by the module that has them, which need not repeat it; missing modules under the empty name."""
    modules = sorted(_record()["names"], key=len, reverse=True)
    found: dict[str, list[str]] = {}
    for name in names:
        module = "" if name in modules else next(m for m in modules if name.startswith(f"{m}."))
        found.setdefault(f"`{module}`" if module else "", []).append(name[len(module) + 1 :] if module else name)
    return dict(sorted(found.items()))


def _count(names: dict[str, dict[str, Any]]) -> int:
    total = len(names)
    for described in names.values():
        for entry in described.values():
            total += 1
            if isinstance(entry, list):
                total += len(entry)
            elif isinstance(entry, dict):
                total += sum(1 + len(keywords) for keywords in entry.values())
    return total
