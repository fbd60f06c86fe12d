"""This machine's installation, and what the server tells about its devices, kernels and disk."""

from __future__ import annotations

import os
import platform
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ..._core.context.version import __version__
from ..sizes import bytes_text
from .findings import Finding, Status

LITTLE_DISK_BYTES: Final = 1 << 30
LITTLE_SHARE: Final = 0.05
NVIDIA_DRIVER: Final = Path("/proc/driver/nvidia/version")
SERVER_MODULES: Final = ("gradwire_server", "gradwire_engine", "fastapi")
INSTALL_SERVER: Final = "pip install 'gradwire[server]'"


def check_client() -> Finding:
    """The version of this client, and what is installed beside it."""
    server, cupy = _server_is_installed(), find_spec("cupy") is not None
    extras = [name for name, there in (("the server", server), ("CuPy", cupy)) if there]
    text = f"gradwire {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    facts = {"version": __version__, "python": platform.python_version(), "server_installed": server,
             "cupy_installed": cupy}  # fmt: skip
    return Finding("client", Status.OK, f"{text}; with {' and '.join(extras) or 'nothing else'}", facts=facts)


def _server_is_installed() -> bool:
    return all(find_spec(name) is not None for name in SERVER_MODULES)


def check_installation() -> Finding | None:
    """Why no embedded server can be started, if so."""
    if _server_is_installed():
        return None
    advice = f"set GRADWIRE_URL to a server, or {INSTALL_SERVER}"
    return Finding("url", Status.FAILURE, "GRADWIRE_URL is not set, and no server is installed here", advice)


def check_devices(rows: list[dict[str, Any]]) -> Finding:
    """The server's devices and their free memory."""
    texts, short = [], []
    for row in rows:
        total, free = int(row["total_bytes"]), int(row["free_bytes"])
        memory = f", {bytes_text(free)} of {bytes_text(total)} free" if total else ""
        count = f", {row['multiprocessors']} {'cores' if row['name'] == 'cpu' else 'multiprocessors'}"
        texts.append(f"{row['name']} ({str(row['model'])[:40]}{count}{memory})")
        if total and free < LITTLE_SHARE * total:
            short.append(str(row["name"]))
    text = "; ".join(texts) or "none"
    if short:
        advice = f"memory of {', '.join(short)} is nearly used up: end sessions or other programs there"
        return Finding("devices", Status.WARNING, text, advice, {"devices": rows})
    return Finding("devices", Status.OK, text, facts={"devices": rows})


def check_gpu(cuda: dict[str, Any] | None, devices: list[dict[str, Any]], embedded: bool) -> Finding:
    """CuPy and the driver, where the server computes."""
    if cuda is None:
        return Finding("gpu", Status.SKIPPED, "a gateway computes nothing; its workers' devices are above")
    facts = dict(cuda)
    here = embedded and NVIDIA_DRIVER.exists()
    if cuda["cupy"] is None:
        if cuda["problem"]:
            advice = "install CuPy for the CUDA version of the driver: gradwire[cuda12] or gradwire[cuda13]"
            return Finding("gpu", Status.WARNING, f"CuPy does not load: {cuda['problem']}", advice, facts)
        if here:
            advice = "pip install 'gradwire[cuda12]' or 'gradwire[cuda13]', whichever nvidia-smi shows"
            return Finding("gpu", Status.WARNING, "an NVIDIA driver, but no CuPy", advice, facts)
        text = "no CuPy: tensors live on the CPU (with an NVIDIA GPU: gradwire[cuda12], [cuda13])"
        return Finding("gpu", Status.OK, text, facts=facts)
    text = f"CuPy {cuda['cupy']}, CUDA runtime {cuda['runtime'] or '?'}, driver for CUDA {cuda['driver'] or 'none'}"
    if cuda["problem"]:
        advice = "install or repair the NVIDIA driver; in a container, start it with --gpus all"
        return Finding("gpu", Status.WARNING, f"{text}: {cuda['problem']}", advice, facts)
    if _major(cuda["runtime"]) > _major(cuda["driver"]):
        advice = f"upgrade the driver, or install gradwire[cuda{_major(cuda['driver'])}]"
        return Finding("gpu", Status.WARNING, f"{text}: the driver is too old", advice, facts)
    if not any(str(row["name"]).startswith("cuda") for row in devices):
        advice = "look at CUDA_VISIBLE_DEVICES of the server"
        return Finding("gpu", Status.WARNING, f"{text}, but no GPU is visible", advice, facts)
    return Finding("gpu", Status.OK, text, facts=facts)


def _major(version: str | None) -> int:
    number = (version or "0").split(".")[0]
    return int(number) if number.isdecimal() else 0


def check_kernels(kernels: dict[str, Any] | None, libraries: dict[str, str]) -> Finding:
    """The compiled CPU kernels and their cache."""
    if kernels is None:
        return Finding("kernels", Status.SKIPPED, "a gateway computes nothing")
    facts = dict(kernels) | {"libraries": libraries}
    mode, state = kernels["mode"], kernels["state"]
    if mode == "off":
        return Finding("kernels", Status.OK, "turned off (GRADWIRE_COMPILED_KERNELS=off): NumPy computes", facts=facts)
    if state == "failed" or (kernels["reason"] and kernels["kept"] is None):
        text = f"not used, NumPy computes: {kernels['reason'][-160:]}"
        advice = (
            "pip install numba where the server runs, or see its log; GRADWIRE_COMPILED_KERNELS=off says no to them"
        )
        return Finding("kernels", Status.WARNING, text, advice, facts)
    if not kernels["kept"]:
        advice = "make GRADWIRE_CACHE_DIR a folder that only the server's user can write to"
        return Finding("kernels", Status.WARNING, "compiled anew at each start: no cache is kept", advice, facts)
    if kernels["complete"]:
        loaded = {"ready": ", and loaded", "preparing": ", being loaded"}.get(state or "", "")
        return Finding("kernels", Status.OK, f"in the cache, for this version and processor{loaded}", facts=facts)
    if state == "preparing":
        advice = "wait a minute or two; gradwire-server warm does it before the start"
        return Finding("kernels", Status.WARNING, "being compiled; NumPy computes until then", advice, facts)
    text = "the cache has none for this version and processor yet"
    return Finding("kernels", Status.WARNING, text, "gradwire-server warm compiles them before the start", facts)


def check_disk(storage: dict[str, Any] | None, limits: dict[str, int], embedded: bool) -> Finding:
    """Where sessions are kept, and how much room is left."""
    if storage is None:
        text = "sessions live in memory only"
        return Finding("disk", Status.OK, text + ("" if embedded else "; GRADWIRE_DATA_DIR would keep them"))
    facts = dict(storage)
    kind = "data directory" if storage["kind"] == "directory" else "shared storage"
    text = f"{kind}, durability {storage['durability']}"
    if storage["writable"] is False:
        advice = "give the server's user the right to write there (GRADWIRE_DATA_DIR, GRADWIRE_STORE)"
        return Finding("disk", Status.FAILURE, f"{text}: not writable", advice, facts)
    if storage["total_bytes"] is None:
        return Finding("disk", Status.OK, text, facts=facts)
    free, total = int(storage["free_bytes"]), int(storage["total_bytes"])
    text += f", {bytes_text(free)} of {bytes_text(total)} free"
    if most := limits.get("max_data_bytes"):
        text += f"; sessions may use {bytes_text(most)}"
    if free < max(LITTLE_DISK_BYTES, LITTLE_SHARE * total):
        advice = "make room, or move GRADWIRE_DATA_DIR; a full disk stops sessions with journals"
        return Finding("disk", Status.WARNING, text, advice, facts)
    return Finding("disk", Status.OK, text, facts=facts)


def variable(name: str) -> str:
    """The value of an environment variable, empty if it is not set."""
    return os.environ.get(name) or ""
