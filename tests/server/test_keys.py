"""Keys: shown once, stored as hashes, revoked and expired at once, created without a server or over REST."""

from __future__ import annotations

import fcntl
import json
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed

from gradwire.cli.main import app as command
from gradwire_protocol.errors import InvalidRequest, NotFound, Unavailable
from gradwire_protocol.frames import Refusal
from gradwire_server.auth.key_command import duration
from gradwire_server.auth.key_command import main as offline
from gradwire_server.auth.keys import DamagedKeys, Key, KeyStore
from gradwire_server.settings.settings import Settings, digest_of, hash_key
from tests.live_server import ROOT, SOURCES, LiveServer, live_server, server_process

from .exchange import Peer, binary, problem, stream

# The store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "keys.json"


def test_a_key_is_kept_as_a_hash_in_a_file_of_the_servers_user(path: Path) -> None:
    key, text = KeyStore(path).make("first", ["session"])
    kept = path.read_text()
    assert text not in kept
    assert text.removeprefix("gw_") not in kept
    assert digest_of(text) in kept
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = KeyStore(path).find(text)
    assert again is not None
    assert (again.id, again.tenant, again.scopes, again.kept) == (key.id, key.tenant, ["session"], "file")


def test_a_key_has_256_random_bits() -> None:
    store = KeyStore(None)
    texts = {store.make("many", ["read"])[1] for _ in range(100)}
    assert len(texts) == 100
    assert all(len(text.removeprefix("gw_")) * 6 >= 256 for text in texts)


def test_two_stores_of_one_file_lose_nothing_of_each_other(path: Path) -> None:
    one, other = KeyStore(path), KeyStore(path)
    first, _ = one.make("first", ["session"])
    second, _ = other.make("second", ["session"])
    other.revoke(first.id)
    one.refresh()
    assert {key.id: key.end() for key in one.all()} == {first.id: "revoked", second.id: ""}


def test_what_is_half_written_is_never_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = KeyStore(path)
    key, text = store.make("first", ["session"])

    def crash(*_: Any) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", crash)
        with pytest.raises(OSError, match="no space"):
            store.make("second", ["session"])
    found = KeyStore(path).find(text)
    assert found is not None
    assert found.id == key.id
    assert KeyStore(path).make("third", ["session"])


def test_a_process_that_keeps_the_lock_stops_nobody_for_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwire_server.auth.keys.LOCK_TRIES", 3)
    store = KeyStore(path)
    _, text = store.make("first", ["session"])
    with open(path.with_name("keys.json.lock")) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Unavailable):
            store.make("second", ["session"])
        assert store.find(text) is not None
    store.make("third", ["session"])


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', '{"version": 9, "keys": []}'])
def test_a_damaged_file_is_refused_and_named(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(DamagedKeys, match=str(path)):
        KeyStore(path)


def test_keys_of_settings_cannot_be_revoked_and_win_over_the_file(path: Path) -> None:
    settings = Settings(api_keys=("ordinary",), admin_keys=("chief",), data_dir=path.parent)
    store = KeyStore.configured(settings)
    ordinary, chief = store.find("ordinary"), store.find("chief")
    assert ordinary is not None
    assert chief is not None
    assert (ordinary.scopes, chief.scopes) == (["read", "session"], ["read", "session", "admin"])
    assert ordinary.tenant == hash_key("ordinary").removeprefix("sha256:")[:16]
    with pytest.raises(InvalidRequest, match="GRADWIRE_API_KEYS"):
        store.revoke(ordinary.id)
    with pytest.raises(NotFound):
        store.revoke("k_none")


def test_the_time_of_a_key_ends_at_its_moment() -> None:
    key = Key(id="k", digest="", name="", tenant="t", scopes=[], expires=100.0)
    assert [key.end(now) for now in (99.9, 100.0, 101.0)] == ["", "expired", "expired"]


def test_the_last_use_is_kept_to_a_minute(path: Path) -> None:
    store = KeyStore(path)
    key, text = store.make("first", ["session"])
    store.used(key)
    used = key.last_used
    assert used is not None
    store.used(key)
    assert key.last_used == used
    store.note_use()
    kept = KeyStore(path).find(text)
    assert kept is not None
    assert kept.last_used == used


# Over REST


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Path]]:
    folder = tmp_path_factory.mktemp("data")
    with live_server(data_dir=folder) as server:
        yield server, folder


@pytest.fixture
def admin(place: tuple[LiveServer, Path]) -> Iterator[httpx.Client]:
    with place[0].http(place[0].admin_key) as client:
        yield client


def made(admin: httpx.Client, **wanted: Any) -> dict[str, Any]:
    response = admin.post("/v1/keys", json={"name": "made in a test", **wanted})
    assert response.status_code == 201, response.text
    found: dict[str, Any] = response.json()
    return found


def test_a_key_that_was_made_opens_the_server_and_is_shown_once(
    place: tuple[LiveServer, Path], admin: httpx.Client
) -> None:
    key = made(admin, scopes=["session"], quotas={"max_key_sessions": 2})
    assert (key["state"], key["kept"], key["quotas"]) == ("active", "file", {"max_key_sessions": 2})
    with place[0].http(key["key"]) as client:
        assert client.get("/v1/version").status_code == 200
    for shown in (admin.get("/v1/keys").text, admin.get(f"/v1/keys/{key['id']}").text):
        assert key["id"] in shown
        assert key["key"] not in shown
        assert digest_of(key["key"]) not in shown


def test_keys_of_one_tenant_share_their_sessions(place: tuple[LiveServer, Path], admin: httpx.Client) -> None:
    """Rotation: a second key takes over what the first one made, and the first can go."""
    old = made(admin)
    new = made(admin, tenant=old["tenant"])
    with place[0].http(old["key"]) as before, place[0].http(new["key"]) as after:
        session = before.post("/v1/sessions").headers["location"]
        assert admin.delete(f"/v1/keys/{old['id']}").status_code == 204
        problem(before.get(session), 401, "unauthorized")
        assert after.get(session).status_code == 200
        assert after.delete(session).status_code == 204


def test_a_revoked_key_says_so_and_stays_in_the_list(place: tuple[LiveServer, Path], admin: httpx.Client) -> None:
    key = made(admin)
    for _ in range(2):
        assert admin.delete(f"/v1/keys/{key['id']}").status_code == 204
    with place[0].http(key["key"]) as client:
        assert "revoked" in problem(client.get("/v1/version"), 401, "unauthorized")["detail"]
    assert admin.get(f"/v1/keys/{key['id']}").json()["state"] == "revoked"
    problem(admin.delete("/v1/keys/k_none"), 404, "not_found")
    problem(admin.delete(f"/v1/keys/{admin.get('/v1/keys').json()['keys'][0]['id']}"), 422, "invalid_request")


def ended(peer: Peer) -> tuple[Refusal, int]:
    """How the server ended a stream: the refusal, and the code."""
    answer, _ = peer.receive()
    with pytest.raises(ConnectionClosed) as end:
        peer.socket.recv(20)
    assert end.value.rcvd is not None
    return answer, end.value.rcvd.code


def test_revoking_a_key_ends_its_streams_and_no_others(place: tuple[LiveServer, Path], admin: httpx.Client) -> None:
    old = made(admin)
    new = made(admin, tenant=old["tenant"])
    server = place[0]
    with server.http(new["key"]) as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session, key=old["key"]) as out, stream(server, session, key=new["key"]) as stays:
            admin.delete(f"/v1/keys/{old['id']}")
            refusal, code = ended(out)
            assert isinstance(refusal, Refusal)
            assert (refusal.problem.code, code) == ("unauthorized", 4401)
            assert stays.apply(1, [["full", [[1], "float"]]], [0], scalars=[1.5])[0].errors == []
        http.delete(session)


def test_revoking_a_key_waits_for_nothing_that_runs(place: tuple[LiveServer, Path], admin: httpx.Client) -> None:
    """The reply to a frame that runs would come first, if it were waited for."""
    key = made(admin)
    server = place[0]
    ops = [["ones", [[4_000_000]]]] + [["erf_", [0]]] * 60
    with server.http(key["key"]) as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session, key=key["key"]) as peer:
            peer.send(binary(1, ops, [0]))
            while not http.get("/v1/sessions").json()["sessions"][0]["streams"]:
                time.sleep(0.01)
            admin.delete(f"/v1/keys/{key['id']}")
            assert ended(peer)[1] == 4401


def test_an_expired_key_opens_nothing_and_its_streams_end(place: tuple[LiveServer, Path], admin: httpx.Client) -> None:
    key = made(admin, expires_in_s=1.5)
    server = place[0]
    with server.http(key["key"]) as http:
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session, key=key["key"]) as peer:
            refusal, code = ended(peer)
        assert (refusal.problem.code, code) == ("unauthorized", 4401)
        assert "expired" in problem(http.get(session), 401, "unauthorized")["detail"]


@pytest.mark.parametrize(
    "wanted",
    [{"name": ""}, {"scopes": []}, {"scopes": ["root"]}, {"tenant": "a b"}, {"expires_in_s": -1},
     {"quotas": {"max_key_sessions": -1}}, {"quotas": {"max_tensors": 3}}],
)  # fmt: skip
def test_a_key_that_cannot_be_is_refused(admin: httpx.Client, wanted: dict[str, Any]) -> None:
    problem(admin.post("/v1/keys", json={"name": "x", **wanted}), 422, "invalid_request")


def test_without_a_data_directory_a_key_lasts_as_long_as_the_server_and_says_so() -> None:
    with live_server() as server, server.http(server.admin_key) as admin:
        key = made(admin)
        assert key["kept"] == "memory"
        with server.http(key["key"]) as http:
            assert http.get("/v1/version").status_code == 200


# Without a server


def test_keys_are_made_listed_and_revoked_with_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--data-dir", str(tmp_path / "new")]
    quota = ["--max-key-sessions", "3"]
    assert offline(["create", "--name", "first", "--scope", "admin", "--expires", "30d", *quota, *folder]) == 0
    text = capsys.readouterr().out.strip()
    key = KeyStore(tmp_path / "new" / "keys.json").find(text)
    assert key is not None
    assert (key.scopes, key.quotas) == (["admin"], {"max_key_sessions": 3})
    assert key.expires is not None
    assert 29.9 < (key.expires - time.time()) / 86400 <= 30
    assert offline(["list", "--json", *folder]) == 0
    listed = capsys.readouterr().out
    assert json.loads(listed)["id"] == key.id
    assert text not in listed
    assert offline(["revoke", key.id, *folder]) == 0
    assert offline(["revoke", "k_none", *folder]) == 1
    assert offline(["list", *folder]) == 0
    assert "revoked" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("2m", 120), ("12h", 43200), ("30d", 2592000)])
def test_times_are_written_with_a_unit(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "-1d", "0", "soon", "nan", "1e300d"])
def test_what_is_no_time_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        offline(["create", "--name", "x", f"--expires={text}", "--data-dir", "/nowhere"])
    assert "30d" in capsys.readouterr().err


def test_a_running_server_sees_keys_of_the_offline_command(
    place: tuple[LiveServer, Path], admin: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    server, folder = place
    assert offline(["create", "--name", "from outside", "--json", "--data-dir", str(folder)]) == 0
    key = json.loads(capsys.readouterr().out)
    deadline = time.monotonic() + 120
    with server.http(key["key"]) as http:
        while (response := http.post("/v1/sessions")).status_code == 401:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with stream(server, response.headers["location"], key=key["key"]) as peer:
            assert offline(["revoke", key["id"], "--data-dir", str(folder)]) == 0
            assert ended(peer)[1] == 4401


def test_the_first_key_of_a_container_is_made_before_its_first_start(tmp_path: Path) -> None:
    """No key in the environment, none in the directory: the command makes one, and the server starts with it."""
    environment = {"PYTHONPATH": SOURCES, "PATH": "/usr/bin:/bin", "GRADWIRE_DATA_DIR": str(tmp_path / "data")}
    arguments = [sys.executable, "-m", "gradwire_server", "keys", "create", "--name", "first", "--scope", "admin"]
    text = subprocess.run(
        arguments, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    with server_process(data_dir=tmp_path / "data", api_keys="", admin_keys="") as server, server.http(text) as http:
        assert [key["name"] for key in http.get("/v1/keys").json()["keys"]] == ["first"]


def test_the_key_of_a_run_finds_the_sessions_of_the_last_run(tmp_path: Path) -> None:
    """A server without keys makes another one each time; what it opens stays the same."""
    ready, seen = tmp_path / "ready.json", []
    settings = {"data_dir": tmp_path / "data", "api_keys": "", "admin_keys": ""}
    for _ in range(2):
        with server_process("--ready-file", str(ready), **settings) as server:
            deadline = time.monotonic() + 120
            while not ready.exists():  # it is written after the line that the fixture waits for
                assert time.monotonic() < deadline
                time.sleep(0.02)
            text = json.loads(ready.read_text())["api_key"]
            with server.http(text) as http:
                if not seen:
                    http.post("/v1/sessions")
                assert http.get("/metrics").status_code == 200
                seen.append((text, [each["id"] for each in http.get("/v1/sessions").json()["sessions"]]))
            assert server.process is not None
            server.process.terminate()
            assert server.process.wait(120) == 0
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] == seen[1][1] != []


def test_the_offline_list_fits_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ["--data-dir", str(tmp_path)]
    for name, tenant in (("short", "alice"), ("n" * 100, "t" * 64), ("with \x1b[31mcolours", "bob")):
        assert offline(["create", "--name", name, "--tenant", tenant, *folder]) == 0
    capsys.readouterr()
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert offline(["list", *folder]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= columns and all(line.isprintable() for line in lines)
        assert "n" * 100 in "".join(line.strip() for line in lines) and "    " + "t" * 64 in lines
        assert sum(line.startswith("k_") for line in lines) == 3


# From the command line of a client


def test_the_client_makes_lists_and_revokes_keys(place: tuple[LiveServer, Path]) -> None:
    server = place[0]
    runner = CliRunner()
    options = ["--url", server.url, "--api-key", server.admin_key]
    done = runner.invoke(command, ["keys", "create", "--name", "by the client", "--scope", "read", *options])
    assert done.exit_code == 0, done.output
    text = done.stdout.strip().splitlines()[-1]
    with server.http(text) as http:
        assert http.get("/v1/sessions").status_code == 200
    key = server.app.state.server.access.keys.find(text)
    listed = runner.invoke(command, ["keys", "list", *options], env={"COLUMNS": "300"})
    assert key.id in listed.stdout
    assert runner.invoke(command, ["keys", "revoke", key.id, *options]).exit_code == 0
    with server.http(text) as http:
        assert http.get("/v1/sessions").status_code == 401


def test_the_client_says_which_scope_is_missing(place: tuple[LiveServer, Path]) -> None:
    options = ["--url", place[0].url, "--api-key", place[0].api_key]
    done = CliRunner().invoke(command, ["keys", "list", *options])
    assert done.exit_code == 1
    assert "forbidden" in done.output
    assert "'admin'" in done.output


@pytest.mark.parametrize("command", [["list"], ["revoke", "k_1"]])
def test_a_misspelt_data_directory_is_told_and_not_made(command: list[str], tmp_path: Path, capsys: Any) -> None:
    """It would look like a server without keys."""
    assert offline([*command, "--data-dir", str(tmp_path / "dta")]) == 1
    assert f"{tmp_path / 'dta'} is not a directory" in capsys.readouterr().err
    assert not (tmp_path / "dta").exists()
