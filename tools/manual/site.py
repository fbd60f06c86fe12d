"""Sphinx, and what it writes made fit for a Content-Security-Policy without inline scripts and styles."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
from pathlib import Path
from typing import Any, Final

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from gradwire_server.settings.version import VERSION
from tools.documents import REPOSITORY

SITE: Final = REPOSITORY / "server" / "gradwire_server" / "http" / "manual"
"""Where the server finds the site. Git ignores it; wheels and images have it if it was built."""
BUILD: Final = REPOSITORY / "build" / "manual"
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_STYLED: Final = re.compile(r'<(\w[^<>]*?) style="([^"]*)"([^<>]*)>')
_CLASS: Final = re.compile(r' class="([^"]*)"')
_WITHOUT: Final = (".buildinfo", ".doctrees", "objects.inv", "_sources")
COLORS: Final = {"color-brand-primary": "#0b57a4", "color-brand-content": "#0b57a4", "color-brand-visited": "#6b4a9e"}
DARK: Final = {"color-brand-primary": "#7db8f5", "color-brand-content": "#7db8f5", "color-brand-visited": "#c1a5ee"}

SETTINGS: Final[dict[str, Any]] = {
    "project": "gradwire",
    "author": "The gradwire authors",
    "copyright": "The gradwire authors, Apache-2.0",
    "release": VERSION,
    "version": VERSION,
    "extensions": ["myst_parser"],
    "source_suffix": {".md": "markdown", ".rst": "restructuredtext"},
    "myst_heading_anchors": 6,
    "myst_enable_extensions": [],
    "highlight_language": "none",  # blocks that name no language
    # Names in signatures, such as ``Node``, that two modules have
    "suppress_warnings": ["ref.python"],
    "html_theme": "furo",
    "html_title": f"gradwire {VERSION}",
    "html_theme_options": {
        "light_css_variables": COLORS, "dark_css_variables": DARK, "navigation_with_keys": True,
        "top_of_page_buttons": [],
    },
    "html_favicon": "favicon.svg",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_use_index": True,
    "toc_object_entries": False,
    "add_module_names": False,
    "python_display_short_literal_types": True,
    "maximum_signature_line_length": 100,
    "language": "en",
}  # fmt: skip


class Warned(Exception):
    """Sphinx warned, for example of a link without target."""


def build(source: Path, out: Path, work: Path = BUILD, jobs: int | None = None) -> None:
    """Build the site of a tree of sources into a folder, which is replaced.

    Raises:
        Warned: with all warnings. The folder is as it was.
    """
    html = work / "html"
    messages = io.StringIO()
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            str(source), None, str(html), str(work / "doctrees"), "html", confoverrides=SETTINGS, status=None,
            warning=messages, parallel=jobs or len(os.sched_getaffinity(0)),
        )  # fmt: skip
        app.build()
    if told := messages.getvalue().strip():
        raise Warned(re.sub(r"\x1b\[[\d;]*m", "", told))
    finished = work / "site"
    shutil.rmtree(finished, ignore_errors=True)
    shutil.copytree(html, finished, ignore=shutil.ignore_patterns(*_WITHOUT, "*.map"))
    _separate(finished)
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(finished, out)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _separate(site: Path) -> None:
    """Move scripts and styles out of the pages into files, also styles of single elements."""
    static = site / "_static"
    rules: dict[str, str] = {}
    script, sheet = '<script src="{}"></script>', '<link rel="stylesheet" href="{}">'

    def kept(text: str, ending: str) -> str:
        name = f"{_name(text)}.{ending}"
        (static / name).write_text(text, encoding="utf-8")
        return name

    def classed(found: re.Match[str]) -> str:
        tag, style, rest = found.groups()
        name = f"style-{_name(style)}"
        rules[name] = style
        tag = f"{tag}{rest}"
        if _CLASS.search(tag):
            more = rf' class="\1 {name}"'
            return f"<{_CLASS.sub(more, tag)}>"
        end = "/" if tag.endswith("/") else ""
        return f'<{tag.removesuffix("/")} class="{name}"{end}>'

    for page in site.rglob("*.html"):
        root = "../" * (len(page.relative_to(site).parts) - 1) + "_static/"
        text = page.read_text(encoding="utf-8")
        text = _SCRIPT.sub(lambda found, root=root: script.format(root + kept(found[1], "js")), text)
        text = _STYLED.sub(classed, text)
        text = text.replace("</head>", sheet.format(f"{root}elements.css") + "</head>", 1)
        text = _STYLE.sub(lambda found, root=root: sheet.format(root + kept(found[1], "css")), text)
        page.write_text(text, encoding="utf-8")
    elements = "\n".join(f".{name} {{ {style} }}" for name, style in sorted(rules.items()))
    (static / "elements.css").write_text(f"{elements}\n", encoding="utf-8")


def size(site: Path) -> tuple[int, int]:
    """The number of files, and their bytes together."""
    files = [path for path in site.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)
