"""The application: routes, and around them, from the outside in, request context, origins, entrance, body limit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from gradwire_engine.compiled import toolchain
from gradwire_protocol.errors import Unavailable

from .access import Access, Entrance, KeyStore
from .access.origins import Cors
from .access.scopes import Rules
from .durable.store import Store
from .http import openapi, problems
from .http.body_limit import BodyLimit
from .http.context import RequestContext
from .http.mounting import Mounted
from .metrics import Metrics
from .routes import ROUTERS
from .sessions import Registry
from .settings import Settings, variable
from .state import Server
from .streams.backlog import Backlogs
from .threads import SHARED as THREADS
from .tracing import open_tracing
from .tuning import SWITCH_INTERVAL_S
from .version import VERSION


def _store(settings: Settings) -> Store | None:
    if settings.data_dir is None:
        return None
    try:
        return Store(settings.data_dir, settings.max_data_bytes)
    except Unavailable:
        raise Unavailable(
            f"the data directory {settings.data_dir} is in use by another server ({variable('data_dir')})"
        ) from None


def create_app(settings: Settings | None = None, keys: KeyStore | None = None) -> FastAPI:
    """An application by these settings, or by those in the environment; with these keys, or those of the settings.

    Raises:
        ValueError: when no API key is configured, or the file of keys is damaged.
        OSError: when the file of keys, the audit log or the data directory cannot be used.
        Unavailable: when another server uses the data directory.
    """
    settings = settings if settings is not None else Settings()
    metrics = Metrics()
    store = _store(settings)
    access = Access(settings, keys)
    tracing = open_tracing(settings, metrics)
    registry = Registry(settings, metrics, store, access.audit)
    server = Server(settings, access, metrics, registry, Backlogs(settings.max_key_backlog_bytes), tracing)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Sessions share this process's interpreter; with the default of 5 ms they would wait on each other.
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        if settings.session_host == "inline":
            toolchain.configure(settings.compiled_kernels, settings.cache_dir)
            THREADS.configure(settings.compute_threads)
        culling = asyncio.create_task(server.registry.cull())
        watching = asyncio.create_task(access.watch())
        try:
            yield
        finally:
            for task in (culling, watching):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            await server.registry.close()
            server.decoding.close()
            access.close()
            if tracing is not None:
                await asyncio.to_thread(tracing.close)

    app = FastAPI(title="gradwire", version=VERSION, lifespan=lifespan, redoc_url=None, redirect_slashes=False)
    app.state.server = server
    for router in ROUTERS:
        app.include_router(router)
    problems.install(app)
    openapi.install(app)
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, settings=settings, backlogs=server.backlogs)
    app.add_middleware(Entrance, access=access, rules=Rules(app.routes), registry=server.registry)
    app.add_middleware(RequestContext, metrics=metrics, tracing=tracing)
    if settings.allowed_origins:
        app.add_middleware(Cors, origins=settings.allowed_origins)
    if settings.root_path:
        app.add_middleware(Mounted, prefix=settings.root_path)
    return app
