"""The manual is built without a warning, and a server shows it to anyone, from itself alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import httpx
import pytest
from tools.manual.navigation import navigation

from gradwire_protocol.table import TABLE
from gradwire_server.http.manual_site import TYPES, Manual
from gradwire_server.http.static_files import FOLDER as OTHER_FOLDER
from tests.live_server import LiveServer, live_server

pytestmark = pytest.mark.xdist_group("manual")
LARGEST = 60_000_000
"""Bytes of the site, at most. Wheels and images contain it."""


class Page(HTMLParser):
    """What a page refers to, its anchors, and what a strict policy would refuse."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        self.loaded += [named[name] for name in ("src",) if name in named]
        if tag == "link" and "stylesheet" in named.get("rel", ""):
            self.loaded.append(named["href"])
        if (tag == "script" and "src" not in named) or tag == "style" or "style" in named:
            self.inline.append(self.get_starttag_text() or tag)
        self.inline += [name for name in named if name.startswith("on")]


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_every_page_of_the_navigation_is_there_and_in_every_sidebar(site: Path, pages: dict[str, Page]) -> None:
    wanted = {f"{page}.html" for section in navigation().sections for page in section.pages}
    assert wanted <= pages.keys()
    for page in ("index.html", "settings.html"):
        assert wanted <= {link.partition("#")[0] for link in pages[page].links} | {page}
    assert all(section.title in (site / "index.html").read_text() for section in navigation().sections)


def test_links_lead_to_pages_and_anchors_that_exist(site: Path, pages: dict[str, Page]) -> None:
    wrong = []
    for name, page in pages.items():
        for link in page.links:
            url, anchor = urldefrag(urljoin(f"http://manual/{name}", link))
            if urlsplit(url).netloc != "manual":
                continue
            target = unquote(urlsplit(url).path.lstrip("/")) or "index.html"
            if not (site / target).is_file() or (anchor and unquote(anchor) not in pages[target].anchors):
                wrong.append((name, link))
    assert not wrong, wrong[:20]


def test_pages_load_files_of_the_site_only_and_have_nothing_inline(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert not page.inline, (name, page.inline[:3])
        for reference in page.loaded:
            assert not urlsplit(reference).netloc and ":" not in reference.partition("?")[0], (name, reference)
            assert (site / name).parent.joinpath(reference.partition("?")[0]).resolve().is_file(), (name, reference)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*(?!['\"]?(?:data:|#))|@import", sheet.read_text(encoding="utf-8")), sheet.name


def test_every_op_has_an_entry_with_signature_and_gradient(site: Path) -> None:
    for name in ("matmul", "tanh", "cross_entropy", "sum"):
        op = TABLE[name]
        text = (site / "ops" / f"{op.family}.html").read_text(encoding="utf-8")
        entry = text[text.index(f'id="{name.replace("_", "-")}"') :].split("<section", 1)[0]
        assert "Gradient" in entry and "float32[" in entry, name
    listed = (site / "ops" / "index.html").read_text(encoding="utf-8")
    assert all(f">{op.name}<" in listed for op in TABLE.values() if op.base is None and not op.internal)


def test_the_python_api_has_what_programs_use(site: Path) -> None:
    api = "".join(path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))
    for name in (
        "gradwire.matmul",
        "gradwire.Tensor.sum",
        "gradwire.nn.Linear",
        "gradwire.optim.Adam",
        "gradwire.connect",
    ):
        assert f'id="{name}"' in api, name


def test_the_site_has_a_reasonable_size(site: Path, record_property: Callable[[str, object], None]) -> None:
    from tools.manual.site import size

    files, total = size(site)
    record_property("manual", f"{files} files, {total / 1e6:.1f} MB")
    assert files > 200 and total < LARGEST
    assert {path.suffix for path in site.rglob("*") if path.is_file()} <= TYPES.keys()


# Served


def test_anyone_gets_the_manual_with_a_strict_policy(served: LiveServer) -> None:
    start = httpx.get(f"{served.url}/manual")
    assert (start.status_code, start.headers["location"]) == (307, "/manual/")
    page = httpx.get(f"{served.url}/manual/")
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy.pop("img-src") == "'self' data:"
    assert policy["default-src"] == "'none'" and set(policy.values()) == {"'self'", "'none'"}
    assert page.headers["x-content-type-options"] == "nosniff"
    assert httpx.get(f"{served.url}/manual/ops/").text == httpx.get(f"{served.url}/manual/ops/index.html").text
    again = httpx.get(f"{served.url}/manual/", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304
    assert httpx.post(f"{served.url}/manual/").status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "../manual_site.py", "..%2fmanual_site.py", "%2e%2e/manual_site.py", "_static/../../manual_site.py",
        "/etc/passwd", "%2fetc%2fpasswd", "..%5cmanual_site.py", "index.html%00", "../../v1/sessions", ".buildinfo",
        "a" * 3000,
    ],
)  # fmt: skip
def test_nothing_outside_of_the_site_is_served(served: LiveServer, path: str) -> None:
    connection = HTTPConnection(urlsplit(served.url).netloc, timeout=30)  # httpx would resolve the dots
    connection.request("GET", f"/manual/{path}")
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    assert (answer.status, told["code"]) == (404, "not_found"), told


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("start")
    (tmp_path / "out.txt").symlink_to(OTHER_FOLDER / "LICENSE")
    (tmp_path / "data.bin").write_bytes(b"x")
    manual = Manual(tmp_path)
    assert manual.find("") is not None and manual.find("index.html") is not None
    assert manual.find("out.txt") is None and manual.find("data.bin") is None


def test_a_server_without_the_site_says_how_to_build_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwire_server.routes.manual._manual", Manual(tmp_path / "none"))
    with live_server() as server:
        answer = httpx.get(f"{server.url}/manual", follow_redirects=True)
    assert answer.status_code == 404 and answer.headers["content-type"].startswith("text/html")
    assert "make manual" in answer.text


def test_a_site_that_is_built_again_is_found(tmp_path: Path) -> None:
    manual = Manual(tmp_path)
    assert manual.find("") is None
    (tmp_path / "index.html").write_text("one")
    assert manual.find("").body == b"one"  # type: ignore[union-attr]


def test_behind_a_prefix_the_start_leads_below_it() -> None:
    with live_server(root_path="/gw") as server:
        assert httpx.get(f"{server.url}/manual").headers["location"] == "/gw/manual/"


# In a browser

WORDS = {
    "matmul": ("/api/gradwire.functions-", "/ops/matrix.html"),
    "journal": ("/durability.html",),
    "GRADWIRE_URL": ("/http.html",),
}


def test_pages_open_and_searches_find_in_a_browser(
    served: LiveServer, browse: Callable[..., list[dict[str, Any]]]
) -> None:
    start = f"{served.url}/manual/"
    told = "getComputedStyle(document.body).backgroundColor"
    wide = "document.documentElement.scrollWidth <= innerWidth"
    steps = [{"url": start, "search": word} for word in WORDS]
    steps += [{"url": f"{start}{page}", "script": "document.querySelector('h1').textContent"} for page in OPENED]
    steps += [{"url": start, "script": told}, {"url": start, "script": told, "dark": True}]
    steps += [{"url": f"{start}settings.html", "script": wide, "width": 360}]
    answers = browse(*steps)
    for answer in answers:
        assert answer["status"] == 200
        assert answer["errors"] == []
        assert all(url.startswith((f"{served.url}/", "data:")) for url in answer["requests"]), answer["requests"]
    for answer, (word, wanted) in zip(answers, WORDS.items(), strict=False):
        for part in wanted:
            assert any(part in url for url in answer["found"]), (word, answer["found"][:20])
    *_, light, dark, narrow = answers
    assert light["result"] != dark["result"]
    assert narrow["result"] is True


OPENED = ("index.html", "ops/matrix.html", "api/gradwire.Tensor.html", "http-api.html", "tutorials/remote-gpu.html")
