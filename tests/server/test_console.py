"""The console's routes: signing in by key, the cookie and what it may do, policies, and switching it off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx
import pytest

from gradwire_server.auth.sign_ins import COOKIE, HEADER, PER_TENANT
from gradwire_server.http.console_page import FILES, FOLDER
from tests.live_server import LiveServer, live_server

from .exchange import problem
from .test_activity import events

OWN = {HEADER: "1"}


@pytest.fixture
def signed_in(server: LiveServer) -> Iterator[httpx.Client]:
    """A client with the cookie of the first tenant, and no key."""
    with httpx.Client(base_url=server.url, timeout=60) as client:
        assert client.post("/console/sign-in", headers=server.headers).status_code == 200
        yield client


class References(HTMLParser):
    """Collects what a page refers to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inline = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.found += [value for name, value in attrs if name in ("src", "href") and value]
        self.inline += (tag == "script" and "src" not in named) or tag == "style" or "style" in named


@pytest.mark.parametrize("prefix", ["", "/gw"])
def test_browsers_are_led_to_the_page_and_programs_get_json(prefix: str) -> None:
    with live_server(**({"root_path": prefix} if prefix else {})) as server:
        led = httpx.get(f"{server.url}/", headers={"Accept": "text/html,application/xhtml+xml"})
        assert led.status_code == 307 and led.headers["location"] == f"{prefix}/console"
        told = httpx.get(f"{server.url}/").json()
        assert told["console"] == f"{prefix}/console" and told["openapi"] == f"{prefix}/openapi.json"
        address = f"{server.url}/console"
        page = httpx.get(address)
        references = References(page.text)
        assert not references.inline
        for reference in references.found:
            url = urljoin(address, reference)
            assert url.startswith(f"{server.url}/"), reference
            found = httpx.get(url)
            assert found.status_code == 200 and found.content
            assert found.headers["content-type"] == FILES[url.rpartition("/")[2]]
        answer = httpx.post(f"{server.url}/console/sign-in", headers=server.headers)
        assert f"Path={prefix or '/'};" in answer.headers["set-cookie"]


def test_the_page_may_load_and_send_only_from_and_to_its_origin(http: httpx.Client) -> None:
    headers = http.get("/console").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy.pop("require-trusted-types-for") == "'script'"
    assert policy["default-src"] == "'none'" and set(policy.values()) == {"'self'", "'none'"}
    assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer" and headers["cross-origin-opener-policy"] == "same-origin"


def test_the_files_name_no_other_server() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(FILES)
    for name in FILES:
        text = (FOLDER / name).read_text()
        for beginning in ("http://", "https://", "//cdn"):
            for part in text.split(beginning)[1:]:
                assert part.startswith(("www.w3.org/", "preactjs.com")), part[:60]


def test_the_cookie_is_for_this_site_and_for_no_script(server: LiveServer) -> None:
    answer = httpx.post(f"{server.url}/console/sign-in", headers=server.headers)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Max-Age=43200" in cookie and "Secure" not in cookie
    assert answer.headers["cache-control"] == "no-store"
    assert server.api_key not in answer.text and server.api_key not in cookie
    assert set(answer.json()) == {"key", "name", "tenant", "scopes"}


def test_a_wrong_key_does_not_sign_in_and_counts_as_a_failure() -> None:
    with live_server(max_key_failures=3) as server:
        for _ in range(4):
            answer = httpx.post(f"{server.url}/console/sign-in", headers={"Authorization": "Bearer gw_wrong"})
            assert "set-cookie" not in answer.headers
        problem(httpx.post(f"{server.url}/console/sign-in", headers={"Authorization": "Bearer gw_x"}), 429,
                "too_many_requests")  # fmt: skip


def test_a_key_in_the_url_does_not_sign_in(server: LiveServer) -> None:
    problem(httpx.post(f"{server.url}/console/sign-in", params={"key": server.api_key}), 401, "unauthorized")
    problem(httpx.get(f"{server.url}/v1/activity", params={"key": server.api_key}), 401, "unauthorized")


def test_the_cookie_stands_for_the_key_until_signing_out(server: LiveServer, signed_in: httpx.Client) -> None:
    assert signed_in.get("/console/sign-in").json()["scopes"] == ["read", "session"]
    session = signed_in.post("/v1/sessions", headers=OWN).json()["id"]
    assert session in {each["id"] for each in signed_in.get("/v1/activity").json()["sessions"]}
    problem(signed_in.get("/v1/keys"), 403, "forbidden")
    signed_in.delete(f"/v1/sessions/{session}", headers=OWN).raise_for_status()
    cookie = signed_in.cookies[COOKIE]
    out = signed_in.delete("/console/sign-in", headers=OWN)
    assert out.status_code == 204 and "Max-Age=0" in out.headers["set-cookie"]
    again = httpx.get(f"{server.url}/v1/activity", headers={"Cookie": f"{COOKIE}={cookie}"})
    assert "sign in" in problem(again, 401, "unauthorized")["detail"]


def test_what_changes_something_needs_the_consoles_header(signed_in: httpx.Client) -> None:
    for method, path in (("POST", "/v1/sessions"), ("DELETE", "/console/sign-in"), ("POST", "/console/sign-in")):
        found = problem(signed_in.request(method, path), 403, "forbidden")
        assert found["extra"]["header"] == HEADER
    assert signed_in.get("/console/sign-in").status_code == 200, "still signed in"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_origins_page_cannot_use_the_cookie(signed_in: httpx.Client, headers: dict[str, str]) -> None:
    problem(signed_in.get("/v1/activity", headers=headers), 403, "forbidden")
    problem(signed_in.post("/v1/sessions", headers={**OWN, **headers}), 403, "forbidden")
    own = {"Origin": str(signed_in.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert signed_in.get("/v1/activity", headers=own).status_code == 200


def test_an_allowed_origin_cannot_use_the_cookie_either() -> None:
    allowed = "https://app.example"
    with live_server(allowed_origins=(allowed,)) as server, httpx.Client(base_url=server.url) as client:
        client.post("/console/sign-in", headers=server.headers).raise_for_status()
        answer = client.get("/v1/activity", headers={"Origin": allowed})
        problem(answer, 403, "forbidden")
        assert "access-control-allow-credentials" not in answer.headers
        asked = {"Origin": allowed, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": HEADER}
        assert client.options("/v1/sessions", headers=asked).status_code == 403


def test_the_cookie_opens_no_websocket(server: LiveServer, signed_in: httpx.Client) -> None:
    session = signed_in.post("/v1/sessions", headers=OWN).json()["id"]
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}  # fmt: skip
    assert signed_in.get(f"/v1/sessions/{session}/stream", headers=upgrade).status_code == 401
    signed_in.delete(f"/v1/sessions/{session}", headers=OWN)


def test_a_revoked_key_ends_its_sign_ins_and_their_streams(server: LiveServer) -> None:
    with server.http(server.admin_key) as admin, httpx.Client(base_url=server.url, timeout=60) as client:
        made = admin.post("/v1/keys", json={"name": "short", "scopes": ["read"]}).json()
        client.post("/console/sign-in", headers={"Authorization": f"Bearer {made['key']}"}).raise_for_status()
        with client.stream("GET", "/v1/activity/stream") as response:
            seen = events(response, 10)
            assert next(seen)[0] == "message"
            admin.delete(f"/v1/keys/{made['id']}").raise_for_status()
            assert list(seen)[-1][0] == "end"
        problem(client.get("/console/sign-in"), 401, "unauthorized")


def test_signing_out_ends_the_streams_of_this_sign_in_only(server: LiveServer) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as one, httpx.Client(base_url=server.url, timeout=60) as two:
        for client in (one, two):
            client.post("/console/sign-in", headers=server.headers).raise_for_status()
        with one.stream("GET", "/v1/activity/stream") as first, two.stream("GET", "/v1/activity/stream") as second:
            ours, theirs = events(first, 10), events(second, 3)
            next(ours), next(theirs)
            one.delete("/console/sign-in", headers=OWN).raise_for_status()
            assert list(ours)[-1] == ("end", "signed out")
            assert [name for name, _ in theirs] == ["message", "message"]


def test_a_sign_in_lasts_only_so_long() -> None:
    with live_server(console_sign_in_s=1.5) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        answer = client.post("/console/sign-in", headers=server.headers)
        cookie = {"Cookie": f"{COOKIE}={answer.cookies[COOKIE]}"}
        assert httpx.get(f"{server.url}/console/sign-in", headers=cookie).status_code == 200
        with httpx.stream("GET", f"{server.url}/v1/activity/stream", headers=cookie, timeout=60) as response:
            assert list(events(response, 10))[-1] == ("end", "the sign-in has expired")
        problem(httpx.get(f"{server.url}/console/sign-in", headers=cookie), 401, "unauthorized")


def test_the_sign_ins_of_a_tenant_are_bounded(server: LiveServer) -> None:
    first = httpx.post(f"{server.url}/console/sign-in", headers=server.headers).cookies[COOKIE]
    with httpx.Client(base_url=server.url) as client:
        for _ in range(PER_TENANT):
            client.post("/console/sign-in", headers=server.headers).raise_for_status()
            client.cookies.clear()
    problem(httpx.get(f"{server.url}/console/sign-in", headers={"Cookie": f"{COOKIE}={first}"}), 401, "unauthorized")


def test_without_the_console_there_is_no_page_and_no_cookie_counts() -> None:
    with live_server(console=False) as server:
        for path in ("/console", "/console/app.js"):
            problem(httpx.get(f"{server.url}{path}"), 404, "not_found")
        problem(httpx.post(f"{server.url}/console/sign-in", headers=server.headers), 404, "not_found")
        led = httpx.get(f"{server.url}/", headers={"Accept": "text/html"})
        assert led.status_code == 307 and led.headers["location"] == "/docs"
        assert "console" not in httpx.get(f"{server.url}/").json()
        text, _ = server.app.state.server.access.sign_ins.begin(server.app.state.server.access.keys.all()[0])
        problem(httpx.get(f"{server.url}/v1/activity", headers={"Cookie": f"{COOKIE}={text}"}), 401, "unauthorized")


def test_a_sign_in_ends_with_its_keys_time(server: LiveServer) -> None:
    with server.http(server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "brief", "scopes": ["read"], "expires_in_s": 2}).json()
    cookie = {"Cookie": f"{COOKIE}="}
    answer = httpx.post(f"{server.url}/console/sign-in", headers={"Authorization": f"Bearer {made['key']}"})
    cookie["Cookie"] += answer.cookies[COOKIE]
    assert "Max-Age=1" in answer.headers["set-cookie"] or "Max-Age=2" in answer.headers["set-cookie"]
    time.sleep(2.1)
    problem(httpx.get(f"{server.url}/v1/activity", headers=cookie), 401, "unauthorized")
