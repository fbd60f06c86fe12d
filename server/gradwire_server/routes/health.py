"""Whether the server lives, whether it takes work, what it is, and what it counts."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from gradwire_engine.devices import describe_devices
from gradwire_protocol.errors import Unavailable
from gradwire_protocol.frames import PROTOCOL_VERSION

from ..http.openapi import PROBLEMS
from ..metrics import Metrics
from ..models import DeviceList, Health, VersionView
from ..state import TheServer
from ..streams.handshake import CAPABILITIES
from ..version import VERSION

router = APIRouter(tags=["server"], responses=PROBLEMS)


@router.get("/livez", response_model=Health)
async def livez() -> dict[str, str]:
    """The process answers. Needs no key."""
    return {"status": "alive"}


@router.get("/readyz", response_model=Health)
async def readyz(server: TheServer) -> dict[str, str]:
    """The server takes work. 503 while it is stopping. Needs no key."""
    if server.registry.draining:
        raise Unavailable("the server is stopping")
    return {"status": "ready"}


@router.get("/v1/version", response_model=VersionView)
async def version(server: TheServer) -> dict[str, Any]:
    """Versions, capabilities and devices."""
    return {
        "name": "gradwire",
        "version": VERSION,
        "protocol": PROTOCOL_VERSION,
        "capabilities": list(CAPABILITIES),
        "devices": server.registry.devices,
    }


@router.get("/v1/devices", response_model=DeviceList)
async def devices() -> dict[str, Any]:
    """The devices that tensors can live on: what they are, and how much of their memory is free."""
    return {"devices": await asyncio.to_thread(describe_devices)}


@router.get("/metrics", response_class=Response, responses={200: {"content": {Metrics.content_type: {}}}})
async def metrics(server: TheServer) -> Response:
    """Counters and timings in Prometheus' text format."""
    await server.registry.refresh()
    return Response(server.metrics.exposition(), headers={"Content-Type": server.metrics.content_type})
