"""``GET /v1/diagnostics``: what a client learns about its key, the libraries, the kernels' cache and the disk."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.devices import describe_cuda
from gradwire_server.routes import diagnostics
from gradwire_server.settings.settings import Settings
from tests.live_server import LiveServer, live_server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Path]]:
    folder = tmp_path_factory.mktemp("data")
    with live_server(data_dir=folder, compiled_kernels="off", max_tensors=4321) as server:
        yield server, folder


def told(server: LiveServer, key: str | None = None) -> dict[str, Any]:
    with server.http(key) as client:
        response = client.get("/v1/diagnostics")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_limits_are_the_settings_and_those_of_the_key(place: tuple[LiveServer, Path]) -> None:
    server, _ = place
    with server.http(server.admin_key) as admin:
        made = admin.post(
            "/v1/keys", json={"name": "few", "expires_in_s": 60, "quotas": {"max_key_sessions": 3}}
        ).json()
    found = told(server, made["key"])
    assert found["limits"].keys() == {name for name in Settings.model_fields if name.startswith("max_")}
    assert found["limits"]["max_tensors"] == 4321
    assert found["limits"]["max_key_sessions"] == 3
    assert told(server)["limits"]["max_key_sessions"] == 0
    assert found["key"] == {name: made[name] for name in ("id", "name", "scopes", "expires_at")}


def test_sessions_of_others_are_not_counted(place: tuple[LiveServer, Path]) -> None:
    server, _ = place
    before = told(server)["sessions"]
    with server.http() as client:
        client.post("/v1/sessions", json={}).raise_for_status()
    assert told(server)["sessions"] == before + 1
    assert told(server, server.other_key)["sessions"] == 0


def test_no_path_of_the_server_is_told(place: tuple[LiveServer, Path]) -> None:
    server, folder = place
    with server.http() as client:
        text = client.get("/v1/diagnostics").text
    assert str(folder) not in text and str(Path.home()) not in text


def test_the_disk_of_the_data_directory(place: tuple[LiveServer, Path]) -> None:
    server, folder = place
    storage = told(server)["storage"]
    assert storage["total_bytes"] == shutil.disk_usage(folder).total
    assert storage["kind"] == "directory" and storage["durability"] == "applied" and storage["writable"]


def test_a_server_without_a_data_directory_has_no_storage() -> None:
    with live_server(compiled_kernels="off") as server:
        found = told(server)
    assert found["storage"] is None
    assert found["kernels"].pop("state") in ("idle", "ready")  # this process may have loaded them for another test
    assert found["kernels"] == {"mode": "off", "reason": "", "kept": None, "complete": None}
    assert set(found["libraries"]) == {"python", *diagnostics.LIBRARIES}


# The cache of compiled kernels


def fill(base: Path) -> Path:
    folder = toolchain._cache_folder(base)
    for name in toolchain.modules():
        place = toolchain._place(folder, name)
        place.mkdir(parents=True)
        (place / "complete").touch()
    return folder


def test_a_cache_is_inspected_without_being_made(tmp_path: Path) -> None:
    base = tmp_path / "cache"
    assert toolchain.inspect_cache(base) == {"kept": True, "complete": False}
    assert not base.exists()
    folder = fill(base)
    assert toolchain.inspect_cache(base) == {"kept": True, "complete": True}
    folder.parent.chmod(0o777)  # others could put machine code there
    assert toolchain.inspect_cache(base)["kept"] is False


def test_a_cache_of_another_version_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    monkeypatch.setattr(toolchain, "_digest", lambda: "another")
    assert toolchain.inspect_cache(tmp_path) == {"kept": True, "complete": False}


def test_a_child_process_inspects_the_servers_cache(tmp_path: Path) -> None:
    fill(tmp_path)
    found = diagnostics._kernels(Settings(compiled_kernels="auto", cache_dir=tmp_path, session_host="process"))
    assert found == {"mode": "auto", "state": None, "reason": "", "kept": True, "complete": True}


def test_why_a_cache_cannot_be_inspected_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    assert diagnostics._inspect(None) == {"reason": "FileNotFoundError"}
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho Traceback >&2; echo 'ImportError: no numba' >&2; exit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))
    assert diagnostics._inspect(None) == {"reason": "ImportError: no numba"}


# CUDA, of which this machine may have nothing


class CUDARuntimeError(RuntimeError):
    pass


def runtime(driver: int, problem: str = "") -> Any:
    def count() -> int:
        if problem:
            raise CUDARuntimeError(problem)
        return 1

    return SimpleNamespace(
        driverGetVersion=lambda: driver, runtimeGetVersion=lambda: 12_020, getDeviceCount=count
    )  # fmt: skip


@pytest.mark.parametrize(
    ("driver", "problem", "version"), [(12_040, "", "12.4"), (0, "cudaErrorInsufficientDriver: too old\nmore", None)]
)
def test_versions_of_cuda(monkeypatch: pytest.MonkeyPatch, driver: int, problem: str, version: str | None) -> None:
    cupy = SimpleNamespace(__version__="13.4.0", cuda=SimpleNamespace(runtime=runtime(driver, problem)))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    found = describe_cuda()
    assert found == {"cupy": "13.4.0", "driver": version, "runtime": "12.2", "problem": problem.split("\n")[0]}


def test_without_cupy_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert describe_cuda()["cupy"] is None
