"""The application of a gateway: the server's own, with a gateway's routes and forwarding in front."""

from __future__ import annotations

import socket
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware

from ..app import create_app
from ..auth import KeyStore
from ..settings.settings import Settings
from .forwarding import Forwarding
from .gateway import Gateway
from .joining import DirectoryHandle
from .routes import router


def create_gateway(
    settings: Settings, keys: KeyStore | None = None, directory: DirectoryHandle | None = None
) -> FastAPI:
    """Build the application of a gateway. Ray must be connected."""
    gateway = Gateway(settings, directory)
    keys = keys if keys is not None else KeyStore.configured(settings)
    settings = settings.model_copy(update=_for_its_application(settings))
    app = create_app(
        settings, keys, redirector=gateway, routers=(router,), inner=(Middleware(Forwarding, gateway=gateway),),
        running=gateway.running,
    )  # fmt: skip
    app.state.gateway = gateway
    return app


def _for_its_application(settings: Settings) -> dict[str, Any]:
    """Sessions, their leases and their files are the workers'. The folder of shared keys belongs to no one gateway."""
    if not settings.shared_keys or settings.data_dir is None:
        return {"store": ""}
    log = settings.audit_log or settings.data_dir / f"audit-{socket.gethostname()}.log"
    return {"store": "", "data_dir": None, "audit_log": log}
