"""The routes that a gateway answers itself: they come before the server's own of the same paths."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

import httpx
import msgspec
import structlog
from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from gradwire_protocol.errors import GradwireError, InvalidRequest, NotFound, Unavailable, from_code

from ..auth import caller_of
from ..auth.keys import Key
from ..auth.passes import PASS_HEADER
from ..errors import problems
from ..http.models import (
    PLACEMENT,
    Bound,
    Device,
    DeviceList,
    KeyMade,
    KeyRequest,
    Seconds,
    SessionList,
    SessionRequest,
    SessionView,
)
from ..http.openapi import PROBLEMS
from ..http.state import TheServer, TheTenant
from ..http.tensor_formats import SAFETENSORS
from ..routes import health, keys
from ..settings.session_spec import Durability
from ..settings.settings import Settings, variable
from .forwarding import Body as ForwardedBody
from .gateway import Gateway, gateway_of
from .messages import Placement, Wanted, pack, unpack
from .resources import Resources, requested

NEW: Final = "new"
"""What stands for the session in the pass of a request that creates one."""

TRIES: Final = 3

log = structlog.get_logger("gradwire.fleet")
router = APIRouter()


async def _gateway(request: Request) -> Gateway:
    return gateway_of(request.app)


TheGateway = Annotated[Gateway, Depends(_gateway)]
Worker = Annotated[str, Path(max_length=128, description="Id of a worker.")]
Node = Annotated[str, Path(max_length=128, description="Id of a node, the beginning of one, or its address.")]


@router.post("/v1/sessions", include_in_schema=False, status_code=201, response_model=SessionView)
async def create(
    gateway: TheGateway,
    request: Request,
    response: Response,
    body: Annotated[SessionRequest | None, Body()] = None,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> dict[str, Any]:
    """Place a session and create it on its worker."""
    spec = body or SessionRequest()
    key = caller_of(request).key
    resources = requested(gateway.settings, spec.device, **spec.placement())
    wanted = _wanted(key, resources, None if spec.limits is None else spec.limits.model_dump(exclude_none=True))
    wanted.repeat, wanted.request = idempotency_key or "", spec.model_dump_json()
    plain = spec.model_dump(mode="json", exclude_none=True, exclude=set(PLACEMENT))

    async def send(place: Placement, headers: dict[str, str]) -> httpx.Response:
        sent = plain | ({"limits": place.limits} if place.limits is not None else {})
        return await gateway.http.post(f"{place.url}/v1/sessions", json=sent, headers=headers)

    return await _create(gateway, request, response, wanted, send)


@router.post("/v1/sessions/import", include_in_schema=False, status_code=201, response_model=SessionView)
async def import_(
    gateway: TheGateway,
    request: Request,
    response: Response,
    device: Annotated[Device, Query()] = None,
    ttl_s: Annotated[Seconds, Query()] = None,
    durability: Annotated[Durability | None, Query()] = None,
    max_session_bytes: Annotated[Bound | None, Query()] = None,
    content_type: Annotated[str, Header()] = SAFETENSORS,
) -> dict[str, Any]:
    """Place a session and import the file on its worker."""
    asked = None if max_session_bytes is None else {"max_session_bytes": max_session_bytes}
    wanted = _wanted(caller_of(request).key, requested(gateway.settings, device), asked)
    given = {"device": device, "ttl_s": ttl_s, "durability": durability}
    query = {name: str(value) for name, value in given.items() if value is not None}
    body = await ForwardedBody.begin(request.scope, request.receive)

    async def send(place: Placement, headers: dict[str, str]) -> httpx.Response:
        granted = (place.limits or {}).get("max_session_bytes")
        sent = query if granted is None else query | {"max_session_bytes": str(granted)}
        if length := request.headers.get("content-length"):
            headers["Content-Length"] = length
        headers["Content-Type"] = content_type
        url = f"{place.url}/v1/sessions/import"
        return await gateway.http.post(url, params=sent, content=body.content(), headers=headers)

    return await _create(gateway, request, response, wanted, send)


def _wanted(key: Key, resources: Resources, limits: dict[str, int] | None) -> Wanted:
    facts = msgspec.to_builtins(msgspec.structs.replace(key, digest=""))
    return Wanted(tenant=key.tenant, key=facts, resources=msgspec.to_builtins(resources), limits=limits)


Send = Callable[[Placement, dict[str, str]], Coroutine[Any, Any, httpx.Response]]


async def _create(gateway: Gateway, request: Request, response: Response, wanted: Wanted, send: Send) -> dict[str, Any]:
    work = asyncio.create_task(_placed(gateway, request, wanted, send))
    summary = await asyncio.shield(work)  # what was begun is finished, although the client disconnects
    response.headers["Location"] = f"{gateway.settings.root_path}/v1/sessions/{summary['id']}"
    return summary


async def _placed(gateway: Gateway, request: Request, wanted: Wanted, send: Send) -> dict[str, Any]:
    key = caller_of(request).key
    for _ in range(TRIES):
        with gateway.gauges.placing.time():
            place = unpack(await gateway.directory.call("place", pack(wanted)), Placement)
        if place.session:
            return await _summary(gateway, key, place)
        try:
            headers = {
                PASS_HEADER: await gateway.request_pass(key, NEW, place.worker),
                "X-Request-ID": problems.request_id(request.scope),
            }
            answer = await send(place, headers)
        except httpx.HTTPError as error:
            # If the session was created all the same, nobody knows its id, and it expires.
            await gateway.directory.call("failed", place.reservation)
            log.warning("worker cannot be reached", worker=place.worker, reason=str(error))
            if isinstance(error, httpx.ConnectError):
                await asyncio.sleep(0.2)  # for Ray to notice
                continue
            raise Unavailable("the worker ended before it answered") from None
        except BaseException:
            await gateway.directory.call("failed", place.reservation)
            raise
        if not answer.is_success:
            await gateway.directory.call("failed", place.reservation)
            raise _problem(answer)
        summary: dict[str, Any] = answer.json()
        await gateway.directory.call("made", place.reservation, place.worker, summary)
        place.session = summary["id"]
        gateway.remember(place.session, key.tenant, place)
        return summary
    raise Unavailable("no worker could be reached")


async def _summary(gateway: Gateway, key: Key, place: Placement) -> dict[str, Any]:
    """The session that an earlier request created."""
    place = await gateway.locate(place.session, key.tenant)
    signed = await gateway.request_pass(key, place.session, place.worker)
    try:
        answer = await gateway.http.get(f"{place.url}/v1/sessions/{place.session}", headers={PASS_HEADER: signed})
    except httpx.HTTPError as error:
        raise Unavailable(f"the worker of session {place.session} did not answer: {error}") from None
    if not answer.is_success:
        raise _problem(answer)
    found: dict[str, Any] = answer.json()
    return found


def _problem(answer: httpx.Response) -> GradwireError:
    """The error of a worker's answer."""
    try:
        body = answer.json()
        extra = {name: value for name, value in body.get("extra", {}).items() if name not in ("code", "message")}
        return from_code(str(body["code"]), str(body["detail"]), **extra)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Unavailable(f"the worker answered with HTTP {answer.status_code}")


@router.get("/v1/sessions", include_in_schema=False, response_model=SessionList)
async def list_(gateway: TheGateway, tenant: TheTenant) -> dict[str, Any]:
    """List the tenant's sessions in the whole fleet, as of their workers' last reports."""
    return await gateway.directory.call("list_sessions", tenant)


@router.get("/metrics", include_in_schema=False, response_class=Response)
async def metrics(server: TheServer, gateway: TheGateway) -> Response:
    """The server's own metrics, with those of the fleet."""
    await gateway.gauges.refresh()
    return await health.metrics(server)


@router.get("/v1/devices", include_in_schema=False, response_model=DeviceList)
async def devices(gateway: TheGateway) -> dict[str, Any]:
    """The kinds of devices of the fleet."""
    nodes = (await gateway.directory.call("fleet"))["nodes"]
    memory, cpus = sum(node["memory"] for node in nodes), sum(node["cpus"] for node in nodes)
    rows = [_device("cpu", f"{len(nodes)} nodes", int(cpus), memory)]
    models = sorted({node["gpu"] or "GPU" for node in nodes if node["gpus"]})
    return {"devices": rows + [_device("cuda:0", model, 0, 0) for model in models]}


def _device(name: str, model: str, processors: int, memory: int) -> dict[str, Any]:
    return {"name": name, "model": model, "total_bytes": memory, "free_bytes": memory, "capability": None,
            "multiprocessors": processors}  # fmt: skip


@router.post("/v1/keys", include_in_schema=False, status_code=201, response_model=KeyMade)
async def create_key(server: TheServer, gateway: TheGateway, body: KeyRequest) -> dict[str, Any]:
    """Create a key, unless the other gateways would not know it."""
    check_keys_are_shared(gateway.settings)
    return await keys.create(server, body)


def check_keys_are_shared(settings: Settings) -> None:
    """Check that a key that one gateway creates will be known at all.

    Raises:
        InvalidRequest: when it will not.
    """
    shared = settings.shared_keys and settings.data_dir is not None
    if not shared and os.environ.get("RAY_ADDRESS"):
        raise InvalidRequest(
            "the other gateways of this fleet would not know this key: give all gateways one shared folder as "
            f"{variable('data_dir')} and set {variable('shared_keys')}, or give them all the keys by file "
            f"({variable('api_keys')}_FILE)",
            setting=variable("shared_keys"),
        )


fleet_router = APIRouter(prefix="/v1/fleet", tags=["fleet"], responses=PROBLEMS)


@fleet_router.get("", operation_id="getFleet", summary="Get the state of the fleet")
async def fleet(gateway: TheGateway) -> dict[str, Any]:
    """Get nodes, workers, gateways, and the numbers of sessions."""
    return await gateway.directory.call("fleet")


@fleet_router.get(
    "/workers/{worker}/metrics", operation_id="getWorkerMetrics", summary="Get the metrics of a worker",
    response_class=PlainTextResponse,
)  # fmt: skip
async def worker_metrics(gateway: TheGateway, request: Request, worker: Worker) -> Response:
    """Get a worker's metrics in the Prometheus format. Clients reach workers, so workers show them to gateways only."""
    found = {each["id"]: each for each in (await gateway.directory.call("fleet"))["workers"] if each["url"]}
    if worker not in found:
        raise NotFound(f"no worker of the fleet has the id {worker!r:.80}", workers=sorted(found))
    signed = await gateway.request_pass(caller_of(request).key, NEW, worker)
    try:
        answer = await gateway.http.get(f"{found[worker]['url']}/metrics", headers={PASS_HEADER: signed})
    except httpx.HTTPError as error:
        raise Unavailable(f"worker {worker} did not answer: {error}") from None
    if not answer.is_success:
        raise _problem(answer)
    return Response(answer.content, media_type=answer.headers["content-type"])


@fleet_router.post("/nodes/{node}/drain", operation_id="drainNode", summary="Drain a node")
async def drain(server: TheServer, gateway: TheGateway, node: Node) -> dict[str, Any]:
    """Move the sessions of a node to others; their clients go on. The node gets no workers until this is undone."""
    found = await gateway.directory.call("drain", node)
    server.access.audit.note("node_drained", about=found["node"])
    return found


@fleet_router.delete("/nodes/{node}/drain", operation_id="undrainNode", summary="Use a drained node again")
async def undrain(gateway: TheGateway, node: Node) -> dict[str, Any]:
    """Let a drained node take workers again."""
    return await gateway.directory.call("undrain", node)


router.include_router(fleet_router)
