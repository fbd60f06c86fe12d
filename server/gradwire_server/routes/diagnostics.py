"""What ``gradwire doctor`` asks a server: limits of the key, libraries, GPUs, compiled kernels, disk."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request

from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.devices import describe_cuda

from ..auth import Key, caller_of
from ..auth.keys import QUOTAS
from ..durable.store import Store
from ..http.models import DiagnosticsView
from ..http.openapi import PROBLEMS
from ..http.state import Server, TheServer
from ..settings.settings import Settings, variable
from ..settings.timestamps import timestamp

LIBRARIES: Final = ("numpy", "scipy", "numba")
INSPECTING_S: Final = 60.0
"""How long the child process that inspects the cache of kernels may take."""
INSPECTED_EVERY_S: Final = 30.0

router = APIRouter(prefix="/v1/diagnostics", tags=["server"], responses=PROBLEMS)


@router.get("", operation_id="getDiagnostics", summary="Get diagnostics", response_model=DiagnosticsView)
async def get(server: TheServer, request: Request) -> dict[str, Any]:
    """Get what ``gradwire doctor`` shows: the key's limits, libraries, GPUs, compiled kernels and disk."""
    key = caller_of(request).key
    return {
        "key": {
            "id": key.id, "name": key.name, "scopes": key.scopes,
            "expires_at": None if key.expires is None else timestamp(key.expires),
        },
        "sessions": len(server.registry.of(key.tenant)) if server.settings.session_host != "ray" else None,
        "limits": limits(server.settings, key),
        "session_host": server.settings.session_host,
    } | await asyncio.to_thread(_machine, server)  # fmt: skip


def limits(settings: Settings, key: Key) -> dict[str, int]:
    """The settings ``max_*`` as they apply to a key; 0 for no limit."""
    found = {name: getattr(settings, name) for name in type(settings).model_fields if name.startswith("max_")}
    found |= {name: key.quota(name, settings) for name in QUOTAS}
    return {name: int(value) for name, value in found.items()}


def _machine(server: Server) -> dict[str, Any]:
    settings = server.settings
    computes = settings.session_host != "ray"
    return {
        "libraries": {"python": platform.python_version()} | dict(_versions()),
        "cuda": describe_cuda() if computes else None,
        "kernels": _kernels(settings) if computes else None,
        "storage": _storage(server),
    }


def _versions() -> Iterator[tuple[str, str]]:
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


def _kernels(settings: Settings) -> dict[str, Any]:
    told = toolchain.describe()
    here = settings.session_host == "inline"
    found: dict[str, Any] = {
        "mode": settings.compiled_kernels, "state": told["state"] if here else None,
        "reason": told["reason"] if here else "", "kept": None, "complete": None,
    }  # fmt: skip
    if settings.compiled_kernels != "off" and found["state"] != "failed":
        found |= _CACHES.inspect(settings.cache_dir)
    return found


class _Inspections:
    """What the cache of kernels is like. Inspecting it loads LLVM, so a child process does it, one at a time and no
    more often than it changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path | None, tuple[float, dict[str, Any]]] = {}

    def inspect(self, folder: Path | None) -> dict[str, Any]:
        """``kept`` and ``complete``, or ``reason``."""
        with self._lock:
            at, found = self._known.get(folder, (float("-inf"), {}))
            if time.monotonic() - at > INSPECTED_EVERY_S:
                found = _inspect(folder)
                self._known = {folder: (time.monotonic(), found)}
            return found


_CACHES: Final = _Inspections()


def _inspect(folder: Path | None) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRADWIRE_")}
    if folder is not None:
        environment[variable("cache_dir")] = str(folder)
    command = [sys.executable, "-m", toolchain.__name__, "--inspect"]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSPECTING_S,
            check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        return {"reason": (str(error.stderr).strip().splitlines() or [f"exit code {error.returncode}"])[-1][:300]}
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        return {"reason": type(error).__name__}
    return found


def _storage(server: Server) -> dict[str, Any] | None:
    store = server.registry.store
    if store is None:
        return None
    folder = store.root if isinstance(store, Store) else None if "://" in store.root else Path(store.root)
    found: dict[str, Any] = {
        "kind": "directory" if isinstance(store, Store) else "shared",
        "durability": server.settings.promised_durability(),
        "total_bytes": None, "free_bytes": None, "writable": None,
    }  # fmt: skip
    if folder is not None:
        try:
            use = shutil.disk_usage(folder)
        except OSError:  # it is gone, or its disk is
            return found | {"writable": False}
        found |= {"total_bytes": use.total, "free_bytes": use.free, "writable": os.access(folder, os.W_OK | os.X_OK)}
    return found
