"""How a process becomes part of a fleet: Ray, and the Directory's handle."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any, Final

import ray
import structlog

from gradwire_protocol.errors import Unavailable

from ..settings.settings import Settings
from .directory import Directory
from .messages import DIRECTORY, NAMESPACE, answered

PATIENCE_S: Final = 20.0
"""How long a call waits for a Directory that is being restarted."""

PAUSE_S: Final = 0.1

STARTS: Final = 3
"""How often a Ray of the server's own is started. Its processes have few seconds each, too few on a busy machine."""

GATEWAY_ONLY: Final = frozenset(
    {
        "host", "port", "api_keys", "admin_keys", "data_dir", "audit_log", "tls_cert", "tls_key", "root_path",
        "trusted_proxies", "session_host", "head_patience_s", "shared_keys",
    }
)  # fmt: skip
"""Settings of a gateway that its workers do not take over."""

log = structlog.get_logger("gradwire.fleet")


def connect_ray(log_to_driver: bool = False) -> None:
    """Connect to the cluster at ``RAY_ADDRESS``, else start one on this machine.

    Raises:
        ValueError: when there is no cluster.
    """
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports its use to its makers unless told otherwise
    protect_ray()
    address = os.environ.get("RAY_ADDRESS")
    facts: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": log_to_driver, "configure_logging": False}
    where = {"address": address} if address else {"include_dashboard": False}
    for attempt in range(STARTS if not address else 1):
        try:
            ray.init(**where, **facts)
            return
        except (ConnectionError, RuntimeError) as error:
            problem = error
            ray.shutdown()
            log.warning("Ray did not start", attempt=attempt + 1, reason=str(error))
    raise ValueError(f"RAY_ADDRESS={address or ''}: no Ray cluster: {problem}")


def protect_ray() -> None:
    """Warn when Ray asks for no token: it runs anybody's code. A Ray of the server's own asks for one by itself."""
    mode = os.environ.get("RAY_AUTH_MODE", "" if os.environ.get("RAY_ADDRESS") else "token")
    if mode.lower() != "token":
        log.warning("Ray asks for no token: whoever reaches its ports owns the fleet", setting="RAY_AUTH_MODE")


def fleet_settings(settings: Settings) -> dict[str, Any]:
    """The settings that all workers of a fleet share."""
    found = settings.model_dump(mode="json", exclude=set(GATEWAY_ONLY))
    most = 1 if settings.worker_per == "session" else settings.sessions_per_worker
    return found | {"session_host": "inline", "sessions_per_worker": most}


class DirectoryHandle:
    """The Directory, for a gateway. All its calls may be repeated."""

    def __init__(self, settings: Settings) -> None:
        self._packed = fleet_settings(settings)
        self._actor: Any = None

    def open(self) -> Any:
        """Get the actor, or create it. Blocks."""
        actor = ray.remote(Directory)
        self._actor = actor.options(
            name=DIRECTORY, namespace=NAMESPACE, lifetime="detached", get_if_exists=True, max_restarts=-1,
            max_task_retries=0, max_concurrency=10_000, num_cpus=0,
        ).remote(self._packed)  # fmt: skip
        return self._actor

    async def call(self, method: str, *arguments: Any, patience: float = PATIENCE_S) -> dict[str, Any]:
        """Call a method of the Directory.

        Raises:
            Unavailable: when it stays away.
            GradwireError: when it refuses.
        """
        deadline = time.monotonic() + patience
        while True:
            try:
                actor = self._actor if self._actor is not None else await asyncio.to_thread(self.open)
                return answered(await getattr(actor, method).remote(*arguments))
            except ray.exceptions.ActorDiedError:
                self._actor = None
                problem = "died"
            except ray.exceptions.RayActorError as error:
                problem = str(error)[:200]
            except ray.exceptions.RayTaskError as error:
                raise Unavailable(f"the fleet's directory failed: {str(error)[-300:]}") from None
            if time.monotonic() > deadline:
                raise Unavailable(f"the fleet's directory is away: {problem}")
            await asyncio.sleep(PAUSE_S)
