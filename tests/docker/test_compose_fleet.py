"""The guarantees of compose.fleet.yaml."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from gradwire_server.settings.secret_files import SECRETS
from gradwire_server.settings.settings import PREFIX, Settings, variable
from tests.live_server import ROOT

FILE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.fleet.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
NODES = ("head", "worker-1", "worker-2")
OF_THE_FLEET = ("ray_token", "store_access_key", "store_secret_key")
ATOMIC = (4, 18)
"""The first version of SeaweedFS whose conditional writes are atomic."""


@pytest.fixture(params=sorted(SERVICES))
def service(request) -> dict[str, Any]:
    return SERVICES[request.param]


@pytest.fixture(params=NODES)
def node(request) -> dict[str, Any]:
    return SERVICES[request.param]


def script(service: dict[str, Any]) -> str:
    """The program of a service, as its shell sees it."""
    (text,) = service["command"]
    return str(text).replace("$$", "$")


def test_it_has_a_head_two_workers_and_a_store() -> None:
    assert SERVICES.keys() == {*NODES, "store"}
    assert SERVICES["worker-1"] == SERVICES["worker-2"]
    assert SERVICES["head"]["build"]["args"] == {"EXTRAS": "cluster"}
    assert {SERVICES[name]["image"] for name in NODES} == {"gradwire:fleet"}


def test_a_service_is_confined(service) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] in ("10001:10001", "1000:1000")
    assert all("nosuid" in each and "nodev" in each for each in service["tmpfs"])
    assert service["pids_limit"] > 0
    assert service["cpus"] > 0
    assert not {"privileged", "cap_add", "network_mode", "pid", "devices"} & service.keys()


def test_only_the_gateway_is_published_and_on_loopback() -> None:
    published = {name: each["ports"] for name, each in SERVICES.items() if "ports" in each}
    assert published.keys() == {"head"}
    assert re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z_]+:-\d+\}:8000", *published["head"])
    assert FILE["networks"]["fleet"] == {"internal": True}
    assert [name for name, each in SERVICES.items() if each["networks"] != ["fleet"]] == ["head"]


def test_secrets_are_files_and_not_in_the_environment(service) -> None:
    for name in service["secrets"]:
        assert name in FILE["secrets"]
        assert FILE["secrets"][name]["file"].startswith("./secrets/")
    assert not any(
        re.search(r"SECRET_ACCESS_KEY|ACCESS_KEY_ID|RAY_AUTH_TOKEN$", name) for name in service.get("environment", {})
    )
    assert {path.rpartition("/")[2] for path in re.findall(r"/run/secrets/\w+", script(service))} <= set(
        service["secrets"]
    )


def test_ray_asks_for_a_token_that_every_node_has(node) -> None:
    assert node["environment"]["RAY_AUTH_MODE"] == "token"
    assert node["environment"]["RAY_AUTH_TOKEN_PATH"] == "/run/secrets/ray_token"
    assert set(OF_THE_FLEET) <= set(node["secrets"])


def test_only_the_gateway_knows_api_keys() -> None:
    for name in SECRETS:
        assert [each for each in SERVICES if name in SERVICES[each]["secrets"]] == ["head"]
        assert SERVICES["head"]["environment"][f"{variable(name)}_FILE"] == f"/run/secrets/{name}"


def test_every_variable_is_a_setting_or_the_file_of_a_secret(node, monkeypatch) -> None:
    named = {name: value for name, value in node["environment"].items() if name.startswith(PREFIX)}
    files = {f"{variable(name)}_FILE" for name in SECRETS}
    assert named.keys() <= {variable(name) for name in Settings.model_fields} | files
    for name, value in named.items():
        if name not in files:
            monkeypatch.setenv(name, value)
    assert Settings().session_host == "ray"


def test_a_stop_leaves_time_to_drain(node) -> None:
    drain = float(node["environment"]["GRADWIRE_DRAIN_TIMEOUT_S"])
    assert int(node["stop_grace_period"].removesuffix("s")) >= drain + 15


def test_the_bucket_of_the_setting_is_the_one_that_the_store_creates() -> None:
    bucket = SERVICES["head"]["environment"]["GRADWIRE_STORE"].removeprefix("s3://").split("/")[0]
    assert f"-bucket={bucket} " in script(SERVICES["store"])
    assert SERVICES["head"]["environment"]["AWS_ENDPOINT_URL"] == "http://store:8333"


def test_the_store_has_atomic_conditional_writes() -> None:
    image, _, tag = SERVICES["store"]["image"].partition(":")
    major, minor = map(int, tag.split("."))
    assert image == "chrislusf/seaweedfs"
    assert (major, minor) >= ATOMIC


def test_every_service_has_a_health_check_and_waits_for_what_it_needs(service) -> None:
    assert service["healthcheck"]["test"][0] == "CMD"
    for other in service.get("depends_on", {}).values():
        assert other == {"condition": "service_healthy"}
    assert SERVICES["head"]["healthcheck"]["test"] == ["CMD", "python", "-m", "gradwire_server.health", "/readyz"]


def test_the_shells_understand_the_programs(service) -> None:
    shell = service["entrypoint"][0]
    done = subprocess.run([shell, "-n"], input=script(service), text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "exec " in script(service)  # process 1 gets the signals


def test_the_secrets_are_created_once_for_their_owner_only(tmp_path) -> None:
    command = [str(ROOT / "docker" / "fleet_secrets.sh"), str(tmp_path / "fleet")]
    subprocess.run(command, check=True)
    assert (tmp_path / "fleet").stat().st_mode & 0o777 == 0o700
    texts = [(tmp_path / "fleet" / name).read_text() for name in OF_THE_FLEET]
    assert all(re.fullmatch(r"[0-9a-f]{64}", text) for text in texts)
    assert len(set(texts)) == len(OF_THE_FLEET)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "nothing was changed" in again.stderr
    assert [(tmp_path / "fleet" / name).read_text() for name in OF_THE_FLEET] == texts
