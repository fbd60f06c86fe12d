"""The audit log records every relevant event with its actor and amounts, and no secrets."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from structlog.testing import capture_logs
from websockets.exceptions import InvalidStatus

from gradwire_server.auth.audit import ACTIONS, OLD_FILES, AuditEntry, AuditLog, on_account_of
from gradwire_server.auth.caller import Caller
from gradwire_server.auth.keys import Key
from gradwire_server.settings.settings import Settings
from tests.live_server import API_KEY, OTHER_KEY, live_server

from .exchange import binary, stream, upload

SECRET_VALUE = 867530.9375  # float32 has it exactly
SECRET_NAME = "salary_of_the_director"
PAGE = "https://app.example.com"
ALL = structlog.make_filtering_bound_logger(0)


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def one(found: list[dict[str, Any]], action: str) -> dict[str, Any]:
    matching = [each for each in found if each["action"] == action]
    assert len(matching) == 1, (action, matching)
    return matching[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A server's whole life in which everything happens that is written down: its folder, and what is secret in it."""
    folder = tmp_path_factory.mktemp("audited")
    secrets = {"key": API_KEY, "other": OTHER_KEY, "wrong": "gw_a_key_that_somebody_mistyped"}
    settings: dict[str, Any] = {"data_dir": folder, "allowed_origins": (PAGE,), "max_key_sessions": 2}
    with live_server(**settings) as server, server.http() as http, server.http(server.admin_key) as admin:
        secrets["admin"] = server.admin_key
        wrong = {"X-API-Key": secrets["wrong"], "X-Request-ID": "the-mistyped-one"}
        httpx.get(f"{server.url}/v1/version", headers=wrong)
        made = admin.post("/v1/keys", json={"name": SECRET_NAME, "scopes": ["read"]}).json()
        secrets["made"] = made["key"]
        with server.http(made["key"]) as reader:
            reader.post("/v1/sessions")
        brief = admin.post("/v1/keys", json={"name": "brief", "expires_in_s": 0.1}).json()
        secrets["brief"] = brief["key"]
        admin.delete(f"/v1/keys/{made['id']}")
        session = http.post("/v1/sessions", json={"seed": 1}).headers["location"]
        http.post("/v1/sessions", json={"ttl_s": 0.2})
        http.post("/v1/sessions")
        http.post(f"{session}/frames", json=upload([SECRET_VALUE, 1.0], "float32", [2]))
        http.put(f"{session}/tensors/7?name={SECRET_NAME}", json={"values": [SECRET_VALUE]})
        name = session.rsplit("/", 1)[-1]
        with stream(server, session) as peer:
            for seq in (1, 2):
                peer.send(binary(seq, [["full", [[3], "float"]]] * 2, [0], scalars=[SECRET_VALUE] * 2))
                peer.reply()
        secrets["ticket"] = http.post("/v1/tickets", json={"session": name}).json()["ticket"]
        with (
            pytest.raises(InvalidStatus),
            stream(server, f"{session}/stream?ticket={secrets['ticket']}&x=/{name}", key=secrets["wrong"]),
        ):
            pass
        exported = http.get(f"{session}/export").content
        deadline = time.monotonic() + 120
        log = folder / "audit.log"
        registry = server.app.state.server.registry
        while (
            not {"session_expired", "key_expired"} <= {each["action"] for each in entries(log)}
            or registry._ending  # the expired one: its place is taken until its thread has ended
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        raw = {"Content-Type": "application/safetensors"}
        imported = http.post("/v1/sessions/import", content=exported, headers=raw)
        assert imported.status_code == 201, imported.text
        http.delete(imported.headers["location"])
    with live_server(**settings) as server, server.http() as http:
        assert http.get(f"{session}/tensors/7").json()["values"] == [SECRET_VALUE]
        http.delete(session)
    return folder, secrets


def test_nothing_secret_is_in_it(run: tuple[Path, dict[str, str]]) -> None:
    folder, secrets = run
    written = b"".join(each.read_bytes() for each in folder.glob("audit.log*"))
    assert len(written) > 1000
    for name, secret in secrets.items():
        assert secret.encode() not in written, name
        assert secret.removeprefix("gw_").encode() not in written, name
    for value in (SECRET_VALUE, int(SECRET_VALUE), SECRET_NAME):
        assert str(value).encode() not in written


def test_it_says_who_did_what_to_which_session(run: tuple[Path, dict[str, str]]) -> None:
    found = entries(run[0] / "audit.log")
    assert {each["action"] for each in found} <= set(ACTIONS)
    created = [each for each in found if each["action"] == "session_created"]
    assert len(created) == 2
    tenant = Settings(api_keys=(API_KEY,)).api_keys[0].removeprefix("sha256:")[:16]
    for each in created:
        assert each["tenant"] == tenant
        assert each["key"].startswith("k_")
        assert each["address"] == "127.0.0.1"
        assert each["session"].startswith("s_")
        assert each["request_id"]
        assert each["at"].endswith("Z")
        assert each["outcome"] == "ok"
    deleted = [each["session"] for each in found if each["action"] == "session_deleted"]
    assert created[0]["session"] in deleted
    expired = one(found, "session_expired")
    assert (expired["session"], expired["tenant"]) == (created[1]["session"], tenant)
    assert "key" not in expired or not expired["key"]
    assert one(found, "session_recovered")["session"] == created[0]["session"]


def test_it_says_how_much_a_stream_carried(run: tuple[Path, dict[str, str]]) -> None:
    found = entries(run[0] / "audit.log")
    opened, ended = one(found, "stream_opened"), one(found, "stream_closed")
    assert opened["session"] == ended["session"]
    assert (ended["frames"], ended["ops"], ended["code"]) == (2, 4, 1000)
    assert ended["bytes_in"] > 50
    assert ended["bytes_out"] > 50
    assert ended["seconds"] >= 0


def test_it_says_how_much_went_out_and_came_in(run: tuple[Path, dict[str, str]]) -> None:
    found = entries(run[0] / "audit.log")
    exported, imported = one(found, "session_exported"), one(found, "session_imported")
    assert exported["bytes_out"] == imported["bytes_in"] > 100
    assert exported["session"] != imported["session"]


def test_keys_and_refusals_are_in_it(run: tuple[Path, dict[str, str]]) -> None:
    found = entries(run[0] / "audit.log")
    made, brief = (each for each in found if each["action"] == "key_created")
    revoked, expired = one(found, "key_revoked"), one(found, "key_expired")
    assert made["about"] == revoked["about"] != made["key"]
    assert brief["about"] == expired["about"]
    refused = [each for each in found if each["action"] == "key_refused"]
    assert refused[0]["outcome"] == "unauthorized"
    assert refused[0]["request_id"] == "the-mistyped-one"
    assert refused[0].get("key", "") == ""
    scope = one(found, "scope_refused")
    assert (scope["key"], scope["outcome"]) == (made["about"], "forbidden")
    limit = one(found, "limit_hit")
    assert (limit["outcome"], limit["setting"]) == ("too_many_requests", "GRADWIRE_MAX_KEY_SESSIONS")
    assert one(found, "ticket_issued")["session"]


def test_it_is_for_the_servers_user(run: tuple[Path, dict[str, str]]) -> None:
    assert stat.S_IMODE((run[0] / "audit.log").stat().st_mode) == 0o600


# The log itself


def test_no_field_takes_what_clients_write_freely() -> None:
    fields = {"at", "action", "outcome", "key", "tenant", "address", "request_id", "session", "about", "setting",
              "frames", "ops", "bytes_in", "bytes_out", "seconds", "code"}  # fmt: skip
    assert set(AuditEntry.__struct_fields__) == fields
    with pytest.raises(TypeError):
        AuditLog(None).note("session_created", name="anything")


def test_it_does_not_grow_without_end(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log", most=2000)
    for i in range(2000):
        log.note("session_created", session=f"s_{i}")
    log.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == OLD_FILES + 1
    assert all(each.stat().st_size <= 2000 for each in files)
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in files)
    assert entries(tmp_path / "audit.log")[-1]["session"] == "s_1999"


def test_what_is_alike_is_written_once_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("gradwire_server.auth.audit.time.monotonic", lambda: now[0])
    log = AuditLog(tmp_path / "audit.log")
    for at, alike in ((100.0, "a"), (159.0, "a"), (159.0, "b"), (160.0, "a")):
        now[0] = at
        log.note("limit_hit", setting=alike, throttle=(alike,))
    assert [each["setting"] for each in entries(tmp_path / "audit.log")] == ["a", "b", "a"]


def test_without_a_file_it_is_part_of_the_servers_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwire_server.auth.audit.log", structlog.wrap_logger(None, wrapper_class=ALL))
    who = Caller(Key(id="k_1", digest="d", name="n", tenant="t", scopes=[]), "192.0.2.1", "r")
    with capture_logs() as logged, on_account_of(who):
        AuditLog.configured(Settings(api_keys=("x",))).note("session_created", session="s_1")
    assert logged == [
        {"event": "session_created", "log_level": "info", "outcome": "ok", "key": "k_1", "tenant": "t",
         "address": "192.0.2.1", "request_id": "r", "session": "s_1"}
    ]  # fmt: skip


def test_a_disk_that_is_full_costs_lines_and_not_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(tmp_path / "audit.log")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    assert log._file is not None
    with monkeypatch.context() as patch, capture_logs() as logged:
        patch.setattr(log._file.stream, "write", full, raising=False)
        log.note("session_created", session="s_lost")
    assert "s_lost" in logged[0]["entry"]
    log.close()


def test_a_stream_that_was_slowed_down_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with live_server(audit_log=path, max_ops_per_second=100) as server, server.http() as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            for seq in (1, 2):
                peer.apply(seq, [["full", [[1], "float"]]] * 130, [0], scalars=[1.0] * 130)
    slowed = one(entries(path), "limit_hit")
    assert slowed["outcome"] == "slowed"
    assert slowed["seconds"] > 0
    assert slowed["session"] == one(entries(path), "session_created")["session"]


def test_the_file_can_be_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere" / "who.log"
    with live_server(audit_log=path) as server, server.http() as http:
        http.post("/v1/sessions")
    assert one(entries(path), "session_created")
