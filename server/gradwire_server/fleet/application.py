"""The application of a gateway: the server's, with its own routes for new sessions, and forwarding around others."""

from __future__ import annotations

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
    settings = settings.model_copy(update={"store": ""})  # sessions and their leases are the workers'
    app = create_app(
        settings, keys, redirector=gateway, routers=(router,), inner=(Middleware(Forwarding, gateway=gateway),),
        running=gateway.running,
    )  # fmt: skip
    app.state.gateway = gateway
    return app
