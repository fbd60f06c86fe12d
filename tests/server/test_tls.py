"""TLS in the server, and the server behind a proxy: addresses, path prefixes and streams are right."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import trustme
from cryptography import x509
from websockets.sync.client import connect

import gradwire
from gradwire._core.wire import tls
from gradwire_protocol.errors import ArgumentError, Unavailable
from gradwire_server.cli import main
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer, live_server

from .exchange import Peer, binary, problem

# Certificates


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files with a certificate for this machine's loopback, its key, its authority, and a strange authority."""
    folder = tmp_path_factory.mktemp("certificates")
    found = {name: folder / f"{name}.pem" for name in ("cert", "key", "ca", "stranger")}
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_pem.write_to_path(str(found["key"]))
    for pem in issued.cert_chain_pems:
        pem.write_to_path(str(found["cert"]), append=True)
    authority.cert_pem.write_to_path(str(found["ca"]))
    trustme.CA().cert_pem.write_to_path(str(found["stranger"]))
    return found


@pytest.fixture(scope="module")
def secure(files: dict[str, Path]) -> Iterator[LiveServer]:
    with live_server(tls_cert=files["cert"], tls_key=files["key"]) as server:
        yield server


def test_the_url_says_that_it_is_secure(secure: LiveServer) -> None:
    assert secure.url.startswith("https://127.0.0.1:")


def test_a_program_trains_over_tls(secure: LiveServer, files: dict[str, Path]) -> None:
    session = gradwire.connect(secure.url, secure.api_key, ca=files["ca"])
    try:
        x = gradwire.tensor([1.0, 2.0], requires_grad=True)
        (x * x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])
        large = np.arange(1_500_000, dtype=np.float32)
        np.testing.assert_array_equal(gradwire.tensor(large).numpy(), large)
    finally:
        session.close()


def test_the_authority_comes_from_the_environment(
    secure: LiveServer, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "_files", {})
    monkeypatch.setenv("GRADWIRE_CA_FILE", str(files["ca"]))
    gradwire.connect(secure.url, secure.api_key).close()


@pytest.mark.parametrize("ca", [None, "stranger"])
def test_a_certificate_nobody_vouches_for_is_refused_with_the_way_out(
    secure: LiveServer, files: dict[str, Path], ca: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "_files", {})
    with pytest.raises(Unavailable, match=r"not trusted here: .*connect\(ca=.*GRADWIRE_CA_FILE"):
        gradwire.connect(secure.url, secure.api_key, ca=None if ca is None else files[ca])
    with pytest.raises(Unavailable, match="not trusted here"):  # the same from the stream, where it is a session's
        gradwire.connect(secure.url, secure.api_key, session="s_1", patience=1, ca=files["stranger"])


def test_a_certificate_of_another_host_is_refused(
    authority: trustme.CA, files: dict[str, Path], tmp_path: Path
) -> None:
    issued, cert, key = authority.issue_cert("elsewhere.example"), tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.private_key_and_cert_chain_pem.write_to_path(str(cert))
    issued.private_key_pem.write_to_path(str(key))
    with live_server(tls_cert=cert, tls_key=key) as server, pytest.raises(Unavailable, match="not trusted here"):
        gradwire.connect(server.url, server.api_key, ca=files["ca"])


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_is_no_authority_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ArgumentError, match=r"ca\.pem"):
        gradwire.connect("https://127.0.0.1:1", "key", ca=path)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_versions_of_tls_are_not_spoken(
    secure: LiveServer, files: dict[str, Path], version: ssl.TLSVersion
) -> None:
    context = ssl.create_default_context(cafile=str(files["ca"]))
    context.set_ciphers("ALL:@SECLEVEL=0")  # or this side would refuse
    context.minimum_version = context.maximum_version = version
    port = int(secure.url.rsplit(":", 1)[-1])
    with socket.create_connection(("127.0.0.1", port), 10) as raw:
        if version is ssl.TLSVersion.TLSv1_1:
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(raw, server_hostname="127.0.0.1")
        else:
            with context.wrap_socket(raw, server_hostname="127.0.0.1") as spoken:
                assert spoken.version() == version.name.replace("_", ".").replace("TLSv1.", "TLSv1.")


def serial(server: LiveServer) -> int:
    """The serial number of the certificate that a new connection is shown."""
    port = int(server.url.rsplit(":", 1)[-1])
    shown = ssl.get_server_certificate(("127.0.0.1", port), timeout=10)
    return x509.load_pem_x509_certificate(shown.encode()).serial_number


def test_a_renewed_certificate_serves_new_connections_and_half_a_one_does_not(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradwire_server.http.certificate.LOOK_EVERY_S", 0.02)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    first, second = (authority.issue_cert("127.0.0.1") for _ in range(2))
    first.cert_chain_pems[0].write_to_path(str(cert))
    first.private_key_pem.write_to_path(str(key))
    with live_server(tls_cert=cert, tls_key=key) as server:
        before = serial(server)
        second.cert_chain_pems[0].write_to_path(str(cert))
        time.sleep(0.2)
        assert serial(server) == before, "its key is still the old one"
        second.private_key_pem.write_to_path(str(key))
        deadline = time.monotonic() + 120
        while serial(server) == before:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_plain_http_on_a_secure_port_is_not_answered(secure: LiveServer) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(secure.url.replace("https", "http") + "/livez")


def test_a_certificate_without_its_key_ends_the_start(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRADWIRE_API_KEYS", "some-key")
    monkeypatch.setenv("GRADWIRE_TLS_CERT", str(files["cert"]))
    assert main(["--port", "0"]) == 2
    assert "GRADWIRE_TLS_KEY" in capsys.readouterr().err
    monkeypatch.setenv("GRADWIRE_TLS_KEY", str(tmp_path / "missing.pem"))
    assert main(["--port", "0"]) == 2
    assert "GRADWIRE_TLS_KEY" in capsys.readouterr().err


def test_a_key_of_another_certificate_ends_the_start(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_pem.write_to_path(str(other))
    for name, path in (("CERT", files["cert"]), ("KEY", other)):
        monkeypatch.setenv(f"GRADWIRE_TLS_{name}", str(path))
    monkeypatch.setattr("gradwire_server.observability.logging.configure", lambda _: None)  # pytest has the log
    assert main(["--port", "0"]) == 2
    assert "GRADWIRE_TLS_CERT" in capsys.readouterr().err


# Proxies


class Proxy:
    """A reverse proxy: takes a path prefix off (or leaves it), and adds the headers that proxies add.

    It looks at the head of a connection only and then passes bytes, so each connection is good for one request.
    """

    def __init__(self, target: str, prefix: str, strips: bool, headers: dict[str, str]) -> None:
        self._target = ("127.0.0.1", int(target.rsplit(":", 1)[-1].partition("/")[0]))
        self._prefix, self._strips, self._headers = prefix, strips, headers
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}{prefix}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target, 10) as server:
            data = b""
            while b"\r\n\r\n" not in data:
                if not (piece := client.recv(65536)):
                    return
                data += piece
            head, _, rest = data.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, version = first.split(" ")
            if self._strips:
                path = path.removeprefix(self._prefix)
            kept = [line for line in lines if not line.lower().startswith(("connection: keep-alive", "x-forwarded"))]
            if not any(line.lower().startswith("upgrade:") for line in lines):
                kept.append("Connection: close")
            kept += [f"{name}: {value}" for name, value in self._headers.items()]
            server.sendall("\r\n".join([f"{method} {path} {version}", *kept]).encode("latin-1") + b"\r\n\r\n" + rest)
            back = threading.Thread(target=self._pass, args=(server, client), daemon=True)
            back.start()
            self._pass(client, server)
            back.join(240)

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        try:
            while piece := source.recv(65536):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


FORWARDED = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}


@contextmanager
def behind(strips: bool = True, prefix: str = "/gw", **settings: Any) -> Iterator[tuple[LiveServer, Proxy]]:
    """A server, and a proxy in front of it that shows it under a prefix."""
    with live_server(root_path=prefix, **settings) as server:
        proxy = Proxy(server.url, prefix, strips, FORWARDED)
        try:
            yield server, proxy
        finally:
            proxy.close()


@pytest.mark.parametrize("strips", [True, False], ids=["prefix taken off", "prefix left"])
def test_everything_leads_back_through_the_proxy(strips: bool) -> None:
    with behind(strips) as (server, proxy), httpx.Client(headers=server.headers) as http:
        made = http.post(f"{proxy.url}/v1/sessions")
        assert made.status_code == 201, made.text
        location = made.headers["location"]
        assert location.startswith("/gw/v1/sessions/")
        outside = proxy.url.removesuffix("/gw")
        assert http.get(outside + location).json()["id"] == made.json()["id"]
        found = problem(http.get(f"{proxy.url}/v1/sessions/none"), 404, "not_found")
        assert found["instance"] == "/gw/v1/sessions/none"
        problem(http.get(f"{proxy.url}/v1/nothing"), 404, "not_found")
        assert httpx.get(f"{proxy.url}/livez").status_code == 200
        document = httpx.get(f"{proxy.url}/openapi.json").json()
        assert document["servers"] == [{"url": "/gw"}]
        assert "/v1/sessions" in document["paths"]
        assert 'data-document="openapi.json' in httpx.get(f"{proxy.url}/docs").text
        http.delete(outside + location)


@pytest.mark.parametrize("strips", [True, False], ids=["prefix taken off", "prefix left"])
def test_scopes_hold_under_a_prefix(strips: bool) -> None:
    with behind(strips) as (server, proxy):
        problem(httpx.get(f"{proxy.url}/metrics", headers=server.headers), 403, "forbidden")
        assert httpx.get(f"{proxy.url}/metrics", headers={"X-API-Key": server.admin_key}).status_code == 200
        problem(httpx.get(f"{proxy.url}/v1/sessions"), 401, "unauthorized")


@pytest.mark.parametrize("strips", [True, False], ids=["prefix taken off", "prefix left"])
def test_a_stream_and_a_program_go_through_the_proxy(strips: bool) -> None:
    with behind(strips) as (server, proxy):
        made = httpx.post(f"{proxy.url}/v1/sessions", headers=server.headers).json()
        url = proxy.url.replace("http", "ws", 1) + f"/v1/sessions/{made['id']}/stream"
        with connect(url, additional_headers=server.headers, compression=None) as socket_:
            peer = Peer(socket_)
            peer.hello()
            peer.send(binary(1, [["full", [[2], "float"]]], [0], scalars=[1.5]))
            assert peer.reply()[0].errors == []
        session = gradwire.connect(proxy.url, server.api_key)
        try:
            assert (gradwire.tensor([1.0, 2.0]) * 3).tolist() == [3.0, 6.0]
        finally:
            session.close()


@pytest.mark.parametrize("trusted", [("127.0.0.1",), ("127.0.0.0/8",), (), ("10.0.0.0/8",)])
def test_addresses_are_believed_of_trusted_proxies_only(trusted: tuple[str, ...], tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with behind(trusted_proxies=trusted, audit_log=log) as (server, proxy):
        httpx.post(f"{proxy.url}/v1/sessions", headers={**server.headers, "X-Forwarded-For": "198.51.100.7"})
    addresses = {json.loads(line)["address"] for line in log.read_text().splitlines()}
    assert addresses == {"203.0.113.9" if trusted and trusted[0].startswith("127") else "127.0.0.1"}


@pytest.mark.parametrize("given", ["*", "proxy.example", "10.0.0.0/99"])
def test_a_proxy_is_an_address_or_a_network(given: str) -> None:
    with pytest.raises(ValueError, match="trusted_proxies"):
        Settings(trusted_proxies=given)


@pytest.mark.parametrize("given", ["gw", "/a b", "/a?b", "/a/../b", "/a//b", "/%61"])
def test_a_prefix_is_a_plain_path(given: str) -> None:
    with pytest.raises(ValueError, match="root_path"):
        Settings(root_path=given)


def test_a_prefix_ends_without_a_slash() -> None:
    assert Settings(root_path="/gw/").root_path == "/gw"
    assert Settings(root_path="/").root_path == ""
