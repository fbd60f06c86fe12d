"""Liveness, readiness, version, devices and metrics."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from gradwire_engine.kernels.cpu import toolchain
from gradwire_engine.runtime.devices import describe_devices
from gradwire_protocol.errors import Unavailable
from gradwire_protocol.frames import PROTOCOL_VERSION

from ..http.models import DeviceList, Health, VersionView
from ..http.openapi import PROBLEMS
from ..http.state import TheServer
from ..observability.metrics import Metrics
from ..settings.version import VERSION
from ..websocket.handshake import CAPABILITIES

router = APIRouter(tags=["server"], responses=PROBLEMS)


@router.get("/livez", operation_id="checkLiveness", summary="Check that the server responds", response_model=Health)
async def livez() -> dict[str, str]:
    """Liveness check: the process responds. Requires no key."""
    return {"status": "alive"}


@router.get(
    "/readyz", operation_id="checkReadiness", summary="Check that the server takes requests", response_model=Health
)
async def readyz(server: TheServer) -> dict[str, str]:
    """Readiness check: 503 while the server is stopping. Requires no key."""
    if server.registry.draining:
        raise Unavailable("the server is stopping")
    return {"status": "ready"}


@router.get(
    "/v1/version", operation_id="getVersion", summary="Get version and capabilities", response_model=VersionView
)
async def version(server: TheServer) -> dict[str, Any]:
    """Get the server's version, protocol version, capabilities and devices, and whether its kernels are compiled."""
    return {
        "name": "gradwire",
        "version": VERSION,
        "protocol": PROTOCOL_VERSION,
        "capabilities": list(CAPABILITIES),
        "devices": server.registry.devices,
        "kernels": toolchain.describe()["state"],
    }


@router.get("/v1/devices", operation_id="listDevices", summary="List devices", response_model=DeviceList)
async def devices() -> dict[str, Any]:
    """List the server's devices and their free memory."""
    return {"devices": await asyncio.to_thread(describe_devices)}


@router.get(
    "/metrics",
    operation_id="getMetrics",
    summary="Get metrics",
    response_class=Response,
    responses={200: {"content": {Metrics.content_type: {}}}},
)
async def metrics(server: TheServer) -> Response:
    """Get the metrics in Prometheus' text format."""
    await server.registry.refresh()
    return Response(server.metrics.exposition(), headers={"Content-Type": server.metrics.content_type})
