"""Errors that a new user meets first say what to set, and typos what was meant."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from tests.live_server import SOURCES, live_server

import gradwire
from gradwire_protocol.errors import ArgumentValueError, Unauthorized, Unavailable
from gradwire_server import cli


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADWIRE_PATIENCE", "0.1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable) as met:
        gradwire.connect(f"http://127.0.0.1:{port}")
    assert f"'gradwire serve --port {port}', or set GRADWIRE_URL" in str(met.value)


def test_a_key_that_is_refused() -> None:
    with live_server() as server, pytest.raises(Unauthorized, match=r"set GRADWIRE_API_KEY to a key of .*, or pass"):
        gradwire.connect(server.url, "wrong")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ws://h:1/x", "'ws://h:1/x' is the address of a WebSocket; give the server's URL, http://h:1/x:"),
        ("wss://h", "'wss://h' is the address of a WebSocket; give the server's URL, https://h:"),
        ("127.0.0.1:8000", "'127.0.0.1:8000' is not a server URL: .*http://127.0.0.1:8000?"),
        ("ftp://h", "'ftp://h' is not a server URL: it must begin with http:// or https://"),
        ("http://", "'http://' is not a server URL: a host must follow"),
        ("http://h:99999", "'http://h:99999' is not a server URL: Port out of range"),
    ],
)
def test_a_url_that_is_none_of_a_server(url: str, said: str) -> None:
    with pytest.raises(ArgumentValueError, match=said.replace("?", r"\?")):
        gradwire.connect(url)


def test_the_server_in_a_thin_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name in ("fastapi", "uvicorn") else object())
    for arguments in ([], ["keys", "list"], ["--version"]):
        assert cli.main(arguments) == 1
        assert capsys.readouterr().err == (
            "gradwire-server: the server is not installed, only the client: fastapi, uvicorn cannot be imported. Run: "
            "pip install 'gradwire[server]'\n"
        )


TYPOS = {
    "torch.rnad": "the nearest name is gradwire.rand",
    "torch.ones(2).sumn": "Did you mean: 'sum'?",
    "torch.nn.Linaer": "the nearest name is gradwire.nn.Linear",
    "torch.nn.functional.rleu": "the nearest name is gradwire.nn.functional.relu",
    "torch.nn.Linear(2, 2).wieght": "Did you mean: 'weight'?",
    "torch.optim.Adma": "the nearest name is gradwire.optim.Adam",
    "torch.linalg.slove": "the nearest name is gradwire.linalg.solve",
}


def test_a_typo_gets_a_suggestion() -> None:
    program = f"""
import sys, traceback
import gradwire as torch
for typo in {list(TYPOS)!r}:
    try:
        eval(typo)
    except AttributeError:
        sys.excepthook(*sys.exc_info())
"""
    environment = os.environ | {"PYTHONPATH": SOURCES, "GRADWIRE_COMPILED_KERNELS": "off"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert not done.returncode
    for said in TYPOS.values():
        assert said in done.stderr
