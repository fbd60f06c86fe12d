"""Reads HTML that gradwire makes for notebooks, and refuses what is malformed or not allowed there."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"img", "br"}
ALLOWED = {
    "div", "span", "b", "i", "code", "pre", "style", "details", "summary", "table", "thead", "tbody", "tr", "th", "td",
    "svg", "g", "rect", "path", "text", "title", *VOID,
}  # fmt: skip


@dataclass
class Element:
    """An element with what is in it: text, and elements."""

    name: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text below it, without that of style sheets."""
        if self.name == "style":
            return ""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, name: str) -> list[Element]:
        """The elements of a name below it, in order."""
        found: list[Element] = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child] * (child.name == name) + child.all(name)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, f"<{tag}> is not allowed in an output"
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> has an attribute twice: {names}"
        for name, value in attrs:
            assert not name.startswith("on"), f"<{tag} {name}> is a script"
            assert name != "href", "an output leads nowhere"
            assert name != "src" or str(value).startswith("data:image/png;base64,"), f"{value!s:.40} is fetched"
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(text: str | None) -> Element:
    """The one element that an output is.

    Raises:
        AssertionError: for an element that is not closed, a script, and anything that would be fetched.
    """
    assert text is not None, "there is no HTML"
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert [each.name for each in reader.open] == [""], f"not closed: {[each.name for each in reader.open]}"
    (root,) = reader.open[0].children
    assert isinstance(root, Element)
    for style in root.all("style"):
        assert "url(" not in style.children[0] and "@import" not in style.children[0]
    return root
