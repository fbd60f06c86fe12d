"""What a session asks of the machine that it runs on, and how Ray is told."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from gradwire_protocol.errors import InvalidRequest

from ..settings.settings import Settings

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB|KIB|MIB|GIB|TIB)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
                 "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip
ACCELERATOR: Final = "accelerator_type:"
"""Ray's resource of a GPU model. A node has 1 of it; a worker takes a small part."""

ACCELERATOR_PART: Final = 0.001
NODE_LABEL: Final = "ray.io/node-id"


LEAST_CPUS: Final = 0.05
"""Of a worker without a GPU. One that takes nothing would run on any node, Ray's head included, in any number."""

LEAST_MEMORY: Final = 150 * 10**6
"""Of a worker that asks for memory: what its process takes without a session."""

STEP: Final = 0.0001
"""Ray's unit of CPUs, GPUs and custom resources."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_./-]*[A-Za-z0-9])?")
_OF_RAY: Final = frozenset({"CPU", "GPU", "memory", "object_store_memory"})
_LABELS_OF_RAY: Final = "ray.io/"


class Resources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one worker takes of a node.

    Attributes:
        gpus: GPUs; a fraction shares one.
        gpu: the model of the GPU as Ray names it, or empty for any.
        cpus: CPUs.
        memory: bytes.
        resources: custom resources of Ray by name.
        labels: labels that the node must have.
    """

    gpus: float = 0.0
    gpu: str = ""
    cpus: float = 1.0
    memory: int = 0
    resources: dict[str, float] = {}
    labels: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The resource class: sessions of one class can share a worker."""
        return msgspec.json.encode(self, order="deterministic").decode()

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def shown(self) -> str:
        """For messages, for example ``gpus=1, gpu=H100``."""
        given = [f"{name}={value:g}" for name, value in (("gpus", self.gpus), ("cpus", self.cpus)) if value]
        given += [f"gpu={self.gpu}"] if self.gpu else []
        given += [f"memory={self.memory:,}"] if self.memory else []
        given += [f"{name}={amount:g}" for name, amount in self.resources.items()]
        return ", ".join(given + [f"label {name}={value}" for name, value in self.labels.items()])

    def demand(self) -> dict[str, float]:
        """What Ray subtracts from a node, by the names in ``ray.nodes()``."""
        found = {"GPU": self.gpus, "CPU": self.cpus, "memory": float(self.memory), **self.resources}
        if self.gpu:
            found[ACCELERATOR + self.gpu] = ACCELERATOR_PART
        return {name: amount for name, amount in found.items() if amount}

    def options(self, avoided: set[str]) -> dict[str, Any]:
        """The options of a Ray actor that takes these resources, on none of these nodes."""
        custom = dict(self.resources) | ({ACCELERATOR + self.gpu: ACCELERATOR_PART} if self.gpu else {})
        selector = dict(self.labels)
        if avoided:
            selector[NODE_LABEL] = f"!in({','.join(sorted(avoided))})"
        found: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        found |= {"memory": self.memory} if self.memory else {}
        found |= {"resources": custom} if custom else {}
        return found | ({"label_selector": selector} if selector else {})


def parse_size(text: str | int) -> int:
    """Bytes of a size such as ``40GB``.

    Raises:
        InvalidRequest: when it is not a size.
    """
    if isinstance(text, int):
        return text
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InvalidRequest(f"memory must be a size such as '40GB' or '512MiB', not {text!r:.40}")
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])


def requested(
    settings: Settings,
    device: str | None,
    gpu: str | bool | None = None,
    gpus: float | None = None,
    cpus: float | None = None,
    memory: str | int | None = None,
    resources: dict[str, float] | None = None,
    labels: dict[str, str] | None = None,
) -> Resources:
    """The resources of a session that asks for these, with the settings' defaults.

    Raises:
        InvalidRequest: for a combination that no node can have.
    """
    on_gpu = (device or settings.default_device).startswith("cuda")
    wants_gpu = bool(gpu) or on_gpu
    if gpus is not None and gpus > 1 and gpus != int(gpus):
        raise InvalidRequest(f"gpus={gpus:g}: a fraction of one GPU, or a whole number of GPUs")
    if gpus == 0 and wants_gpu:
        asked = f"gpu={gpu!r}" if gpu else f"device={device or settings.default_device!r}"
        raise InvalidRequest(f"gpus=0 contradicts {asked}")
    _check_names(resources or {}, labels or {})
    if cpus is not None and cpus < LEAST_CPUS and not (gpus or wants_gpu):
        raise InvalidRequest(f"cpus={cpus:g}: a session without a GPU takes at least {LEAST_CPUS:g}")
    size = settings.worker_memory if memory is None else parse_size(memory)
    if memory is not None and size < LEAST_MEMORY:
        raise InvalidRequest(f"memory={memory!r:.40}: a session takes at least {LEAST_MEMORY // 10**6} MB")
    for name, amount in {"gpus": gpus, "cpus": cpus, **(resources or {})}.items():
        if amount is not None and abs(amount / STEP - round(amount / STEP)) > 1e-6:
            raise InvalidRequest(f"{name}={amount!r} is no multiple of {STEP:g}")
    return Resources(
        gpus=gpus if gpus is not None else settings.worker_gpus or 1.0 if wants_gpu else 0.0,
        gpu=gpu if isinstance(gpu, str) else "",
        cpus=settings.worker_cpus if cpus is None else cpus,
        memory=size,
        resources=resources or {},
        labels=labels or {},
    )


def _check_names(resources: dict[str, float], labels: dict[str, str]) -> None:
    """Check names and labels: Ray gives some of them a meaning, and reads operators in labels.

    Raises:
        InvalidRequest: for one that a session cannot ask for.
    """
    for name in resources:
        if not _NAME.fullmatch(name) or name in _OF_RAY or name.startswith("node:"):
            raise InvalidRequest(f"resources: {name!r:.80} is no custom resource; use gpus, cpus and memory for those")
    for name, value in labels.items():
        if not _LABEL.fullmatch(name) or not _LABEL.fullmatch(value) or name.startswith(_LABELS_OF_RAY):
            raise InvalidRequest(f"labels: {name!r:.80}: {value!r:.80} is no label that a session can ask for")
