"""The images' health check distinguishes a server that answers from one that does not."""

from __future__ import annotations

import http.client
import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import trustme

from gradwire_server.health import EXIT_HEALTHY, EXIT_UNHEALTHY, check, connection, main
from tests.live_server import SOURCES, live_server

HEAVY = ("numpy", "pydantic", "fastapi", "uvicorn", "msgspec", "structlog", "gradwire_engine", "gradwire_protocol")


def variables(url: str, host: str = "127.0.0.1") -> dict[str, str]:
    return {"GRADWIRE_HOST": host, "GRADWIRE_PORT": str(urlsplit(url).port)}


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """Something that answers every request alike. Yields its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(240)


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", ""])
def test_a_server_that_answers_is_well(path, host, monkeypatch) -> None:
    with live_server() as server:
        for name, value in variables(server.url, host).items():
            monkeypatch.setenv(name, value)
        assert main([path]) == EXIT_HEALTHY


def test_nobody_listening_is_unwell_and_told(monkeypatch, capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("GRADWIRE_PORT", str(port))
    monkeypatch.delenv("GRADWIRE_HOST", raising=False)
    assert main(["/readyz"]) == EXIT_UNHEALTHY
    assert "refused" in capsys.readouterr().err


def test_a_refusal_is_unwell_and_its_text_is_told() -> None:
    with answering(503, b'{"code": "unavailable"}') as url:
        assert check("/readyz", variables(url), 5) == '/readyz: 503 {"code": "unavailable"}'


def test_a_server_that_accepts_and_is_silent_is_unwell() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        assert "timed out" in (check("/livez", {"GRADWIRE_PORT": port}, 0.2) or "")


def test_a_port_that_is_no_number_is_unwell() -> None:
    assert "http" in (check("/livez", {"GRADWIRE_PORT": "http"}, 0.2) or "")


@pytest.mark.parametrize(
    ("host", "asked"), [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("", "127.0.0.1"), ("10.0.0.7", "10.0.0.7")]
)
def test_every_address_means_loopback_and_one_address_means_itself(host, asked) -> None:
    assert connection({"GRADWIRE_HOST": host}, 1).host == asked


def test_a_server_with_a_certificate_is_asked_by_https() -> None:
    assert isinstance(connection({"GRADWIRE_TLS_CERT": "/run/tls.crt"}, 1), http.client.HTTPSConnection)
    assert not isinstance(connection({}, 1), http.client.HTTPSConnection)


def test_a_server_with_a_certificate_of_a_public_name_is_well_on_loopback(tmp_path) -> None:
    issued = trustme.CA().issue_cert("gradwire.example.com")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(str(cert))
    issued.private_key_pem.write_to_path(str(key))
    with live_server(tls_cert=cert, tls_key=key) as server:
        asked = variables(server.url)
        assert check("/readyz", {**asked, "GRADWIRE_TLS_CERT": str(cert)}, 5) is None
        assert check("/readyz", asked, 5) is not None


def test_the_check_loads_nothing_but_the_standard_library() -> None:
    program = f"import sys, gradwire_server.health; print([name for name in {HEAVY!r} if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


def test_probes_of_a_well_server_leave_the_log_to_others(capfd) -> None:
    with live_server(log_level="info") as server, server.http() as http:
        for path in ("/livez", "/readyz", "/v1/version"):
            assert http.get(path).status_code == 200
    told = capfd.readouterr()
    assert "/v1/version" in told.out + told.err
    assert "/livez" not in told.out + told.err
    assert "/readyz" not in told.out + told.err
