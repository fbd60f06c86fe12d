"""The entrance: ASGI middleware that lets nobody in without a key, and nobody where their key does not reach.

It stands before everything that reads: a request is refused by its headers alone. The order is the same for all: who
asks (401, 429), may they ask so much (429), is the session theirs (404), does the key cover it (403).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from gradwire_protocol.errors import Forbidden, GradwireError, Unauthorized

from ..http import problems
from ..settings import digest_of
from . import origins
from .audit import on_account_of
from .caller import Caller
from .desk import Access
from .keys import Key
from .scopes import OPEN_PATHS, STREAM, Rules

if TYPE_CHECKING:
    from ..sessions import Registry

HOW: Final = "send it as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'"
LIMIT_CODES: Final = frozenset({"too_many_requests", "limit_exceeded", "time_exceeded"})


def presented_key(headers: Headers) -> str | None:
    """The key of a request: ``Authorization: Bearer <key>``, or ``X-API-Key: <key>``. A key in a URL is none."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    return headers.get("x-api-key")


def route_path(scope: Scope) -> str:
    """The path of a request without the prefix under which a proxy shows this server."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class Entrance:
    """ASGI middleware. The caller is left in ``scope["state"]["caller"]``, the tenant in ``["tenant"]``."""

    def __init__(self, app: ASGIApp, access: Access, rules: Rules, registry: Registry) -> None:
        self.app = app
        self.access = access
        self.rules = rules
        self.registry = registry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and route_path(scope) in OPEN_PATHS):
            await self.app(scope, receive, send)
            return
        rule = self.rules.find(scope.get("method", STREAM), route_path(scope))
        session = None if rule is None else rule[1]
        try:
            who = self._identify(scope, session)
        except GradwireError as error:
            await refuse(error, scope, receive, send)
            return
        scope["state"] |= {"caller": who, "tenant": who.key.tenant}
        bind_contextvars(tenant=who.key.tenant)
        with on_account_of(who):
            try:
                self.access.rates.admit(who.key)
                if rule is not None:
                    self._authorise(who, *rule)
            except GradwireError as error:
                await refuse(error, scope, receive, send)
            else:
                await self._pass(who, scope, receive, send)
            if scope["state"].get("problem") in LIMIT_CODES:
                setting = scope["state"].get("setting", "")
                self.access.audit.note(
                    "limit_hit", outcome=scope["state"]["problem"], setting=setting, seldom=(who.key.id, setting)
                )

    async def _pass(self, who: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        rates = self.access.rates
        if scope["type"] == "websocket" or not who.key.quota("max_bytes_per_second", self.access.settings):
            await self.app(scope, receive, send)
            return

        async def taken() -> Message:
            message = await receive()
            rates.charge_bytes(who.key, len(message.get("body", b"")))
            return message

        async def given(message: Message) -> None:
            if message["type"] == "http.response.body":
                rates.charge_bytes(who.key, len(message.get("body", b"")))
            await send(message)

        await self.app(scope, taken, given)

    # Who asks

    def _identify(self, scope: Scope, session: str | None) -> Caller:
        """Who asks.

        Raises:
            Unauthorized: nobody that is known here.
            TooManyRequests: an address that has tried too many wrong keys.
            Forbidden: a web page that may not open streams.
        """
        headers = Headers(scope=scope)
        address = (scope.get("client") or ("", 0))[0]
        request_id = problems.request_id(scope)
        text = presented_key(headers)
        if text is not None:
            who = Caller(self._key(text, address, request_id), address, request_id)
        elif scope["type"] == "websocket" and session is not None and (ticket := _ticket(scope)) is not None:
            who = Caller(self._redeem(ticket, session, address, request_id), address, request_id, ticket=True)
        else:
            raise Unauthorized(f"no API key was given: {HOW}")
        self.access.keys.used(who.key)
        if scope["type"] == "websocket":
            self._check_origin(who, headers.get("origin"))
        return who

    def _key(self, text: str, address: str, request_id: str) -> Key:
        access, digest = self.access, digest_of(text)
        access.rates.check_address(address, digest)
        key = access.keys.find(text)
        if key is None:
            turned_away = access.rates.failed(address)
            access.audit.note("key_refused", outcome="unauthorized", address=address, request_id=request_id)
            if turned_away:
                access.audit.note("address_turned_away", outcome="too_many_requests", address=address)
            raise Unauthorized(f"this API key is not known here: {HOW}")
        if end := key.end():
            access.audit.note(
                "key_refused", outcome="unauthorized", about=key.id, tenant=key.tenant, address=address,
                request_id=request_id, seldom=(key.id, address),
            )  # fmt: skip
            raise Unauthorized(f"this API key {'was revoked' if end == 'revoked' else 'has expired'}: ask for another")
        access.rates.proved(address, digest)
        return key

    def _redeem(self, ticket: str, session: str, address: str, request_id: str) -> Key:
        access = self.access
        access.rates.check_address(address, "")
        try:
            key = access.keys.current(access.tickets.redeem(ticket, session))
            if key is None:
                raise Unauthorized("the API key of this ticket opens nothing any more")
        except Unauthorized:
            access.rates.failed(address)
            access.audit.note(
                "ticket_refused", outcome="unauthorized", address=address, request_id=request_id, seldom=(address,)
            )
            raise
        return key

    def _check_origin(self, who: Caller, origin: str | None) -> None:
        audit = self.access.audit
        with on_account_of(who):
            try:
                origins.check(origin, self.access.settings.allowed_origins, needed=who.ticket)
            except Forbidden:
                audit.note("origin_refused", outcome="forbidden", seldom=(who.key.id, who.address))
                raise
            if who.ticket:
                audit.note("ticket_used")

    # What they may

    def _authorise(self, who: Caller, scope: str, session: str | None) -> None:
        """Check that the session is the tenant's, and that the key covers the route.

        Raises:
            NotFound: for a session that is not the tenant's, whatever the scopes and whatever the body.
            SessionGone: for one that was.
            Forbidden: naming the scope that the key lacks.
        """
        if session is not None:
            self.registry.get(session, who.key.tenant)
        if not scope or who.key.may(scope):
            return
        self.access.audit.note("scope_refused", outcome="forbidden", seldom=(who.key.id, scope))
        raise Forbidden(
            f"this needs a key with the scope {scope!r}; this one has {', '.join(who.key.scopes)}", scope=scope
        )


def _ticket(scope: Scope) -> str | None:
    """The ticket in the URL of a stream."""
    try:
        found = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20)
    except ValueError:  # more fields than anything has here
        return None
    return found["ticket"][0] if "ticket" in found else None


async def refuse(error: GradwireError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a problem instead of what was asked for; a WebSocket is not accepted."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})
        return
    await problems.response(error, scope)(scope, receive, send)
