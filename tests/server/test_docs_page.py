"""The page of the interface needs no other server, also behind a proxy with a prefix."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from gradwire_server.http.static_files import FILES, FOLDER
from tests.live_server import live_server

WAIT_S = 60.0
"""The document describes every op, and is made when it is first asked for."""


class References(HTMLParser):
    """Collects what a page refers to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.found += [value for name, value in attrs if name in ("src", "href", "data-document") and value]
        self.inline += (tag == "script" and "src" not in named) or tag == "style"


@pytest.mark.parametrize("prefix", ["", "/gw"])
def test_all_that_the_page_needs_comes_from_the_server(prefix: str) -> None:
    with live_server(**({"root_path": prefix} if prefix else {})) as server:
        assert server.url.endswith(prefix)
        address = f"{server.url}/docs"
        page = httpx.get(address, timeout=WAIT_S)
        references = References(page.text)
        types = {}
        for reference in references.found:
            url = urljoin(address, reference)
            assert url.startswith(f"{server.url}/"), reference
            found = httpx.get(url, timeout=WAIT_S)
            assert found.status_code == 200 and found.content, url
            types[urlsplit(url).path.rpartition("/")[2]] = found.headers["content-type"]
        document = httpx.get(urljoin(address, "openapi.json?ops=false"), timeout=WAIT_S).json()
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert types == {**FILES, "openapi.json": "application/json"}
    assert not references.inline, "the security policy forbids inline scripts"
    assert [each["url"] for each in document.get("servers", [])] == ([prefix] if prefix else [])


def test_the_page_may_load_only_from_its_own_origin(http: httpx.Client) -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in http.get("/docs").headers["content-security-policy"].split(";")
    )
    assert policy.pop("style-src") == "'self' 'unsafe-inline'"
    assert policy.pop("img-src") == "'self' data:"
    assert set(policy.values()) == {"'self'", "'none'"} and policy["default-src"] == "'none'"


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", *(f"/docs/{name}" for name in FILES)])
def test_the_files_are_compressed_and_validated(http: httpx.Client, path: str) -> None:
    plain = http.get(path, headers={"Accept-Encoding": "identity"})
    packed = http.get(path, headers={"Accept-Encoding": "gzip"})
    assert plain.content == packed.content and "content-encoding" not in plain.headers
    if path.endswith((".js", ".css", ".json")) and not path.endswith("start.js"):
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) < len(plain.content) / 2
    again = http.get(path, headers={"If-None-Match": packed.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_the_files_are_shipped_with_their_licence() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        *FILES, "LICENSE", "NOTICE", "README.md", "swagger-ui-bundle.js.LICENSE.txt"
    }  # fmt: skip


def test_the_short_document_differs_in_the_records_of_ops_only(http: httpx.Client) -> None:
    full, short = http.get("/openapi.json"), http.get("/openapi.json?ops=false")
    assert len(short.content) < len(full.content) / 4
    assert short.json()["paths"] == full.json()["paths"]
    schemas = full.json()["components"]["schemas"]
    for name, schema in short.json()["components"]["schemas"].items():
        assert name == "NamedRecord" or schema == schemas[name], name
