"""Keys in files: ``GRADWIRE_API_KEYS_FILE`` and ``GRADWIRE_ADMIN_KEYS_FILE``."""

from __future__ import annotations

import hashlib

import pytest
from pydantic import ValidationError

from gradwire_server.cli import EXIT_USAGE, main
from gradwire_server.settings.secret_files import MAX_FILE_BYTES, SECRETS
from gradwire_server.settings.settings import Settings, hash_key, variable


@pytest.fixture(autouse=True)
def _no_keys_of_the_environment(monkeypatch) -> None:
    for name in SECRETS:
        monkeypatch.delenv(variable(name), raising=False)
        monkeypatch.delenv(variable(name) + "_FILE", raising=False)


@pytest.fixture
def keys_in(monkeypatch, tmp_path):
    """Writes a file and names it in the variable of a setting."""

    def write(content: str | bytes, name: str = "api_keys") -> None:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setenv(variable(name) + "_FILE", str(path))

    return write


@pytest.mark.parametrize(
    "content", ["one\ntwo\n", "one,two", " one , two \n", "one\r\n\r\ntwo\r\n", '["one", "two"]\n', '["one",\n "two"]']
)
@pytest.mark.parametrize("name", SECRETS)
def test_keys_of_a_file_are_read_in_every_form_that_the_variable_has(keys_in, content, name) -> None:
    keys_in(content, name)
    assert getattr(Settings(), name) == (hash_key("one"), hash_key("two"))


def test_a_file_may_hold_hashes(keys_in) -> None:
    hashed = "sha256:" + hashlib.sha256(b"one").hexdigest()
    keys_in(hashed + "\n")
    assert Settings().api_keys == (hashed,)


def test_every_secret_is_a_setting_and_tells_of_its_file() -> None:
    for name in SECRETS:
        assert f"{variable(name)}_FILE" in (Settings.model_fields[name].description or "")


@pytest.mark.parametrize(
    ("content", "told"),
    [("", "empty"), (" \n\n", "empty"), (b"\xff\xfe\xff", "UTF-8"), ("k" * (MAX_FILE_BYTES + 1), "larger than")],
)
def test_a_file_that_cannot_be_one_of_keys_ends_the_start_and_is_named(keys_in, content, told, capsys) -> None:
    keys_in(content)
    assert main(["--port", "0"]) == EXIT_USAGE
    message = capsys.readouterr().err
    assert "GRADWIRE_API_KEYS_FILE" in message
    assert told in message


def test_a_file_that_is_not_there_ends_the_start(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setenv("GRADWIRE_API_KEYS_FILE", str(tmp_path / "absent {name}"))
    assert main(["--port", "0"]) == EXIT_USAGE
    assert "absent {name}: No such file" in capsys.readouterr().err


def test_a_variable_and_its_file_exclude_each_other(keys_in, monkeypatch) -> None:
    keys_in("secret-of-the-file")
    monkeypatch.setenv("GRADWIRE_API_KEYS", "another")
    with pytest.raises(ValidationError, match="only one of them") as refused:
        Settings()
    assert "secret-of-the-file" not in str(refused.value)


def test_what_the_program_says_comes_before_a_file(keys_in) -> None:
    keys_in("one")
    assert Settings(api_keys=("other",)).api_keys == (hash_key("other"),)
