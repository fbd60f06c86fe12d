"""``gradwire doctor`` against servers that are well, wrong, silent or something else, by its command."""

from __future__ import annotations

import datetime
import http.server
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from rich.cells import cell_len
from tests.live_server import SOURCES, LiveServer, live_server
from typer.testing import CliRunner

from gradwire.cli.doctor import address, answering, machine
from gradwire.cli.doctor.certificate import UnreadableCertificate, validity
from gradwire.cli.doctor.examination import CHECKS, Examination
from gradwire.cli.doctor.findings import Status, without
from gradwire.cli.doctor.patience import TookTooLong, within
from gradwire.cli.main import app

SECRET = "gw_a_key_that_must_never_be_printed"


def run(*arguments: str, timeout: float = 60, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a user does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    environment |= {"PYTHONPATH": SOURCES, "COLUMNS": "80", "GRADWIRE_COMPILED_KERNELS": "off", **variables}
    return subprocess.run(
        [sys.executable, "-m", "gradwire", "doctor", *arguments],
        capture_output=True, text=True, env=environment, timeout=timeout,
    )  # fmt: skip


def examine(*arguments: str, **variables: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """The exit code and the checks by name; whatever happens, there is no traceback and no key."""
    runner = CliRunner()
    environment = dict.fromkeys(("GRADWIRE_URL", "GRADWIRE_API_KEY", "GRADWIRE_CA_FILE"), None) | variables
    done = runner.invoke(app, ["doctor", "--json", *arguments], env=environment)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output
    told = json.loads(done.stdout)
    checks = {row["check"]: row for row in told["checks"]}
    assert [row["check"] for row in told["checks"]] == list(CHECKS)
    assert told["ok"] == (done.exit_code == 0) == all(row["status"] != "failure" for row in told["checks"])
    for row in told["checks"]:
        assert (row["status"] in ("failure",)) <= bool(row["advice"]), row
    return done.exit_code, checks, done.output


def failing(checks: dict[str, dict[str, Any]]) -> list[str]:
    return [name for name, row in checks.items() if row["status"] == "failure"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server(data_dir=tmp_path_factory.mktemp("data"), compiled_kernels="off") as running:
        yield running


# A server that is well


def test_a_server_that_is_well_passes_every_check(server: LiveServer) -> None:
    code, checks, output = examine("--url", server.url, "--api-key", server.api_key)
    assert code == 0
    assert {row["status"] for row in checks.values()} == {"ok"}, output
    assert checks["versions"]["facts"]["server"] == checks["versions"]["facts"]["client"]
    assert checks["bandwidth"]["facts"]["up_bytes_per_s"] > 1e6
    assert checks["disk"]["facts"]["kind"] == "directory" and checks["disk"]["facts"]["free_bytes"] > 0
    assert abs(checks["clock"]["facts"]["ahead_s"]) <= 2
    assert server.api_key not in output
    with server.http() as client:
        assert client.get("/v1/sessions").json()["sessions"] == []


def test_without_a_url_the_embedded_server_is_examined_and_stopped() -> None:
    done = run(timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "programs start an embedded server" in done.stdout
    assert done.stderr == ""
    names = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("OK ")]
    assert names == list(CHECKS)
    assert f"{len(CHECKS)} OK" in done.stdout


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_terminal(server: LiveServer, columns: int) -> None:
    done = run("--url", server.url, "--api-key", server.api_key, COLUMNS=str(columns))
    assert done.returncode == 0, done.stderr
    assert max(cell_len(line.rstrip()) for line in done.stdout.splitlines()) <= columns
    assert "\x1b" not in done.stdout


def test_leaving_in_the_middle_deletes_the_session(server: LiveServer) -> None:
    findings = Examination(server.url, "--url", server.api_key, "--api-key", 5.0).findings()
    assert next(finding for finding in findings if finding.check == "session").status is Status.OK
    with server.http() as client:
        assert len(client.get("/v1/sessions").json()["sessions"]) == 1
        findings.close()
        assert client.get("/v1/sessions").json()["sessions"] == []


def test_an_interrupt_ends_it_without_a_traceback() -> None:
    with listening(silent) as url:
        process = subprocess.Popen(
            [sys.executable, "-m", "gradwire", "doctor", "--url", url, "--api-key", SECRET, "--timeout", "30"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": SOURCES},
        )  # fmt: skip
        assert process.stdout is not None
        while not process.stdout.readline().startswith("OK       tls"):
            pass
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=20)
    assert process.returncode != 0
    assert "Traceback" not in rest + said and SECRET not in rest + said


def test_a_gateway_of_a_fleet_does_not_count_sessions() -> None:
    told = {"key": {"id": "k_1", "scopes": ["session"], "expires_at": None}, "sessions": None,
            "limits": {"max_sessions": 64, "max_session_bytes": 1, "max_tensor_bytes": 1}}  # fmt: skip
    assert answering.check_limits(told).status is Status.OK
    assert machine.check_gpu(None, [], embedded=False).status is Status.SKIPPED
    assert machine.check_kernels(None, {}).status is Status.SKIPPED


# Keys


def test_a_wrong_key_is_a_failure_and_not_printed(server: LiveServer) -> None:
    for variables, arguments in (({"GRADWIRE_API_KEY": SECRET}, ()), ({}, ("--api-key", SECRET))):
        code, checks, output = examine("--url", server.url, *arguments, **variables)
        assert code == 1 and failing(checks) == ["key"]
        assert "unknown API key" in checks["key"]["text"]
        assert SECRET not in output
        assert ("--api-key" if arguments else "GRADWIRE_API_KEY") in checks["key"]["advice"]
        assert checks["clock"]["status"] == "ok" and checks["latency"]["status"] == "ok"
        assert checks["session"]["status"] == "skipped"
    shown = run("--url", server.url, "--api-key", SECRET)
    assert shown.returncode == 1 and "FAILURE  key" in shown.stdout and SECRET not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "no key is given"),
        (f"{SECRET}\n", "blanks or quotes"),
        (f'"{SECRET}"', "blanks or quotes"),
        (f"{SECRET}é", "characters that no key has"),
        (f"Bearer_{SECRET}", "begins with Bearer"),
    ],
)
def test_a_key_of_a_wrong_form_is_told_without_being_printed(server: LiveServer, key: str, said: str) -> None:
    code, checks, output = examine("--url", server.url, GRADWIRE_API_KEY=key)
    assert code == 1 and failing(checks) == ["key"]
    assert said in checks["key"]["text"]
    assert SECRET not in output


def test_a_key_that_may_only_read_is_told_what_programs_need(server: LiveServer) -> None:
    with server.http(server.admin_key) as admin:
        made = admin.post("/v1/keys", json={"name": "reader", "scopes": ["read"]}).json()
        only = admin.post("/v1/keys", json={"name": "operator", "scopes": ["admin"]}).json()
    code, checks, output = examine("--url", server.url, "--api-key", made["key"])
    assert code == 0
    assert checks["session"]["status"] == "warning" and "scope session" in checks["session"]["advice"]
    assert checks["stream"]["status"] == checks["bandwidth"]["status"] == "skipped"
    assert checks["limits"]["facts"]["key"]["scopes"] == ["read"]
    assert made["key"] not in output
    code, checks, _ = examine("--url", server.url, "--api-key", only["key"])
    assert code == 1 and "scope session" in checks["key"]["advice"]


def test_a_key_that_expires_soon_and_a_full_quota_are_warnings(server: LiveServer) -> None:
    with server.http(server.admin_key) as admin:
        made = admin.post(
            "/v1/keys", json={"name": "short", "expires_in_s": 3600, "quotas": {"max_key_sessions": 1}}
        ).json()
    code, checks, _ = examine("--url", server.url, "--api-key", made["key"])
    assert code == 0 and checks["limits"]["status"] == "warning" and "expires" in checks["limits"]["text"]
    assert "0 of 1 sessions" in checks["limits"]["text"]
    with server.http(made["key"]) as client:
        client.post("/v1/sessions", json={})
        code, checks, _ = examine("--url", server.url, "--api-key", made["key"])
        assert code == 1 and failing(checks) == ["session"]
        assert "gradwire sessions kill" in checks["session"]["advice"]


# URLs


@pytest.mark.parametrize(
    ("url", "check", "said"),
    [
        ("ws://gpu-box:8000/v1/sessions/s_1/stream", "url", "write http://gpu-box:8000:"),
        ("wss://gpu-box/stream", "url", "write https://gpu-box/stream:"),
        ("gpu-box:8000", "url", "http://gpu-box:8000"),
        ("gpu-box", "url", "http://gpu-box"),
        ("ftp://gpu-box", "url", "http://HOST:PORT"),
        ("http://", "url", "http://HOST:PORT"),
        ("http://gpu-box:port", "url", "http://HOST:PORT"),
        ("http://[::1", "url", "http://HOST:PORT"),
        (f"http://gpu-box:8000/?key={SECRET}", "url", "never in the URL"),
        (" 'http://gpu-box'", "url", "without them"),
        ("http://no-such-host.invalid:8000", "address", "spelling"),
    ],
)
def test_a_url_of_a_wrong_form_gets_the_right_one(url: str, check: str, said: str) -> None:
    code, checks, output = examine("--url", url, "--api-key", SECRET, "--timeout", "3")
    assert code == 1 and failing(checks) == [check]
    assert said in checks[check]["advice"], checks[check]
    assert SECRET not in output


def test_the_url_of_a_route_is_a_warning(server: LiveServer) -> None:
    """A proxy may publish a server below /v1, so that it cannot be refused."""
    code, checks, _ = examine("--url", f"{server.url}/v1", "--api-key", server.api_key)
    assert checks["url"]["status"] == "warning" and checks["url"]["advice"].endswith(f"write {server.url}")
    assert code == 1 and failing(checks) == ["server"]


def test_a_password_in_the_url_is_not_printed(server: LiveServer) -> None:
    url = server.url.replace("http://", "http://somebody:hunter22@")
    _, checks, output = examine("--url", url, "--api-key", server.api_key)
    assert "hunter22" not in output and checks["url"]["status"] == "warning"


def test_nothing_listens_on_a_wrong_port() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code, checks, _ = examine("--url", f"http://127.0.0.1:{port}", "--api-key", SECRET)
    assert code == 1 and failing(checks) == ["address"]
    assert "nothing listens" in checks["address"]["text"] and "gradwire serve" in checks["address"]["advice"]


def test_a_proxy_is_told_without_its_password(server: LiveServer) -> None:
    _, checks, output = examine(
        "--url", "http://gpu-box.invalid:8000", "--api-key", SECRET, "--timeout", "1",
        http_proxy="http://me:hunter22@127.0.0.1:9", no_proxy="",
    )  # fmt: skip
    assert checks["address"]["status"] == "warning" and "NO_PROXY" in checks["address"]["advice"]
    assert "hunter22" not in output


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def certified(authority: trustme.CA, folder: Path, until: datetime.datetime, name: str = "127.0.0.1") -> dict[str, str]:
    issued = authority.issue_cert(name, not_after=until)
    files = {"tls_cert": folder / "cert.pem", "tls_key": folder / "key.pem"}
    issued.private_key_pem.write_to_path(str(files["tls_key"]))
    for pem in issued.cert_chain_pems:
        pem.write_to_path(str(files["tls_cert"]), append=True)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return {name: str(path) for name, path in files.items()}


@pytest.mark.parametrize(
    ("days", "name", "status", "said"),
    [
        (400, "127.0.0.1", "ok", "trusted until"),
        (5, "127.0.0.1", "warning", "5 days"),
        (-3, "127.0.0.1", "failure", "expired on"),
        (400, "localhost", "failure", "for another name than 127.0.0.1"),
    ],
)
def test_certificates(authority: trustme.CA, tmp_path: Path, days: int, name: str, status: str, said: str) -> None:
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days, hours=1)
    with live_server(**certified(authority, tmp_path, until, name)) as secure:
        ca = str(tmp_path / "ca.pem")
        code, checks, _ = examine("--url", secure.url, "--api-key", secure.api_key, GRADWIRE_CA_FILE=ca)
        assert checks["tls"]["status"] == status and said in checks["tls"]["text"], checks["tls"]
        assert code == (status == "failure")
        if status == "ok":
            assert {row["status"] for row in checks.values()} == {"ok"}
            _, checks, _ = examine("--url", secure.url, "--api-key", secure.api_key)
            assert failing(checks) == ["tls"] and "GRADWIRE_CA_FILE" in checks["tls"]["advice"]
            _, checks, _ = examine("--url", secure.url, "--api-key", SECRET, GRADWIRE_CA_FILE=__file__)
            assert failing(checks) == ["tls"] and __file__ in checks["tls"]["text"]
            plain = secure.url.replace("https://", "http://")
            _, checks, output = examine("--url", plain, "--api-key", SECRET)
            assert failing(checks) == ["server"] and checks["server"]["advice"] == f"write {secure.url}", output


def test_https_where_the_server_has_no_tls(server: LiveServer) -> None:
    url = server.url.replace("http://", "https://")
    _, checks, _ = examine("--url", url, "--api-key", SECRET)
    assert failing(checks) == ["tls"] and checks["tls"]["advice"] == f"write {server.url}"


def test_the_validity_is_read_as_cryptography_reads_it(authority: trustme.CA) -> None:
    from cryptography import x509

    for year in (2031, 2049, 2050, 2120):
        until = datetime.datetime(year, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
        pem = authority.issue_cert("a.example", not_after=until).cert_chain_pems[0].bytes().decode()
        der = ssl.PEM_cert_to_DER_cert(pem)
        known = x509.load_der_x509_certificate(der)
        assert validity(der) == (known.not_valid_before_utc, known.not_valid_after_utc)
    for cut in (*range(0, 300, 7), len(der) - 1):
        with pytest.raises(UnreadableCertificate):
            validity(der[:cut])


# What is no gradwire server


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A listener on loopback, and its URL. ``answer`` is called in a thread for each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def silent(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    time.sleep(30)


def drip(connection: socket.socket) -> None:
    """Answer byte by byte, so that no single read takes long."""
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    try:
        for _ in range(300):
            connection.sendall(b"X-A: b\r\n")
            time.sleep(0.1)
    except OSError:
        pass


def hang_up(connection: socket.socket) -> None:
    connection.close()


def gibberish(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"\x00\xff SSH-2.0-OpenSSH\r\n\r\n")
    connection.close()


def endless(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            connection.sendall(b"[" * (1 << 20))
    except OSError:
        pass


def web_page(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    body = b"<h1>Welcome</h1>\x1b[31m"
    head = f"HTTP/1.1 200 OK\r\nServer: nginx/1.2\x1b[2J\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    connection.close()


def redirect(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 301 Moved\r\nLocation: https://elsewhere/readyz\r\nContent-Length: 0\r\n\r\n")
    connection.close()


def broken_proxy(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nServer: nginx\r\nContent-Length: 0\r\n\r\n")
    connection.close()


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (silent, "no answer within"), (drip, "no answer within"), (hang_up, ""), (gibberish, ""), (endless, ""),
        (web_page, "HTTP 200 from nginx"), (redirect, "https://elsewhere"), (broken_proxy, "HTTP 502"),
    ],
)  # fmt: skip
def test_what_is_no_server_is_a_failure_in_bounded_time(
    answer: Callable[[socket.socket], None], said: str, secure: bool
) -> None:
    with listening(answer) as url:
        began = time.monotonic()
        address = url.replace("http://", "https://") if secure else url
        code, checks, output = examine("--url", address, "--api-key", SECRET, "--timeout", "0.7")
        assert time.monotonic() - began < 12
    assert code == 1 and failing(checks) == ["tls" if secure else "server"]
    if not secure:
        assert said in checks["server"]["text"]
    assert SECRET not in output and "\x1b" not in output


class Odd(http.server.BaseHTTPRequestHandler):
    """Answers as a server does, but for one route."""

    odd: dict[str, bytes] = {}

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = {"/readyz": b'{"status":"ready"}', "/livez": b'{"status":"alive"}'} | self.odd
        self.send_response(200 if self.path in body else 404)
        content = body.get(self.path, b"")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET
    do_DELETE = do_GET
    do_PUT = do_GET


@pytest.mark.parametrize(
    ("version", "check", "status"),
    [
        (b"[]", "key", "failure"),
        (b"not json", "key", "failure"),
        (b'{"name": "gradwire", "version": "9.0", "protocol": 0}', "versions", "failure"),
        (b'{"name": "gradwire", "version": "9.0", "protocol": 99}', "versions", "warning"),
        (b'{"name": "gradwire", "version": "9.0\\u001b[2J", "protocol": 1}', "versions", "warning"),
        (b'{"name": "gradwire", "version": "9.0", "protocol": "one"}', "versions", "failure"),
    ],
)
def test_odd_answers_end_in_a_finding(version: bytes, check: str, status: str) -> None:
    handler = type("Handler", (Odd,), {"odd": {"/v1/version": version, "/v1/sessions": b"{}", "/v1/devices": b"[1]"}})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as odd:
        threading.Thread(target=odd.serve_forever, daemon=True).start()
        code, checks, output = examine("--url", f"http://127.0.0.1:{odd.server_port}", "--api-key", SECRET)
        odd.shutdown()
    assert code == 1 and checks[check]["status"] == status
    assert SECRET not in output and "\x1b" not in output


def test_clocks_that_differ_are_a_warning() -> None:
    class Late(Odd):
        odd = {"/v1/version": b"{}"}

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(time.time() - 90)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Late) as late:
        threading.Thread(target=late.serve_forever, daemon=True).start()
        _, checks, _ = examine("--url", f"http://127.0.0.1:{late.server_port}", "--api-key", SECRET)
        late.shutdown()
    assert checks["clock"]["status"] == "warning" and "behind" in checks["clock"]["text"]
    assert -92 < checks["clock"]["facts"]["ahead_s"] < -88


# Single checks, where no such machine is at hand


CUDA = {"cupy": "13.4.0", "driver": "12.4", "runtime": "12.2", "problem": ""}
GPU_ROWS = [{"name": "cpu"}, {"name": "cuda:0"}]


@pytest.mark.parametrize(
    ("change", "rows", "status", "said"),
    [
        ({}, GPU_ROWS, Status.OK, "CuPy 13.4.0"),
        ({"runtime": "13.0"}, GPU_ROWS, Status.WARNING, "gradwire[cuda12]"),
        ({"problem": "cudaErrorNoDevice"}, GPU_ROWS[:1], Status.WARNING, "--gpus all"),
        ({}, GPU_ROWS[:1], Status.WARNING, "CUDA_VISIBLE_DEVICES"),
        ({"cupy": None, "problem": "libnvrtc.so.12 is missing"}, GPU_ROWS[:1], Status.WARNING, "install CuPy"),
        ({"cupy": None}, GPU_ROWS[:1], Status.OK, "no CuPy"),
    ],
)
def test_cupy_and_driver(change: dict[str, Any], rows: list[dict[str, Any]], status: Status, said: str) -> None:
    found = machine.check_gpu(CUDA | change, rows, embedded=False)
    assert found.status is status and said in found.text + found.advice


KERNELS = {"mode": "auto", "state": "ready", "reason": "", "kept": True, "complete": True}


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({}, Status.OK, "loaded"),
        ({"state": None}, Status.OK, "in the cache"),
        ({"mode": "off", "state": "idle", "kept": None}, Status.OK, "turned off"),
        ({"state": "failed", "reason": "ImportError: numba"}, Status.WARNING, "numba"),
        ({"state": None, "kept": None, "complete": None, "reason": "No module named 'numba'"}, Status.WARNING, "numba"),
        ({"kept": False}, Status.WARNING, "GRADWIRE_CACHE_DIR"),
        ({"state": "preparing", "complete": False}, Status.WARNING, "warm"),
        ({"state": None, "complete": False}, Status.WARNING, "warm"),
    ],
)
def test_compiled_kernels(change: dict[str, Any], status: Status, said: str) -> None:
    found = machine.check_kernels(KERNELS | change, {})
    assert found.status is status and said in found.text + found.advice


DISK = {
    "kind": "directory",
    "durability": "applied",
    "total_bytes": 100 << 30,
    "free_bytes": 50 << 30,
    "writable": True,
}


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({}, Status.OK, "50.0 GiB of 100 GiB"),
        ({"free_bytes": 1 << 20}, Status.WARNING, "make room"),
        ({"writable": False}, Status.FAILURE, "GRADWIRE_DATA_DIR"),
        ({"kind": "shared", "total_bytes": None, "free_bytes": None, "writable": None}, Status.OK, "shared storage"),
    ],
)
def test_disks(change: dict[str, Any], status: Status, said: str) -> None:
    found = machine.check_disk(DISK | change, {"max_data_bytes": 1 << 30}, embedded=False)
    assert found.status is status and said in found.text + found.advice


def test_full_memory_of_a_device_is_a_warning() -> None:
    row = {"name": "cuda:0", "model": "H100", "total_bytes": 80 << 30, "free_bytes": 1 << 30, "multiprocessors": 132}
    assert machine.check_devices([row]).status is Status.WARNING
    assert machine.check_devices([row | {"free_bytes": 70 << 30}]).status is Status.OK


def test_without_a_server_installed_the_url_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SERVER_MODULES", ("gradwire_server", "a_module_that_is_not_there"))
    code, checks, _ = examine()
    assert code == 1 and failing(checks) == ["url"]
    assert "pip install 'gradwire[server]'" in checks["url"]["advice"]


def test_another_server_on_the_default_port_is_named(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "LOCAL", ("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
    _, checks, _ = examine()
    assert f"something listens at {server.url}" in checks["url"]["text"]


def test_a_call_that_takes_too_long_is_left() -> None:
    began = time.monotonic()
    with pytest.raises(TookTooLong):
        within(0.05, lambda: time.sleep(5))
    assert time.monotonic() - began < 2
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)
    assert within(5, lambda: None) is None


def test_secrets_are_removed_at_any_depth() -> None:
    told = without([SECRET, "a"], {"text": f"x{SECRET}y", "facts": {"rows": [{SECRET: [SECRET, 1, None]}]}})
    assert SECRET not in json.dumps(told) and told["text"] == "x(key)y"


def test_the_page_says_for_every_check_what_to_do() -> None:
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert rows == list(CHECKS)
