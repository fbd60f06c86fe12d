"""Dictionaries and texts that notebooks show as HTML.

For programs they are what they look like: they equal plain ones, are written as JSON alike, and are copied and pickled
as plain ones.
"""

from __future__ import annotations

from typing import Any, ClassVar


class DisplayedDict(dict[str, Any]):
    """A dictionary of numbers that a notebook shows as a table."""

    __slots__ = ()

    title: ClassVar[str] = "counts"

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def _repr_html_(self) -> str:
        from gradwire_protocol.quantities import spell_bytes

        from . import html

        rows = []
        for name, value in self.items():
            shown = f"{value:,}" if type(value) is int else str(value)
            size = spell_bytes(value) if "bytes" in name and type(value) is int and value >= 1024 else ""
            rows.append((html.code(name), html.text(shown, 400), html.faint(size) if size else ""))
        return html.card(self.title, (), html.table((), rows, numbers=(1,)))


class DisplayedText(str):
    """A text that a notebook shows with its lines as they are."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return str, (str(self),)

    def _repr_html_(self) -> str:
        from . import html

        return html.card("", (), html.preformatted(self))
