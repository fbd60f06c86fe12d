"""What sessions tell of themselves, as notebooks show it: counts, memory, and the session itself."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from gradwire_protocol.errors import GradwireError

from ..context.displayed import DisplayedDict


class SessionCounts(DisplayedDict):
    """What :meth:`Session.stats` returns."""

    __slots__ = ()
    title: ClassVar[str] = "session statistics"


class SessionMemory(DisplayedDict):
    """What :meth:`Session.memory` returns."""

    __slots__ = ()
    title: ClassVar[str] = "session memory"

    def _repr_html_(self) -> str:
        from ..context import html

        return html.card(self.title, (), memory_table(self))


MEANING: Final = {
    "live_bytes": "tensors and graph", "saved_bytes": "of those, kept for backward",
    "pooled_bytes": "held in reserve by the devices", "peak_bytes": "the most at once",
    "limit_bytes": "the session's limit",
}  # fmt: skip


def memory_table(memory: dict[str, int]) -> str:
    """The memory of a session as HTML, each number beside the part of the limit that it is."""
    from gradwire_protocol.quantities import spell_bytes

    from ..context import html

    limit = memory.get("limit_bytes", 0)
    rows = []
    for name, count in memory.items():
        share = count / limit if limit and name != "limit_bytes" else None
        drawn = "" if share is None else html.bar(share, f"{100 * share:.3g} % of the limit")
        rows.append((html.code(name), html.text(spell_bytes(count)), drawn, html.faint(MEANING.get(name, ""))))
    return html.table((), rows, numbers=(1,))


def session_html(session: Any) -> str:
    """A session: where it is, what it holds and what was sent. It asks the server once, without patience."""
    from gradwire_protocol.quantities import counted

    from ..context import html

    about = [html.code(session.id), html.text(session.url)]
    if session.closed:
        return html.card("gradwire session", [*about, html.alarm("closed")])
    sent = f"{counted(session.ops, 'op')} in {counted(session.frames, 'frame')}"
    facts: list[tuple[str, Any]] = [
        ("sent from here", f"{sent}, {counted(session.link.round_trips, 'round trip')}"),
        ("client", session.client),
    ]
    try:
        found: dict[str, Any] = session.rest.get_once(f"/v1/sessions/{session.id}")
    except GradwireError as error:
        return html.card("gradwire session", about, html.definitions(facts), html.alarm(str(error)))
    contents = found["contents"]
    facts[:0] = [
        ("device", contents["device"]), ("state", found["state"]), ("durability", found["durability"]),
        ("expires", found["expires_at"]),
        ("holds", f"{counted(contents['tensors'], 'tensor')}, {counted(contents['graph_nodes'], 'node')} of the graph, "
                  f"{counted(contents['names'], 'name')}"),
        ("applied", f"{counted(contents['ops_run'], 'op')} in {counted(contents['frames_applied'], 'frame')}, "
                    f"{counted(contents['plans']['hits'], 'plan hit')}"),
    ]  # fmt: skip
    return html.card("gradwire session", about, html.definitions(facts), memory_table(contents["memory"]))
