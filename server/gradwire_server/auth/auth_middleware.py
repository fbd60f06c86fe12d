"""ASGI middleware for authentication and authorization.

It decides by the headers alone, before anything reads the body. The checks have a fixed order: the caller's identity
(401, 429), the rate limits (429), the owner of the session (404), the scope of the key (403).
"""

from __future__ import annotations

from typing import Final, Protocol
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars

from gradwire_protocol.errors import Forbidden, GradwireError, Unauthorized

from ..errors import problems
from ..settings.settings import digest_of
from . import origins
from .access_control import AccessControl
from .audit import on_account_of
from .caller import Caller
from .keys import Key
from .passes import PASS_HEADER, PassVerifier
from .scopes import OPEN_FOLDERS, OPEN_PATHS, STREAM, WORKER_OPEN_PATHS, Rules
from .sign_ins import check_same_origin, cookie_of

HOW_TO_AUTHENTICATE: Final = "send it as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'"
LIMIT_CODES: Final = frozenset({"too_many_requests", "limit_exceeded", "time_exceeded"})


def presented_key(headers: Headers) -> str | None:
    """The key in ``Authorization: Bearer <key>`` or ``X-API-Key: <key>``. Keys in the URL are not accepted."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    return headers.get("x-api-key")


def route_path(scope: Scope) -> str:
    """The path of a request without the proxy's prefix."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class OwnedSessions(Protocol):
    """Looks up sessions by owner."""

    async def find(self, session_id: str, tenant: str, /) -> object:
        """Find a session of a tenant.

        Raises:
            NotFound: when the tenant has no such session.
            SessionGone: when the tenant's session has ended.
            Unavailable: when nobody can tell now.
        """


class AuthMiddleware:
    """ASGI middleware. Stores the caller in ``scope["state"]["caller"]`` and the tenant in ``["tenant"]``."""

    def __init__(self, app: ASGIApp, access: AccessControl, rules: Rules, sessions: OwnedSessions) -> None:
        self.app = app
        self.access = access
        self.rules = rules
        self.sessions = sessions
        self.open_paths = OPEN_PATHS if access.passes is None else WORKER_OPEN_PATHS
        self.open_folders = OPEN_FOLDERS if access.passes is None else ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and self._open(route_path(scope))):
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
                self.access.rates.admit(who.key, counted=bool(who.session))
                if rule is not None:
                    await self._authorise(who, *rule)
            except GradwireError as error:
                await refuse(error, scope, receive, send)
            else:
                await self._forward(who, scope, receive, send)
            if scope["state"].get("problem") in LIMIT_CODES:
                setting = scope["state"].get("setting", "")
                self.access.audit.note(
                    "limit_hit", outcome=scope["state"]["problem"], setting=setting, throttle=(who.key.id, setting)
                )

    def _open(self, path: str) -> bool:
        """Whether a path requires no key."""
        return path in self.open_paths or path.startswith(self.open_folders)

    async def _forward(self, who: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        rates = self.access.rates
        counted = bool(who.session)  # by the gateway
        if scope["type"] == "websocket" or counted or not who.key.quota("max_bytes_per_second", self.access.settings):
            await self.app(scope, receive, send)
            return

        async def metered_receive() -> Message:
            message = await receive()
            rates.charge_bytes(who.key, len(message.get("body", b"")))
            return message

        async def metered_send(message: Message) -> None:
            if message["type"] == "http.response.body":
                rates.charge_bytes(who.key, len(message.get("body", b"")))
            await send(message)

        await self.app(scope, metered_receive, metered_send)

    # Authentication

    def _identify(self, scope: Scope, session: str | None) -> Caller:
        """The caller of a request or stream.

        Raises:
            Unauthorized: when the key or ticket is missing or invalid.
            TooManyRequests: when the address tried too many wrong keys.
            Forbidden: when the web page's origin may not open streams.
        """
        headers = Headers(scope=scope)
        address = (scope.get("client") or ("", 0))[0]
        request_id = problems.request_id(scope)
        text = presented_key(headers)
        if self.access.passes is not None:
            who = self._bearer(self.access.passes, scope, headers, session, address, request_id)
        elif text is not None:
            who = Caller(self._key(text, address, request_id), address, request_id)
        elif scope["type"] == "websocket" and session is not None and (ticket := _ticket(scope)) is not None:
            who = Caller(self._redeem(ticket, session, address, request_id), address, request_id, ticket=True)
        elif scope["type"] == "http" and (cookie := cookie_of(headers)) is not None and self.access.settings.console:
            who = self._signed_in(cookie, scope["method"], headers, address, request_id)
        else:
            raise Unauthorized(f"missing API key; {HOW_TO_AUTHENTICATE}")
        if self.access.passes is None:
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
            raise Unauthorized(f"unknown API key; {HOW_TO_AUTHENTICATE}")
        if end := key.end():
            access.audit.note(
                "key_refused", outcome="unauthorized", about=key.id, tenant=key.tenant, address=address,
                request_id=request_id, throttle=(key.id, address),
            )  # fmt: skip
            raise Unauthorized(f"this API key {'was revoked' if end == 'revoked' else 'has expired'}; use another key")
        access.rates.proved(address, digest)
        return key

    def _signed_in(self, cookie: str, method: str, headers: Headers, address: str, request_id: str) -> Caller:
        """The caller whom a cookie of the console stands for."""
        access = self.access
        sign_in = access.sign_ins.find(cookie)
        key = None if sign_in is None else access.keys.current(sign_in.key)
        if sign_in is None or key is None:
            if sign_in is not None:
                access.sign_ins.end(sign_in)
            raise Unauthorized("not signed in, or no longer; sign in to the console again")
        try:
            check_same_origin(method, headers)
        except Forbidden:
            access.audit.note(
                "origin_refused", outcome="forbidden", about=key.id, tenant=key.tenant, address=address,
                request_id=request_id, throttle=(key.id, address),
            )  # fmt: skip
            raise
        return Caller(key, address, request_id, sign_in=sign_in)

    def _redeem(self, ticket: str, session: str, address: str, request_id: str) -> Key:
        access = self.access
        access.rates.check_address(address, "")
        try:
            key = access.keys.current(access.tickets.redeem(ticket, session))
            if key is None:
                raise Unauthorized("the API key of this ticket was revoked or has expired")
        except Unauthorized:
            access.rates.failed(address)
            access.audit.note(
                "ticket_refused", outcome="unauthorized", address=address, request_id=request_id, throttle=(address,)
            )
            raise
        return key

    def _bearer(
        self, passes: PassVerifier, scope: Scope, headers: Headers, session: str | None, address: str, request_id: str
    ) -> Caller:
        """The caller that a pass names, in a worker of a fleet.

        Wrong passes do not block an address, as wrong keys do: passes cannot be guessed, many callers have the
        gateway's address, and clients that are late present expired ones.
        """
        stream = scope["type"] == "websocket"
        text = _ticket(scope) if stream else headers.get(PASS_HEADER)
        if not text:
            raise Unauthorized("a worker of a fleet serves only callers that its gateway sends; connect to the gateway")
        try:
            found = passes.check(text, "stream" if stream else "request", session)
        except Unauthorized as error:
            self.access.audit.note(
                "pass_refused", outcome="unauthorized", address=address, request_id=request_id,
                throttle=(address, str(error.details.get("reason"))),
            )  # fmt: skip
            raise
        return Caller(found.bearer.key(), address, request_id, ticket=stream, session=found.session)

    def _check_origin(self, who: Caller, origin: str | None) -> None:
        audit = self.access.audit
        with on_account_of(who):
            try:
                origins.check(origin, self.access.settings.allowed_origins)
            except Forbidden:
                audit.note("origin_refused", outcome="forbidden", throttle=(who.key.id, who.address))
                raise
            if who.ticket:
                audit.note("ticket_used")

    # Authorization

    async def _authorise(self, who: Caller, scope: str, session: str | None) -> None:
        """Check that the tenant owns the session and the key has the route's scope.

        Raises:
            NotFound: when the tenant has no such session, regardless of scopes and body.
            SessionGone: when the tenant's session has ended.
            Forbidden: when the key lacks the scope.
        """
        if session is not None:
            await self.sessions.find(session, who.key.tenant)
        if not scope or who.key.may(scope):
            return
        self.access.audit.note("scope_refused", outcome="forbidden", throttle=(who.key.id, scope))
        raise Forbidden(
            f"this request requires an API key with the scope {scope!r}; this key has {', '.join(who.key.scopes)}",
            scope=scope,
        )


def _ticket(scope: Scope) -> str | None:
    """The ticket in the URL of a stream."""
    try:
        found = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20)
    except ValueError:  # too many fields
        return None
    return found["ticket"][0] if "ticket" in found else None


async def refuse(error: GradwireError, scope: Scope, receive: Receive, send: Send) -> None:
    """Respond with a problem document, or reject the WebSocket handshake."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": error.message[:120]})
        return
    await problems.response(error, scope)(scope, receive, send)
