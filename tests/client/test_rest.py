"""The client's REST requests: which it retries, which it does not, and that it logs nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import typer

from gradwire._core.wire.rest import TRIES, RestClient
from gradwire.cli.keys import duration
from gradwire_protocol.errors import ArgumentValueError, TooManyRequests, Unavailable


@contextmanager
def answering(*statuses: tuple[int, str]) -> Iterator[tuple[str, list[str]]]:
    """A server that answers with these statuses and ``Retry-After``, the last one again and again."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, after = statuses[min(len(asked), len(statuses) - 1)]
            asked.append(self.path)
            code = {429: "too_many_requests"}.get(status, "unavailable")
            body = b'{"code": "%s", "detail": "no"}' % code.encode()
            self.send_response(status)
            if after:
                self.send_header("Retry-After", after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join(240)


def test_a_request_is_tried_again_and_nothing_is_printed_about_it(capfd: pytest.CaptureFixture[str]) -> None:
    """A program's standard output is its own: others read it."""
    with answering((503, ""), (502, ""), (200, "")) as (url, asked):
        assert RestClient(url, None).get("/x")["detail"] == "no"
    assert len(asked) == 3
    assert capfd.readouterr() == ("", "")


def test_a_server_that_never_can_is_asked_so_often_and_no_more() -> None:
    with answering((503, "")) as (url, asked):
        with pytest.raises(Unavailable):
            RestClient(url, None).get("/x")
    assert len(asked) == TRIES


@pytest.mark.parametrize(("after", "times"), [("", 1), ("1", 2)])
def test_a_limit_is_waited_for_only_where_the_server_says_how_long(after: str, times: int) -> None:
    with answering((429, after), (429, "")) as (url, asked):
        with pytest.raises(TooManyRequests):
            RestClient(url, None).get("/x")
    assert len(asked) == times


def test_a_url_without_http_is_told_at_once() -> None:
    with pytest.raises(ArgumentValueError, match=r"'127\.0\.0\.1:8000' is not a server URL"):
        RestClient("127.0.0.1:8000", None).get("/x")


@pytest.mark.parametrize("text", ["soon", "-3d", "0", "nan", "inf", "1e300d", ""])
def test_what_is_no_time_for_a_key_to_expire_is_refused_before_it_is_sent(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="invalid duration"):
        duration(text)
