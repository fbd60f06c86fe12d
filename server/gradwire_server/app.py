"""The application: routes, and around them, from the outside in, request context, authentication, body limit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from . import openapi, problems
from .auth import Authentication, KeyRing
from .body_limit import BodyLimit
from .context import RequestContext
from .metrics import Metrics
from .routes import ROUTERS
from .sessions import Registry
from .settings import Settings
from .state import Server
from .tuning import SWITCH_INTERVAL_S
from .version import VERSION


def create_app(settings: Settings | None = None) -> FastAPI:
    """An application by these settings, or by those in the environment.

    Raises:
        ValueError: when no API key is configured.
    """
    settings = settings if settings is not None else Settings()
    metrics = Metrics()
    server = Server(settings, KeyRing(settings.api_keys), metrics, Registry(settings, metrics))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Sessions share this process's interpreter; with the default of 5 ms they would wait on each other.
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        culling = asyncio.create_task(server.registry.cull())
        try:
            yield
        finally:
            culling.cancel()
            with suppress(asyncio.CancelledError):
                await culling
            await server.registry.close()

    app = FastAPI(title="gradwire", version=VERSION, lifespan=lifespan, redoc_url=None, redirect_slashes=False)
    app.state.server = server
    for router in ROUTERS:
        app.include_router(router)
    problems.install(app)
    openapi.install(app)
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(Authentication, keys=server.keys)
    app.add_middleware(RequestContext, metrics=metrics)
    return app
