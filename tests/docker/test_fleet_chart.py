"""What the Helm chart renders for a fleet, and that docker/kuberay/fleet.yaml is it."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.docker.test_chart import CHART, HASH, HELM, SCHEMA, VALUES, needs_helm, rendered, with_value
from tests.live_server import ROOT

MANIFEST = ROOT / "docker" / "kuberay" / "fleet.yaml"
FLEET = {"enabled": True}
MEMBER = {"gradwire-fleet": "mine-gradwire-fleet"}
RESTRICTED = {
    "allowPrivilegeEscalation": False, "privileged": False, "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}  # fmt: skip
GPU_NODES = {
    "name": "h100", "min": 0, "max": 8, "gpus": 8, "labels": {"zone": "a"}, "customResources": {"nvlink": 1},
    "resources": {"requests": {"cpu": "64"}, "limits": {"cpu": "64", "memory": "512Gi"}}, "runtimeClassName": "nvidia",
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
}  # fmt: skip


def manifests() -> dict[str, dict[str, Any]]:
    """The manifests in the repository, by kind and name."""
    found = [each for each in yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")) if each]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def pods(made: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pod templates of a fleet: the gateways', the head's, and one for each group of nodes."""
    cluster = made["RayCluster/mine-gradwire-fleet"]["spec"]
    return {
        "gateway": made["Deployment/mine-gradwire"]["spec"]["template"],
        "head": cluster["headGroupSpec"]["template"],
        **{group["groupName"]: group["template"] for group in cluster["workerGroupSpecs"]},
    }


def given(template: dict[str, Any]) -> dict[str, Any]:
    """The environment of a pod's first container."""
    return {each["name"]: each.get("value", each) for each in template["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("fleet.rayVersion", "latest"), ("fleet.replicas", 2), ("fleet.nodes", []), ("fleet.nodes", [{"name": "cpu"}]),
        ("fleet.nodes", [{"name": "CPU", "min": 0, "max": 1}]), ("fleet.store.url", "https://bucket.example.com"),
        ("fleet.store.size", "1TB"), ("fleet.listenerPorts", {"first": 8000, "last": 9000}),
        ("fleet.idleTimeoutS", 1), ("settings.store", "s3://bucket"), ("settings.autoscaling", True),
    ],
)  # fmt: skip
def test_the_schema_refuses_what_could_not_work(path, value) -> None:
    assert not jsonschema_rs.validator_for(SCHEMA).is_valid(with_value(path, value))


def test_a_group_of_gpu_nodes_satisfies_the_schema() -> None:
    jsonschema_rs.validator_for(SCHEMA).validate(with_value("fleet.nodes", [*VALUES["fleet"]["nodes"], GPU_NODES]))


def test_every_part_of_a_fleet_is_in_the_manifests_and_has_probes() -> None:
    made = manifests()
    assert {each.split("/")[0] for each in made} == {
        "RayCluster", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "PersistentVolumeClaim",
        "ServiceAccount",
    }  # fmt: skip
    for template in pods(made).values():
        container = template["spec"]["containers"][0]
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
        assert template["metadata"]["labels"].items() >= MEMBER.items()


def test_pods_of_a_fleet_are_confined() -> None:
    made = manifests()
    for template in pods(made).values():
        assert template["spec"]["containers"][0]["securityContext"] == RESTRICTED
        assert template["spec"]["securityContext"]["runAsUser"] == 10001
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True
    assert made["RayCluster/mine-gradwire-fleet"]["spec"]["autoscalerOptions"]["securityContext"] == RESTRICTED
    for name in ("gateway", "cpu"):
        assert pods(made)[name]["spec"]["automountServiceAccountToken"] is False


def test_the_nodes_scale_and_the_head_runs_no_sessions() -> None:
    spec = manifests()["RayCluster/mine-gradwire-fleet"]["spec"]
    assert spec["enableInTreeAutoscaling"] is True
    assert spec["autoscalerOptions"]["version"] == "v2"
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = spec["workerGroupSpecs"]
    assert group["minReplicas"] < group["maxReplicas"]
    assert given(pods(manifests())["gateway"])["GRADWIRE_AUTOSCALING"] == "true"


def test_ray_asks_for_a_token_and_the_gateways_have_it() -> None:
    made = manifests()
    assert made["RayCluster/mine-gradwire-fleet"]["spec"]["authOptions"] == {"mode": "token"}
    variables = given(pods(made)["gateway"])
    assert variables["RAY_AUTH_MODE"] == "token"
    secret = variables["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": "mine-gradwire-fleet", "key": "auth_token"}  # as KubeRay names the one that it creates


def test_all_processes_have_the_same_settings_and_store() -> None:
    shared = [
        {name: value for name, value in given(template).items() if name not in ("GRADWIRE_HOST", "GRADWIRE_PORT")
         and name.startswith("GRADWIRE_") and not name.endswith("_FILE")}
        for template in pods(manifests()).values()
    ]  # fmt: skip
    assert all(each == shared[0] for each in shared)
    assert (shared[0]["GRADWIRE_SESSION_HOST"], shared[0]["GRADWIRE_STORE"]) == ("ray", "/store")
    for template in pods(manifests()).values():
        mounts = {each["name"]: each["mountPath"] for each in template["spec"]["containers"][0]["volumeMounts"]}
        assert mounts["store"] == "/store"
    assert manifests()["PersistentVolumeClaim/mine-gradwire-store"]["spec"]["accessModes"] == ["ReadWriteMany"]


def test_only_the_fleet_reaches_ray_and_clients_reach_only_listeners() -> None:
    made = manifests()
    fleet = made["NetworkPolicy/mine-gradwire-fleet"]["spec"]
    assert fleet["podSelector"] == {"matchLabels": MEMBER}
    assert fleet["ingress"] == [{"from": [{"podSelector": {"matchLabels": MEMBER}}]}]
    direct = made["NetworkPolicy/mine-gradwire-fleet-direct"]["spec"]
    assert direct["podSelector"]["matchLabels"]["ray.io/node-type"] == "worker"
    (entry,) = direct["ingress"]
    assert entry["from"] == [{"podSelector": {"matchLabels": {"gradwire-client": "true"}}}]
    (ports,) = entry["ports"]
    spec = made["RayCluster/mine-gradwire-fleet"]["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        of_ray = [int(value) for name, value in group["rayStartParams"].items() if name.endswith("-port")]
        assert len(of_ray) == 8
        assert max(of_ray) < ports["port"] < ports["endPort"]


def test_a_gateway_joins_ray_on_the_ports_of_the_nodes() -> None:
    made = manifests()
    (script,) = pods(made)["gateway"]["spec"]["containers"][0]["args"]
    group = made["RayCluster/mine-gradwire-fleet"]["spec"]["workerGroupSpecs"][0]
    of_nodes = {name: value for name, value in group["rayStartParams"].items() if name.endswith("-port")}
    assert dict(re.findall(r"--([a-z-]+-port)=(\d+)", script)) == of_nodes
    assert script.rstrip().endswith("exec gradwire-server")
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_service_and_the_budget_are_the_gateways() -> None:
    made = manifests()
    labels = pods(made)["gateway"]["metadata"]["labels"]
    for selector in (
        made["Service/mine-gradwire"]["spec"]["selector"],
        made["PodDisruptionBudget/mine-gradwire"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
        assert not any(selector.items() <= pods(made)[name]["metadata"]["labels"].items() for name in ("head", "cpu"))
    assert "sessionAffinity" not in made["Service/mine-gradwire"]["spec"]
    assert made["Deployment/mine-gradwire"]["spec"]["replicas"] > 1


@needs_helm
def test_the_manifests_are_what_the_chart_renders(tmp_path) -> None:
    """Otherwise: see the manifests' head."""
    found = rendered(
        tmp_path,
        keys={"existingSecret": "gradwire-keys"},
        replicaCount=2,
        fleet=FLEET,
        settings={"durability": "durable"},
    )
    assert found == manifests()


@needs_helm
def test_with_an_object_store_no_volume_is_shared(tmp_path) -> None:
    store = {"url": "s3://bucket/fleet", "existingSecret": "store", "ports": [8333]}
    made = rendered(tmp_path, fleet={**FLEET, "store": store, "direct": False, "tokenSecret": "token"})
    assert not any(name.startswith("PersistentVolumeClaim/") for name in made)
    assert "NetworkPolicy/mine-gradwire-fleet-direct" not in made
    for template in pods(made).values():
        container = template["spec"]["containers"][0]
        assert container["envFrom"] == [{"secretRef": {"name": "store"}}]
        assert given(template)["GRADWIRE_STORE"] == "s3://bucket/fleet"
        assert given(template)["GRADWIRE_DIRECT"] == "false"
        assert "store" not in {each["name"] for each in template["spec"]["volumes"]}
    egress = made["NetworkPolicy/mine-gradwire-fleet"]["spec"]["egress"]
    assert {"ports": [{"port": 8333, "protocol": "TCP"}]} in egress
    spec = made["RayCluster/mine-gradwire-fleet"]["spec"]
    assert spec["authOptions"] == {"mode": "token", "secretName": "token"}
    assert given(pods(made)["gateway"])["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "token"


@needs_helm
def test_gpu_nodes_ask_for_gpus(tmp_path) -> None:
    made = rendered(tmp_path, fleet={**FLEET, "nodes": [GPU_NODES]})
    (group,) = made["RayCluster/mine-gradwire-fleet"]["spec"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": 8}
    assert (group["minReplicas"], group["maxReplicas"], group["labels"]) == (0, 8, {"zone": "a"})
    assert group["rayStartParams"]["resources"] == "'{\"nvlink\":1}'"
    assert group["template"]["spec"]["runtimeClassName"] == "nvidia"


@needs_helm
def test_only_gateways_have_the_certificate(tmp_path) -> None:
    made = pods(rendered(tmp_path, fleet=FLEET, tls={"existingSecret": "tls"}))
    assert given(made["gateway"])["GRADWIRE_TLS_CERT"] == "/run/secrets/tls/tls.crt"
    assert made["gateway"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"
    for name, template in made.items():
        mounts = {each["name"] for each in template["spec"]["containers"][0]["volumeMounts"]}
        volumes = {each["name"] for each in template["spec"]["volumes"]}
        assert mounts == volumes
        assert ("tls" in volumes) == (name == "gateway")


@needs_helm
def test_a_fleet_has_no_server_of_its_own(tmp_path) -> None:
    made = rendered(tmp_path, fleet=FLEET)
    assert not {"StatefulSet/mine-gradwire", "Service/mine-gradwire-pods"} & made.keys()
    assert not any("fleet" in name for name in rendered(tmp_path))


@needs_helm
def test_helm_finds_nothing_wrong_with_a_fleet(tmp_path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"keys": {"api": [HASH]}, "fleet": FLEET}), encoding="utf-8")
    command = [str(HELM), "lint", "--strict", str(CHART), "--values", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_manifests_say_how_they_are_rendered() -> None:
    head = MANIFEST.read_text(encoding="utf-8").split("---", 1)[0]
    assert "helm template mine docker/helm/gradwire" in head
