"""The application: routes inside middleware. From the outside in: request context, CORS, authentication, body limit."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware

from gradwire_engine.kernels.cpu import toolchain
from gradwire_protocol.errors import Unavailable

from .auth import AccessControl, AuthMiddleware, KeyStore
from .auth.origins import Cors
from .auth.passes import PassVerifier
from .auth.scopes import Rules
from .durable.shared.shared_store import SharedStore
from .durable.store import Store
from .errors import problems
from .hosting.threads import SHARED as THREADS
from .http import openapi
from .http.activity import Activity
from .http.backlog import Backlogs
from .http.body_limit import BodyLimit
from .http.context import RequestContext
from .http.mounting import Mounted
from .http.redirector import Redirector
from .http.state import Server
from .http.tensor_formats import DTYPE_HEADER, SHAPE_HEADER
from .observability.metrics import Metrics
from .observability.tracing import open_tracing
from .routes import ROUTERS, console
from .sessions.sessions import SessionRegistry
from .settings.settings import Settings, variable
from .settings.tuning import SWITCH_INTERVAL_S
from .settings.version import VERSION


def _store(settings: Settings) -> Store | SharedStore | None:
    if settings.store:
        scratch = None if settings.data_dir is None else settings.data_dir / "scratch"
        return SharedStore.open(settings.store, settings.lease_s, scratch, settings.max_data_bytes)
    if settings.data_dir is None:
        return None
    try:
        return Store(settings.data_dir, settings.max_data_bytes)
    except Unavailable:
        raise Unavailable(
            f"the data directory {settings.data_dir} is in use by another server ({variable('data_dir')})"
        ) from None


def create_app(
    settings: Settings | None = None,
    keys: KeyStore | None = None,
    *,
    passes: PassVerifier | None = None,
    redirector: Redirector | None = None,
    routers: Sequence[APIRouter] = (),
    inner: Sequence[Middleware] = (),
    running: Callable[[Server], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """Build an application.

    Args:
        settings: default: the settings of the environment.
        keys: default: the keys of the settings.
        passes: makes this a worker of a fleet, which accepts the passes of its gateways and no keys. No setting does
            so, since nobody should lock out their keys by accident.
        redirector: makes this a gateway, whose streams are served elsewhere.
        routers: routes that come before the others.
        inner: middleware around the routes, inside of all other, the outermost first.
        running: entered while the application runs.

    Raises:
        ValueError: when no API key is configured, or the key file is damaged.
        OSError: when the key file, the audit log, the data directory or the shared storage is unusable.
        Unavailable: when another server uses the data directory.
    """
    settings = settings if settings is not None else Settings()
    metrics = Metrics()
    store = _store(settings)
    access = AccessControl(settings, keys, passes)
    tracing = open_tracing(settings, metrics)
    registry = SessionRegistry(settings, metrics, store, access.audit)
    backlogs = Backlogs(settings.max_key_backlog_bytes)
    activity = Activity(settings, access, registry)
    server = Server(settings, access, metrics, registry, backlogs, activity, tracing, redirector=redirector)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Sessions share the GIL; with the default of 5 ms they would delay each other.
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        if settings.session_host == "inline":
            toolchain.configure(settings.compiled_kernels, settings.cache_dir)
            THREADS.configure(settings.compute_threads)
        culling = asyncio.create_task(server.registry.cull())
        watching = asyncio.create_task(access.watch())
        try:
            async with running(server) if running is not None else nullcontext():
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

    app = FastAPI(title="gradwire", version=VERSION, lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    app.state.server = server
    app.state.openapi_documents = {}
    for router in (*routers, *ROUTERS, *((console.router,) if settings.console else ())):
        app.include_router(router)
    problems.install(app)
    openapi.install(app)
    # The last middleware added is the outermost.
    for each in reversed(inner):
        app.add_middleware(each.cls, *each.args, **each.kwargs)
    app.add_middleware(BodyLimit, settings=settings, backlogs=server.backlogs)
    sessions = server.registry if redirector is None else redirector
    app.add_middleware(AuthMiddleware, access=access, rules=Rules(app.routes), sessions=sessions)
    app.add_middleware(RequestContext, metrics=metrics, tracing=tracing)
    if settings.allowed_origins:
        app.add_middleware(Cors, origins=settings.allowed_origins, headers=(DTYPE_HEADER, SHAPE_HEADER))
    if settings.root_path:
        app.add_middleware(Mounted, prefix=settings.root_path)
    return app
