"""The Helm chart's guarantees, and what it renders if ``helm`` is on the path."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gradwire_server.settings.settings import PREFIX, Settings, variable
from tests.live_server import ROOT

CHART = ROOT / "docker" / "helm" / "gradwire"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
TEMPLATES = sorted((CHART / "templates").iterdir())
HASH = "sha256:" + "0" * 64
HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not on the path")


def with_value(path: str, value: Any) -> dict[str, Any]:
    """The default values with one changed."""
    changed: dict[str, Any] = json.loads(json.dumps(VALUES))
    *folders, name = path.split(".")
    inner = changed
    for folder in folders:
        inner = inner[folder]
    inner[name] = value
    return changed


def test_the_default_values_satisfy_the_schema() -> None:
    jsonschema_rs.validator_for(SCHEMA).validate(VALUES)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replicaCount", -1), ("replicas", 2), ("image.digest", "sha256:short"), ("image.pullPolicy", "Sometimes"),
        ("keys.api", ["two keys"]), ("keys.api", [HASH, HASH]), ("settings.session_host", "thread"),
        ("settings.MAX_SESSIONS", 4), ("settings.port", 9000), ("settings.api_keys", "secret"),
        ("settings.max_sessions", [4]), ("persistence.size", "20GB"), ("persistence.accessModes", ["ReadWriteMany"]),
        ("gpu.count", 0), ("service.port", 0), ("networkPolicy.clientLabels", {}),
    ],
)  # fmt: skip
def test_the_schema_refuses_what_could_not_work(path, value) -> None:
    assert not jsonschema_rs.validator_for(SCHEMA).is_valid(with_value(path, value))


def test_settings_in_the_values_are_settings_that_hold(monkeypatch) -> None:
    assert VALUES["settings"].keys() <= Settings.model_fields.keys()
    monkeypatch.setenv("GRADWIRE_DATA_DIR", "/data")  # as the template does
    for name, value in VALUES["settings"].items():
        monkeypatch.setenv(variable(name), str(value))
    Settings()


def test_variables_in_the_templates_are_settings() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
    named = set(re.findall(PREFIX + r"[A-Z_]+\b", text))
    known = {variable(name) for name in Settings.model_fields}
    assert {name.removesuffix("_FILE") if name not in known else name for name in named} <= known


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_value_that_a_template_uses_is_in_the_values(path) -> None:
    for dotted in set(re.findall(r"\.Values\.([A-Za-z_.]+)", path.read_text(encoding="utf-8"))):
        inner: Any = VALUES
        for name in dotted.split("."):
            if inner is VALUES["settings"]:
                assert name in inner or name in Settings.model_fields
                break
            assert name in inner, f"{dotted} is not in values.yaml"
            inner = inner[name]


def test_the_schema_knows_every_value() -> None:
    assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()
    for name, value in VALUES.items():
        known = SCHEMA["properties"][name]
        if known.get("additionalProperties") is False:
            assert known["properties"].keys() == value.keys(), name


def rendered(tmp_path: Path, **values: Any) -> dict[str, dict[str, Any]]:
    """What helm makes of the chart with these values, by kind and name."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"keys": {"api": [HASH]}, **values}), encoding="utf-8")
    command = [str(HELM), "template", "mine", str(CHART), "--kube-version", "1.29.0", "--values", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


@needs_helm
def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    command = [str(HELM), "lint", "--strict", str(CHART), "--set", "keys.existingSecret=keys"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
def test_a_pod_has_what_the_restricted_profile_asks_for(tmp_path) -> None:
    made = rendered(tmp_path)
    pod = made["StatefulSet/mine-gradwire"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
        "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "privileged": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod["automountServiceAccountToken"] is False
    assert made["ServiceAccount/mine-gradwire"]["automountServiceAccountToken"] is False


@needs_helm
def test_large_settings_are_written_with_all_their_digits(tmp_path) -> None:
    made = rendered(tmp_path, settings={"max_op_work": 20_000_000_000_000, "session_ttl_s": 0.5, "drain_timeout_s": 60})
    spec = made["StatefulSet/mine-gradwire"]["spec"]["template"]["spec"]
    given = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
    assert given["GRADWIRE_MAX_OP_WORK"] == "20000000000000"
    assert given["GRADWIRE_SESSION_TTL_S"] == "0.5"
    assert spec["terminationGracePeriodSeconds"] >= 60 + VALUES["settings"]["drain_grace_s"] + 10


@needs_helm
def test_only_labelled_pods_reach_the_server_and_it_reaches_only_dns(tmp_path) -> None:
    policy = rendered(tmp_path)["NetworkPolicy/mine-gradwire"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (entry,) = policy["ingress"]
    assert entry["from"] == [{"podSelector": {"matchLabels": {"gradwire-client": "true"}}}]
    assert entry["ports"] == [{"port": "api", "protocol": "TCP"}]
    (way_out,) = policy["egress"]
    assert {port["port"] for port in way_out["ports"]} == {53}


@needs_helm
def test_with_everything_switched_on_it_renders(tmp_path) -> None:
    made = rendered(
        tmp_path, replicaCount=3, gpu={"enabled": True, "count": 2, "runtimeClassName": "nvidia"},
        persistence={"enabled": False}, tls={"existingSecret": "tls"},
        image={"repository": "example.com/gradwire", "digest": HASH},
        ingress={"enabled": True, "host": "gradwire.example.com", "tlsSecret": "public"},
    )  # fmt: skip
    spec = made["StatefulSet/mine-gradwire"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert "volumeClaimTemplates" not in spec
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert container["image"] == f"example.com/gradwire@{HASH}"
    assert container["livenessProbe"]["httpGet"]["scheme"] == "HTTPS"
    assert {volume["name"] for volume in pod["volumes"]} == {mount["name"] for mount in container["volumeMounts"]}
    assert made["Service/mine-gradwire"]["spec"]["sessionAffinity"] == "ClientIP"
    assert "Ingress/mine-gradwire" in made


@needs_helm
def test_a_release_without_keys_is_refused() -> None:
    command = [str(HELM), "template", "mine", str(CHART), "--kube-version", "1.29.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode != 0
    assert "keys.existingSecret" in done.stderr
