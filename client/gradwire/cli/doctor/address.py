"""Whether the URL is one, whether anything listens there, and its certificate."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from gradwire_protocol.errors import GradwireError

from ..._core.wire import tls
from ..._core.wire.server_url import STREAMS
from .certificate import UnreadableCertificate, validity
from .findings import Finding, Status
from .patience import TookTooLong, within

EXPIRES_SOON_DAYS: Final = 21
LOCAL: Final = ("127.0.0.1", 8000)
"""Where a server listens by default."""


@dataclass(frozen=True)
class Address:
    """A usable URL.

    Attributes:
        url: as the client takes it.
        shown: the same without a password.
        proxy: the HTTP proxy on the way to it, without a password; empty without one.
    """

    url: str
    shown: str
    host: str
    port: int
    secure: bool
    proxy: str

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def shown(url: str) -> str:
    """A URL without password, query and fragment, in which keys might be."""
    try:
        parts = urlsplit(url)
        if parts.username is None and parts.password is None:
            return urlunsplit(parts._replace(query="", fragment=""))
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"***@{place}", query="", fragment=""))
    except ValueError:
        return url.split("@")[-1].split("?")[0]


def read(url: str, source: str) -> tuple[Finding, Address | None]:
    """Check the form of a URL. ``source``: where it comes from."""

    def refuse(text: str, advice: str) -> tuple[Finding, None]:
        return Finding("url", Status.FAILURE, f"{shown(url)} ({source}) {text}", advice, {"source": source}), None

    form = "write it as http://HOST:PORT, or https://HOST for a server with TLS"
    if url != url.strip() or any(mark in url for mark in "'\"\n\t "):
        return refuse("contains blanks or quotes", "write it without them, for example http://gpu-box:8000")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return refuse(f"is not a URL: {error}", form)
    if (scheme := STREAMS.get(parts.scheme)) is not None:
        right = shown(urlunsplit(SplitResult(scheme, parts.netloc, _served_path(parts.path), "", "")))
        return refuse("is a URL for WebSockets", f"write {right}: the client opens its WebSocket itself")
    if parts.scheme not in ("http", "https"):
        right = "" if "://" in url or "@" in url else f", for example http://{url}"
        return refuse("does not begin with http:// or https://", form + right)
    if not parts.hostname:
        return refuse("names no host", form)
    if parts.query or parts.fragment:
        return refuse("has a query or a fragment", "remove it; a key is passed in GRADWIRE_API_KEY, never in the URL")
    secure = parts.scheme == "https"
    found = Address(
        url, shown(url), parts.hostname, port or (443 if secure else 80), secure, _proxy(parts.scheme, parts.hostname)
    )
    facts = {"url": found.shown, "source": source, "proxy": found.proxy}
    if _served_path(parts.path) != parts.path:
        advice = f"unless a proxy publishes the server there, write {shown(url.replace(parts.path, ''))}"
        return Finding("url", Status.WARNING, f"{found.shown} ({source}) looks like a route", advice, facts), found
    if parts.username is not None:
        advice = "the server wants a key, in GRADWIRE_API_KEY; a name in the URL is for a proxy that asks for a login"
        return Finding("url", Status.WARNING, f"{found.shown} ({source}) has a name and password", advice, facts), found
    return Finding("url", Status.OK, f"{found.shown} ({source})", facts=facts), found


def _served_path(path: str) -> str:
    """A path without the routes below it that people copy from documents."""
    return path[: path.find("/v1")] if path.startswith("/v1") or path.endswith(("/v1", "/v1/")) else path


def _proxy(scheme: str, host: str) -> str:
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(host):
        return ""
    return shown(proxies.get(scheme) or proxies.get("all") or "")


def reach(address: Address, seconds: float) -> Finding:
    """Resolve the name and open a connection."""
    where = f"{address.host}:{address.port}"
    if address.proxy:
        text = f"requests go through the proxy {address.proxy}; streams go to {where} directly"
        advice = f"if {address.host} is in your own network, add it to the variable NO_PROXY"
        return Finding("address", Status.WARNING, text, advice, {"proxy": address.proxy})
    try:
        found = within(seconds, lambda: socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM))
    except TookTooLong:
        advice = "check the network and the name server of this machine"
        return Finding("address", Status.FAILURE, f"the name {address.host} was not resolved in {seconds:g} s", advice)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        advice = "check the spelling, and whether a VPN is needed to see it"
        return Finding("address", Status.FAILURE, f"no host {address.host} is known: {reason}", advice)
    numbers = list(dict.fromkeys(str(each[4][0]) for each in found))
    try:
        within(seconds + 1, lambda: socket.create_connection((address.host, address.port), seconds).close())
    except ConnectionRefusedError:
        start = "gradwire serve" if address.loopback else "gradwire serve --host 0.0.0.0, on that machine"
        advice = f"start the server ({start}), or correct the port; its first line shows its URL"
        return Finding("address", Status.FAILURE, f"nothing listens on {where}", advice, {"addresses": numbers})
    except (TookTooLong, TimeoutError):
        advice = "a firewall may drop the connection: open the port, or use a tunnel (ssh -L 8000:127.0.0.1:8000 HOST)"
        text = f"{where} did not accept a connection within {seconds:g} s"
        return Finding("address", Status.FAILURE, text, advice, {"addresses": numbers})
    except OSError as error:
        text = f"{where} cannot be reached: {error.strerror or error}"
        return Finding("address", Status.FAILURE, text, "check the network, VPN and firewall", {"addresses": numbers})
    text = f"{where} accepts connections" if address.host in numbers else f"{where} accepts connections ({numbers[0]})"
    return Finding("address", Status.OK, text, facts={"addresses": numbers})


def check_tls(address: Address, seconds: float) -> Finding:
    """Check the certificate, or say that there is none."""
    if not address.secure:
        if address.loopback:
            return Finding("tls", Status.OK, "none, and none is needed on this machine", facts={"tls": False})
        advice = "use https://, a tunnel (ssh -L) or a private network: docs/deploying.md, TLS"
        return Finding("tls", Status.WARNING, "none: the key and all data travel in clear", advice, {"tls": False})
    if address.proxy:
        return Finding("tls", Status.SKIPPED, "not checked through a proxy", facts={"tls": True})
    try:
        context = tls.context(address.url)
    except GradwireError as error:
        return Finding("tls", Status.FAILURE, error.message, f"correct {tls.VARIABLE}", {"tls": True})
    try:
        version, certificate = within(seconds + 1, lambda: _handshake(address, context, seconds))
    except ssl.SSLCertVerificationError as error:
        return _distrusted(address, error, seconds)
    except ssl.SSLError as error:
        if speaks_http(address, seconds):
            advice = f"write {address.shown.replace('https://', 'http://', 1)}"
            return Finding("tls", Status.FAILURE, f"port {address.port} speaks HTTP without TLS", advice, {"tls": True})
        text = f"the TLS handshake failed: {error.reason or error}"
        return Finding("tls", Status.FAILURE, text, "check that the port is the server's", {"tls": True})
    except (TookTooLong, TimeoutError):
        advice = "check that the port is the server's, and that no firewall inspects TLS"
        return Finding("tls", Status.FAILURE, f"no TLS handshake within {seconds:g} s", advice, {"tls": True})
    except OSError as error:
        text = f"the connection broke during the TLS handshake: {error.strerror or error}"
        return Finding("tls", Status.FAILURE, text, "check that the port is the server's", {"tls": True})
    facts = {"tls": True, "version": version}
    try:
        ends = validity(certificate)[1]
    except UnreadableCertificate:
        return Finding("tls", Status.OK, f"{version}, the certificate is trusted", facts=facts)
    days = (ends - datetime.now(UTC)).total_seconds() / 86400
    facts |= {"expires_at": ends.isoformat(), "days_left": round(days, 1)}
    text = f"{version}, the certificate is trusted until {ends:%Y-%m-%d} ({days:.0f} days)"
    if days < EXPIRES_SOON_DAYS:
        return Finding("tls", Status.WARNING, text, "renew it; the server loads a new file by itself", facts)
    return Finding("tls", Status.OK, text, facts=facts)


def _distrusted(address: Address, error: ssl.SSLCertVerificationError, seconds: float) -> Finding:
    reason = error.verify_message or str(error)
    advice = f"if it is of a private authority, set {tls.VARIABLE} to the authority's file (PEM)"
    text = f"the certificate is not trusted: {reason}"
    try:
        _, certificate = within(seconds + 1, lambda: _handshake(address, _unverified(), seconds))
        begins, ends = validity(certificate)
    except (OSError, TookTooLong, UnreadableCertificate):
        return Finding("tls", Status.FAILURE, text, advice, {"tls": True, "reason": reason})
    now = datetime.now(UTC)
    if ends < now:
        text = f"the certificate expired on {ends:%Y-%m-%d} ({(now - ends).days} days ago)"
        advice = "renew it; the server loads a new file by itself. If the date is in the future, set this clock"
    elif begins > now:
        text = f"the certificate is valid from {begins:%Y-%m-%d %H:%M} UTC on; here it is {now:%Y-%m-%d %H:%M}"
        advice = "set the clock of this machine, or that of the machine that issued it"
    elif "mismatch" in reason.lower() or "not valid for" in reason:
        text = f"the certificate is for another name than {address.host}: {reason}"
        advice = "use the name in the certificate as the host of GRADWIRE_URL"
    return Finding("tls", Status.FAILURE, text, advice, {"tls": True, "reason": reason, "expires_at": ends.isoformat()})


def _handshake(address: Address, context: ssl.SSLContext, seconds: float) -> tuple[str, bytes]:
    """The version of TLS, and the certificate in DER."""
    with (
        socket.create_connection((address.host, address.port), seconds) as raw,
        context.wrap_socket(raw, server_hostname=address.host) as secured,
    ):
        return secured.version() or "TLS", secured.getpeercert(binary_form=True) or b""


def _unverified() -> ssl.SSLContext:
    """To read a certificate that is refused. Nothing is sent over such a connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def speaks_tls(address: Address, seconds: float) -> bool:
    """Whether the port of an ``http://`` URL speaks TLS."""
    try:
        within(seconds + 1, lambda: _handshake(address, _unverified(), seconds))
    except (OSError, TookTooLong):
        return False
    return True


def speaks_http(address: Address, seconds: float) -> bool:
    """Whether the port of an ``https://`` URL speaks HTTP without TLS."""

    def ask() -> bytes:
        with socket.create_connection((address.host, address.port), seconds) as raw:
            raw.sendall(b"GET /livez HTTP/1.1\r\nHost: doctor\r\nConnection: close\r\n\r\n")
            return raw.recv(5)

    try:
        return within(seconds + 1, ask) == b"HTTP/"
    except (OSError, TookTooLong):
        return False


def listens_locally(seconds: float) -> bool:
    """Whether something listens where a server does by default."""
    try:
        within(seconds + 1, lambda: socket.create_connection(LOCAL, seconds).close())
    except (OSError, TookTooLong):
        return False
    return True
