"""Errors for unusable settings name the variable, its value and the allowed values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gradwire_server.cli import main
from gradwire_server.settings.refused_settings import describe_errors, unknown_variables
from gradwire_server.settings.settings import Settings, variable

NUMBERS = [name for name, field in Settings.model_fields.items() if field.annotation in (int, float)]
OTHERS = {
    "durability": "one of none, applied, durable",
    "session_host": "one of inline, process, ray",
    "autoscaling": "true or false",
    "direct": "true or false",
    "shared_keys": "true or false",
    "compiled_kernels": "one of auto, off, wait",
    "console": "true or false",
    "nccl": "true or false",
    "plans": "one of on, off",
    "worker_per": "one of key, session",
    "log_level": "one of debug, info, warning, error",
    "log_format": "one of console, json",
    "allowed_origins": "a scheme and a host",
    "tls_cert": "an existing file",
    "tls_key": "an existing file",
    "trusted_proxies": "addresses or networks",
    "root_path": "plain segments",
    "trace_endpoint": "a URL",
}
ANYTHING = {"host", "api_keys", "admin_keys", "default_device", "data_dir", "store", "cache_dir", "audit_log"}
"""Looked at later, or free text."""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GRADWIRE_")]:
        monkeypatch.delenv(name)


def refusal(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> str:
    """What is describe_errors of one setting."""
    monkeypatch.setenv(variable(name), value)
    with pytest.raises(ValidationError) as caught:
        Settings()
    (line,) = describe_errors(caught.value)
    return line


def test_no_setting_is_left_out_here() -> None:
    assert {*NUMBERS, *OTHERS, *ANYTHING} == set(Settings.model_fields)


@pytest.mark.parametrize("value", ["nonsense", "-1", "nan", "1e400", "9" * 30])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_is_none_is_told_with_what_it_may_be(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    line = refusal(monkeypatch, name, value)
    assert line.startswith(f"{variable(name)}={value!r}: must be ")
    assert any(word in line for word in ("at least", "above", "at most"))


@pytest.mark.parametrize("name", OTHERS)
def test_a_word_that_is_none_is_told_with_what_it_may_be(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    line = refusal(monkeypatch, name, "nonsense")
    assert line.startswith(f"{variable(name)}='nonsense': ")
    assert OTHERS[name] in line


@pytest.mark.parametrize("name", ["api_keys", "admin_keys"])
@pytest.mark.parametrize("value", ["[secret-1", '["secret-1", 1]'])
def test_a_list_of_keys_that_is_none_is_told_without_the_keys(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    line = refusal(monkeypatch, name, value)
    assert line.startswith(variable(name) + ": ")
    assert "secret" not in line


@pytest.mark.parametrize("name", Settings.model_fields)
def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    usual = Settings()
    monkeypatch.setenv(variable(name), "")
    assert Settings() == usual


def test_a_misspelt_variable_is_told_and_the_client_s_own_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATADIR", "URL", "API_KEY", "CA_FILE", "PATIENCE", "HEARTBEAT", "API_KEYS_FILE", "MAX_SESSIONS"):
        monkeypatch.setenv(f"GRADWIRE_{name}", "x")
    assert list(unknown_variables()) == ["unknown setting GRADWIRE_DATADIR; did you mean GRADWIRE_DATA_DIR?"]


@pytest.mark.parametrize(
    ("name", "value", "status", "said"),
    [
        ("default_device", "gpu7", 2, "GRADWIRE_DEFAULT_DEVICE='gpu7': must be a device of this machine: cpu"),
        ("host", "no host", 1, "GRADWIRE_HOST=no host"),
        ("data_dir", "{file}", 1, "GRADWIRE_DATA_DIR={file}: Not a directory"),
        ("data_dir", "{file}/below", 1, "GRADWIRE_DATA_DIR={file}/below: Not a directory"),
        ("audit_log", "{file}/below", 1, "GRADWIRE_AUDIT_LOG={file}/below: "),
    ],
)
def test_what_the_machine_has_not_ends_the_start_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path, name: str, value: str, status: int, said: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv(variable(name), value.format(file=file))
    monkeypatch.setattr("gradwire_server.observability.logging.configure", lambda _: None)  # pytest has the log
    assert main(["--port", "0"]) == status
    errors = capsys.readouterr().err
    assert said.format(file=file) in errors
    assert errors.count("\n") == 1


def test_a_second_server_on_a_data_directory_says_so_in_one_line(tmp_path: Path, monkeypatch: Any) -> None:
    from gradwire_server.durable.store import Store

    first = Store(tmp_path)
    monkeypatch.setenv("GRADWIRE_DATA_DIR", str(tmp_path))
    second = subprocess.run(
        [sys.executable, "-m", "gradwire_server", "--port", "0"], capture_output=True, text=True, timeout=400
    )
    first.close()
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert "in use by another server" in second.stderr
