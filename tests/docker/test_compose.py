"""The guarantees of compose.yaml."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from gradwire_server.settings.secret_files import SECRETS
from gradwire_server.settings.settings import PREFIX, Settings, variable
from tests.live_server import ROOT

FILE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int:
    return int(text[:-1]) * SIZES[text[-1]]


@pytest.fixture(params=sorted(SERVICES))
def service(request) -> dict[str, Any]:
    return SERVICES[request.param]


def test_the_cpu_server_is_the_default_and_the_gpu_s_is_asked_for() -> None:
    assert "profiles" not in SERVICES["cpu"]
    assert SERVICES["cuda"]["profiles"] == ["cuda"]
    (device,) = SERVICES["cuda"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    for name, each in SERVICES.items():
        assert each["build"] == {"context": "..", "dockerfile": f"docker/{name}.Dockerfile"}
        assert (ROOT / "docker" / f"{name}.Dockerfile").exists()


def test_a_server_is_confined(service) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] == "10001:10001"
    assert service["tmpfs"] == ["/tmp:size=256m,mode=1777,noexec,nosuid,nodev"]
    assert service["pids_limit"] > 0
    assert service["cpus"] > 0
    assert not {"privileged", "cap_add", "network_mode", "pid", "devices"} & service.keys()


def test_ports_are_published_on_loopback_and_differ() -> None:
    published = [port for each in SERVICES.values() for port in each["ports"]]
    assert all(re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z_]+:-\d+\}:8000", port) for port in published)
    assert len(set(published)) == len(SERVICES)


def test_each_server_has_a_volume_of_its_own() -> None:
    volumes = [volume.split(":") for each in SERVICES.values() for volume in each["volumes"]]
    assert {name for name, _ in volumes} == FILE["volumes"].keys()
    assert len({name for name, _ in volumes}) == len(SERVICES)
    assert all(path == "/data" for _, path in volumes)


def test_every_variable_is_a_setting_or_the_file_of_a_secret(service, monkeypatch) -> None:
    given = {name: value for name, value in service["environment"].items() if name.startswith(PREFIX)}
    files = {f"{variable(name)}_FILE" for name in SECRETS}
    assert given.keys() <= {variable(name) for name in Settings.model_fields} | files
    for name, value in given.items():
        if name not in files:
            monkeypatch.setenv(name, value)
    Settings()


def test_keys_are_secrets_and_not_in_the_environment(service) -> None:
    for name in SECRETS:
        assert name in service["secrets"]
        assert name in FILE["secrets"]
        assert service["environment"][f"{variable(name)}_FILE"] == f"/run/secrets/{name}"
        assert variable(name) not in service["environment"]


def test_a_stop_leaves_time_to_drain(service) -> None:
    drain = float(service["environment"]["GRADWIRE_DRAIN_TIMEOUT_S"])
    assert int(service["stop_grace_period"].removesuffix("s")) >= drain + 10


def test_a_worker_meets_its_limit_before_the_container_does() -> None:
    cpu = SERVICES["cpu"]
    session, worker = (int(cpu["environment"][f"GRADWIRE_MAX_{name}_BYTES"]) for name in ("SESSION", "WORKER"))
    assert session < worker < size(cpu["mem_limit"])


def test_the_health_check_is_the_image_s(service) -> None:
    assert service["healthcheck"]["test"] == ["CMD", "python", "-m", "gradwire_server.health", "/readyz"]
