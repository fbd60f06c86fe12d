"""Signed passes: how a gateway tells a worker of a fleet who the caller is.

A gateway checks the API key and signs a pass for one session on one worker. The worker has no keys of its own and
accepts nothing else. A pass of kind ``stream`` travels in the URL of a stream, which may end up in logs, so it is
one-time and expires within seconds. A pass of kind ``request`` travels in a header between gateway and worker and is
valid for the retries of one request.

A pass is ``<body>.<signature>``, both base64url: the body is :class:`Pass` in JSON, the signature its HMAC-SHA256 under
the fleet's secret. The signature covers the body's text, so exactly one text is valid. Times are Unix times, since
gateway and worker are different machines; their clocks may differ by :data:`SKEW_S`.

A pass is not a lease: a stream outlives the pass that opened it. When the key is revoked, the fleet tells its workers
(:meth:`~.access_control.AccessControl.end_keys`), which close the key's streams and refuse passes with it for good.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Literal

import msgspec

from gradwire_protocol.errors import Unauthorized, Unavailable
from gradwire_protocol.frames import MAX_ADDRESS

from .keys import MAX_KEYS, Key

PASS_HEADER: Final = "X-Gradwire-Pass"
SECRET_BYTES: Final = 32
LIFETIMES_S: Final = {"stream": 10.0, "request": 30.0}
SKEW_S: Final = 5.0
MAX_NONCES: Final = 100_000
"""Used stream passes that a worker remembers until they expire: streams opened within :data:`LIFETIMES_S`."""

_DOMAIN: Final = b"gradwire-pass-1."
"""Precedes the signed text, so that the secret signs nothing else by accident."""

Kind = Literal["stream", "request"]


class Bearer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The caller's key in a pass: a :class:`~.keys.Key` without anything by which the key could be recognized."""

    id: str
    name: str
    tenant: str
    scopes: list[str]
    expires: float | None = None
    quotas: dict[str, int] = {}

    @classmethod
    def of(cls, key: Key) -> Bearer:
        """The bearer of a pass for this key."""
        return cls(
            id=key.id, name=key.name, tenant=key.tenant, scopes=key.scopes, expires=key.expires, quotas=key.quotas
        )

    def key(self) -> Key:
        """The key as the worker uses it."""
        return Key(
            id=self.id, digest="", name=self.name, tenant=self.tenant, scopes=self.scopes, expires=self.expires,
            quotas=self.quotas, kept="pass",
        )  # fmt: skip


class Pass(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a pass says.

    Attributes:
        kind: ``stream`` opens one stream, ``request`` authorizes one forwarded request.
        bearer: the caller's key.
        session: the only session that the pass is for.
        worker: the only process that accepts it. A restarted worker is another one.
        nonce: a random name of the pass.
        expires: Unix time.
    """

    kind: Kind
    bearer: Bearer
    session: str
    worker: str
    nonce: str
    expires: float


class PassMint:
    """Signs passes, in a gateway.

    Args:
        secret: the fleet's secret, at least :data:`SECRET_BYTES` random bytes.
        clock: the Unix time.
    """

    def __init__(self, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        self._secret = _checked(secret)
        self._clock = clock

    def stream(self, key: Key, session: str, worker: str) -> str:
        """A one-time pass for a stream."""
        return self._sign("stream", key, session, worker)

    def request(self, key: Key, session: str, worker: str) -> str:
        """A pass for a forwarded request, which may be repeated."""
        return self._sign("request", key, session, worker)

    def _sign(self, kind: Kind, key: Key, session: str, worker: str) -> str:
        content = Pass(
            kind=kind, bearer=Bearer.of(key), session=session, worker=worker, nonce=secrets.token_urlsafe(16),
            expires=self._clock() + LIFETIMES_S[kind],
        )  # fmt: skip
        body = _text(msgspec.json.encode(content))
        return f"{body}.{_signature(self._secret, body)}"


class PassVerifier:
    """Checks passes, in a worker.

    Args:
        secret: the fleet's secret.
        worker: the name of this process, which passes must name.
        clock: the Unix time.
        most: how many used passes are remembered.
    """

    def __init__(
        self, secret: bytes, worker: str, clock: Callable[[], float] = time.time, most: int = MAX_NONCES
    ) -> None:
        self.worker = worker
        self._secret = _checked(secret)
        self._clock = clock
        self._most = most
        self._used: OrderedDict[str, float] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def check(self, text: str, kind: Kind, session: str | None) -> Pass:
        """Check a pass, and use it up if it opens a stream.

        Args:
            text: the pass.
            kind: what it is presented for.
            session: the session of the request; ``None`` for a request that names none.

        Raises:
            Unauthorized: when it is invalid; ``reason`` says why: ``damaged``, ``kind``, ``worker``, ``session``,
                ``expired``, ``key_ended`` or ``used``.
            Unavailable: when too many streams were opened a moment ago to remember another pass.
        """
        found = self._read(text)
        now = self._clock()
        if found.kind != kind:
            raise _refused("kind", f"this pass is for a {found.kind}, not for a {kind}")
        if not hmac.compare_digest(found.worker.encode(), self.worker.encode()):
            raise _refused("worker", "this pass is for another worker")
        if session is not None and found.session != session:
            raise _refused("session", "this pass is for another session")
        if not now - SKEW_S < found.expires <= now + LIFETIMES_S[kind] + SKEW_S:
            late = now - found.expires
            raise _refused(
                "expired",
                f"this pass expired {late:.3g} s ago; clocks may differ by {SKEW_S:g} s"
                if late > 0
                else f"this pass is valid for {-late:.3g} s, longer than any: the clocks of gateway and worker differ "
                f"by more than {SKEW_S:g} s",
            )
        if found.bearer.id in self._ended or found.bearer.key().end(now):
            raise _refused("key_ended", f"the API key {found.bearer.id} was revoked or has expired")
        if kind == "stream":
            self._use(found.nonce)
        return found

    def is_valid(self, key: Key) -> bool:
        """Whether the key of a pass is still valid."""
        return key.id not in self._ended and not key.end(self._clock())

    def end_keys(self, ids: Iterable[str]) -> None:
        """Refuse passes of these keys from now on. A revoked key never becomes valid again."""
        for key_id in ids:
            self._ended[key_id] = None
            self._ended.move_to_end(key_id)
        while len(self._ended) > MAX_KEYS:  # by then gateways have stopped signing for the oldest
            self._ended.popitem(last=False)

    def _read(self, text: str) -> Pass:
        body, _, signature = text.partition(".")
        if len(text) > MAX_ADDRESS or not text.isascii():
            raise _refused("damaged", "this is not a pass")
        if not hmac.compare_digest(_signature(self._secret, body).encode(), signature.encode()):
            raise _refused("damaged", "the signature of this pass is wrong")
        try:
            return msgspec.json.decode(_bytes(body), type=Pass)
        except (msgspec.MsgspecError, ValueError) as error:
            raise _refused("damaged", f"this pass is of another version of gradwire: {error}") from None

    def _use(self, nonce: str) -> None:
        """Remember a used pass until it has expired. Time that never goes back counts, not the clock."""
        now = time.monotonic()
        while self._used and next(iter(self._used.values())) <= now:
            self._used.popitem(last=False)
        if nonce in self._used:
            raise _refused("used", "this pass was used before; each opens one stream")
        if len(self._used) >= self._most:
            raise Unavailable(
                f"more than {self._most:,} streams were opened within {LIFETIMES_S['stream']:g} s", retry_after_s=1.0
            )
        self._used[nonce] = now + LIFETIMES_S["stream"] + 2 * SKEW_S


def _checked(secret: bytes) -> bytes:
    if len(secret) < SECRET_BYTES:
        raise ValueError(f"the secret of passes has {len(secret)} bytes; it needs at least {SECRET_BYTES}")
    return secret


def _refused(reason: str, text: str) -> Unauthorized:
    return Unauthorized(f"{text}; the gateway gives a new one", reason=reason)


def _signature(secret: bytes, body: str) -> str:
    return _text(hmac.digest(secret, _DOMAIN + body.encode(), hashlib.sha256))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
