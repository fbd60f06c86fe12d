"""A gateway sends the client to the worker that has the session; programs do not see what happens on the way."""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest
import trustme
from starlette.websockets import WebSocket
from tests.cutting_relay import Cut, CuttingRelay, cutting_relay
from tests.live_server import live_server
from tests.small_fleet import WORKER, SmallFleet, small_fleet
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import gradwire
from gradwire._core.session.session import Session
from gradwire._core.wire import dialer, tls
from gradwire._core.wire.connection import Connection
from gradwire._core.wire.dialer import FRUITLESS_AT_MOST, REDIRECTS_AT_MOST, Dialer, trusted, wants_direct
from gradwire_protocol import envelope
from gradwire_protocol.errors import ArgumentValueError, MalformedFrame, SessionGone, Unauthorized, VersionMismatch
from gradwire_protocol.frames import PROTOCOL_VERSION, REDIRECT, Hello, Redirect
from gradwire_server.auth.passes import PassMint
from gradwire_server.websocket import handshake


@pytest.fixture(scope="module")
def fleet() -> Iterator[SmallFleet]:
    with small_fleet(worker={"max_sessions": 100}) as found:
        yield found


@pytest.fixture
def room(fleet: SmallFleet) -> Iterator[str]:
    """A session on the worker, and redirects that lead there."""
    fleet.point(fleet.worker.url)
    session = fleet.create()
    yield session
    fleet.delete(session)


@pytest.fixture(autouse=True)
def restore_session() -> Iterator[None]:
    """Leave the default session as it was."""
    from gradwire._core.session import current_session as module

    before = module._current
    yield
    module._current = before


@contextmanager
def joined(fleet: SmallFleet, session: str, direct: bool | None = None) -> Iterator[Session]:
    opened = gradwire.connect(fleet.gateway.url, fleet.gateway.api_key, session=session, patience=60, direct=direct)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def before_worker(fleet: SmallFleet, cuts: Sequence[int | Cut | None] = ()) -> Iterator[tuple[CuttingRelay, str]]:
    """Another address of the worker, whose connections are cut."""
    with cutting_relay(urlsplit(fleet.worker.url).port or 0, cuts) as relay:
        yield relay, f"http://127.0.0.1:{relay.port}"


@contextmanager
def nobody(listens: bool) -> Iterator[str]:
    """The address of a machine where nothing answers: it refuses connections, or accepts them and stays silent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not listens:
            server.close()
        yield f"http://127.0.0.1:{port}"


def count(most: int) -> list[float]:
    """Add 1 again and again, and read each sum: a frame that is lost or applied twice shows."""
    counter, found = gradwire.zeros(1), []
    for _ in range(most):
        counter += 1
        found.append(counter.item())
    return found


def expected(most: int) -> list[float]:
    return [float(n) for n in range(1, most + 1)]


def test_the_session_runs_on_the_worker(fleet: SmallFleet, room: str) -> None:
    with joined(fleet, room) as session:
        assert count(3) == expected(3)
        stats = session.stats()
        assert (stats["direct"], stats["redirects"], stats["fallbacks"], stats["reconnects"]) == (1, 1, 0, 0)
    assert fleet.director.relayed == 0
    assert [hello.capabilities for hello in fleet.director.hellos] == [[REDIRECT]]


def test_the_key_never_reaches_the_worker(fleet: SmallFleet, room: str) -> None:
    original = Connection._write_blocking
    sent: dict[int, list[bytes]] = {}

    def recording(self: Connection, wait: object = None) -> None:
        taken = self._protocol.data_to_send
        port = self._socket.getpeername()[1]

        def data_to_send() -> list[bytes]:
            pieces = taken()
            sent.setdefault(port, []).extend(bytes(piece) for piece in pieces)
            return pieces

        with patch.object(self._protocol, "data_to_send", data_to_send):
            original(self, wait)

    with patch.object(Connection, "_write_blocking", recording), joined(fleet, room):
        assert count(2) == expected(2)
    key = fleet.gateway.api_key.encode()
    assert key in b"".join(sent[urlsplit(fleet.gateway.url).port or 0])
    assert key not in b"".join(sent[urlsplit(fleet.worker.url).port or 0])
    assert fleet.director.given[0].encode() in b"".join(sent[urlsplit(fleet.worker.url).port or 0])


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_program_can_stay_at_the_gateway(fleet: SmallFleet, room: str, how: str) -> None:
    environment = {"GRADWIRE_DIRECT": "0"} if how == "variable" else {}
    with patch.dict(os.environ, environment), joined(fleet, room, False if how == "argument" else None) as session:
        assert count(3) == expected(3)
        assert session.stats()["direct"] == session.stats()["redirects"] == 0
    assert fleet.director.relayed == 1
    assert not fleet.director.hellos


def test_a_client_that_knows_no_redirects_is_relayed(fleet: SmallFleet, room: str) -> None:
    """Its hello has no capabilities; the rest is the same."""
    original = Dialer._open

    def older(self: Dialer, url: str, hello: Hello, offers: bool, *rest: object, **more: object) -> Connection:
        return original(self, url, hello, False, *rest, **more)  # type: ignore[arg-type]

    with patch.object(Dialer, "_open", older), joined(fleet, room) as session:
        assert count(3) == expected(3)
        assert session.stats()["redirects"] == 0
    assert fleet.director.relayed == 1


def test_a_server_that_knows_no_capabilities_ignores_them() -> None:
    """It decodes a hello without the field, as servers before it did."""
    fields = [(f.name, f.type, f.default) for f in msgspec.structs.fields(Hello) if f.name != "capabilities"]
    fields = [(name, kind) if default is msgspec.NODEFAULT else (name, kind, default) for name, kind, default in fields]  # type: ignore[misc]
    older = msgspec.defstruct("Hello", fields, tag_field="type", tag="hello", omit_defaults=True)
    sent = envelope.encode_part(Hello(version=1, instance="p1", capabilities=[REDIRECT]))
    known = msgspec.msgpack.decode(sent, type=older)
    assert (known.version, known.instance) == (1, "p1")  # type: ignore[attr-defined]
    with live_server() as server, gradwire.open_session(server.url, server.api_key) as session:
        assert session.stats()["direct"] == session.stats()["redirects"] == 0


@pytest.mark.parametrize("listens", [False, True])
def test_an_address_that_does_not_answer_is_avoided(fleet: SmallFleet, room: str, listens: bool) -> None:
    with nobody(listens) as address, patch.object(dialer, "UPGRADE_S", 0.5):
        fleet.point(address)
        with joined(fleet, room) as session:
            assert count(3) == expected(3)
            assert (session.stats()["direct"], session.stats()["fallbacks"]) == (0, 1)
            assert fleet.director.relayed == 1
            session.link._way.let_go()  # reconnecting, the link does not try it again
            assert count(3) == expected(3)
            assert len(fleet.director.hellos) == 1
            fleet.point(fleet.worker.url)
            session.link._dialer._avoided_until = 0.0  # some minutes later
            session.link._way.let_go()
            assert count(3) == expected(3)
            assert session.stats()["direct"] == 1


def test_something_else_at_the_address_is_avoided(fleet: SmallFleet, room: str) -> None:
    with live_server() as other:  # it knows no passes
        fleet.point(other.url)
        with joined(fleet, room) as session:
            assert count(3) == expected(3)
            assert session.stats()["direct"] == 0
    assert len(fleet.director.hellos) == REDIRECTS_AT_MOST
    assert fleet.director.relayed == 1


def test_a_gateway_that_redirects_to_itself_ends_in_its_relay(fleet: SmallFleet, room: str) -> None:
    fleet.point(fleet.gateway.url)
    with joined(fleet, room) as session:
        assert count(3) == expected(3)
        assert session.stats()["direct"] == 0
    assert len(fleet.director.hellos) == REDIRECTS_AT_MOST


def test_a_redirect_that_nobody_asked_for_is_an_error(fleet: SmallFleet, room: str) -> None:
    async def stubborn(socket: WebSocket, *_: object) -> None:
        await socket.send_bytes(envelope.join(envelope.encode(Redirect(fleet.worker.url, "t"))))

    with patch.object(fleet.director, "relay", stubborn), pytest.raises(MalformedFrame, match="does not follow"):
        gradwire.open_session(fleet.gateway.url, fleet.gateway.api_key, session=room, direct=False)


def test_a_broken_direct_connection_begins_at_the_gateway_again(fleet: SmallFleet, room: str) -> None:
    with before_worker(fleet) as (first, one), before_worker(fleet) as (second, two):
        fleet.point(one, two, fleet.worker.url)
        with joined(fleet, room) as session:
            assert count(3) == expected(3)
            first.block()
            assert count(3) == expected(3)
            assert second.made == 1
            second.block()
            assert count(3) == expected(3)
            stats = session.stats()
            assert (stats["direct"], stats["redirects"], stats["reconnects"], stats["fallbacks"]) == (1, 3, 2, 0)
    assert fleet.director.relayed == 0


@pytest.mark.parametrize("seed", range(3))
def test_cuts_on_the_direct_way_change_no_bits(fleet: SmallFleet, room: str, seed: int) -> None:
    rng = random.Random(seed)
    cuts = [Cut(rng.randrange(1500, 9000), how=rng.choice(["fin", "rst"])) for _ in range(10)]  # type: ignore[arg-type]
    with before_worker(fleet, cuts) as (relay, address):
        fleet.point(address)
        with joined(fleet, room) as session:
            counter, sums = gradwire.zeros(64), []
            for step in range(60):
                counter += gradwire.tensor(np.full(64, step, np.float32))
                if step % 4 == 3:
                    sums.append(counter[0].item())
            assert sums == [float(sum(range(step + 1))) for step in range(3, 60, 4)]
            assert session.stats()["reconnects"] > 0
            assert relay.made > 1
            applied = fleet.ask("GET", f"/v1/sessions/{room}", room).json()["contents"]["frames_applied"]
            assert applied == session.frames


def test_a_way_that_carries_nothing_but_handshakes_is_avoided(fleet: SmallFleet, room: str) -> None:
    """As through a middlebox that ends connections once a message is large."""
    with before_worker(fleet, [Cut(6000, "up") for _ in range(10)]) as (relay, address):
        fleet.point(address)
        with joined(fleet, room) as session:
            values = np.arange(100_000, dtype=np.float32)
            assert (gradwire.tensor(values) * 1).numpy().tobytes() == values.tobytes()
            assert (session.stats()["direct"], session.stats()["fallbacks"]) == (0, 1)
            assert relay.made <= FRUITLESS_AT_MOST + 1
    assert fleet.director.relayed == 1


def test_an_expired_ticket_costs_another_one(fleet: SmallFleet, room: str) -> None:
    late = PassMint(fleet.director.mint._secret, lambda: time.time() - 60)
    fleet.director.tickets = [late.stream(fleet.key, room, WORKER)]
    with joined(fleet, room) as session:
        assert count(3) == expected(3)
        assert (session.stats()["direct"], session.stats()["fallbacks"]) == (1, 0)
    assert len(fleet.director.hellos) == 2


def test_a_stolen_ticket_opens_nothing_once_it_was_used(fleet: SmallFleet, room: str) -> None:
    with joined(fleet, room):
        assert count(2) == expected(2)
        url = f"{fleet.worker.stream_url}{room}/stream?ticket={fleet.director.given[0]}"
        with pytest.raises(InvalidStatus) as refused, connect(url):
            pass
        assert refused.value.response.status_code == 401
        assert json.loads(refused.value.response.body)["extra"]["reason"] == "used"


def test_tickets_that_never_work_end_in_the_relay(fleet: SmallFleet, room: str) -> None:
    fleet.director.tickets = ["nonsense"] * REDIRECTS_AT_MOST
    with joined(fleet, room) as session:
        assert count(3) == expected(3)
        assert session.stats()["direct"] == 0
    assert fleet.director.relayed == 1


def test_a_session_that_is_gone_is_gone_by_the_gateways_word(fleet: SmallFleet) -> None:
    session = fleet.create()
    fleet.point(fleet.worker.url)
    with joined(fleet, session):
        assert count(2) == expected(2)
        fleet.delete(session)
        with pytest.raises(SessionGone):
            count(2)


def test_the_streams_of_a_revoked_key_end(fleet: SmallFleet, room: str) -> None:
    access = fleet.worker.app.state.server.access
    with joined(fleet, room):
        assert count(2) == expected(2)
        key = fleet.key
        assert access.keys_of_streams() == [key.id]
        try:
            fleet.end_key(key.id)
            with pytest.raises(Unauthorized, match="revoked"):
                for _ in range(100):
                    count(1)
                    time.sleep(0.05)
            assert access.keys_of_streams() == []
            ticket = fleet.mint.stream(key, room, WORKER)
            with pytest.raises(InvalidStatus), connect(f"{fleet.worker.stream_url}{room}/stream?ticket={ticket}"):
                pass
        finally:
            access.passes._ended.clear()


def test_a_newer_client_speaks_the_older_servers_version() -> None:
    with live_server() as server:
        with (
            patch.object(dialer, "PROTOCOL_VERSION", PROTOCOL_VERSION + 1),
            gradwire.open_session(server.url, server.api_key) as session,
        ):
            session.synchronize()
        with (
            patch.object(dialer, "PROTOCOL_VERSION", PROTOCOL_VERSION + 2),
            patch.object(dialer, "MIN_PROTOCOL_VERSION", PROTOCOL_VERSION + 1),
            pytest.raises(VersionMismatch, match=f"version {PROTOCOL_VERSION + 2}, this server .* has version"),
        ):
            gradwire.open_session(server.url, server.api_key)


def test_a_newer_server_speaks_the_older_clients_version() -> None:
    with live_server() as server, patch.object(handshake, "PROTOCOL_VERSION", PROTOCOL_VERSION + 1):
        with gradwire.open_session(server.url, server.api_key) as session:
            session.synchronize()
        with (
            patch.object(handshake, "MIN_PROTOCOL_VERSION", PROTOCOL_VERSION + 1),
            patch.object(handshake, "PROTOCOL_VERSION", PROTOCOL_VERSION + 2),
            pytest.raises(VersionMismatch, match=f"versions {PROTOCOL_VERSION + 1} to {PROTOCOL_VERSION + 2}"),
        ):
            gradwire.open_session(server.url, server.api_key)


@pytest.mark.parametrize(
    ("gateway", "worker", "plain", "followed"),
    [
        ("http://g", "http://10.0.0.1:8000", False, True),
        ("http://g", "https://w.example", False, True),
        ("https://g", "https://w.example:8443/prefix", False, True),
        ("https://g", "http://10.0.0.1:8000", False, False),
        ("https://g", "http://10.0.0.1:8000", True, True),
        ("https://g", "http://127.0.0.1:8000", False, True),
        ("https://g", "http://[::1]:8000", False, True),
        ("https://g", "http://localhost:8000", False, True),
        ("https://g", "http://localhost.evil.example:8000", False, False),
        ("https://g", "http://127.0.0.1.evil.example", False, False),
        ("https://g", "ftp://w.example", True, False),
        ("https://g", "w.example:8000", True, False),
        ("https://g", "https://", True, False),
        ("https://g", "https://w.example:99999", True, False),
        ("https://g", "https://user:word@w.example", True, False),
        ("https://g", "https://w.example/?a=b", True, False),
        ("https://g", "https://[::1", True, False),
    ],
)
def test_which_redirects_are_followed(gateway: str, worker: str, plain: bool, followed: bool) -> None:
    assert trusted(gateway, worker, plain) is followed


def test_an_untrusted_redirect_is_relayed(fleet: SmallFleet, room: str) -> None:
    fleet.point("ftp://worker.example")
    with joined(fleet, room) as session:
        assert count(3) == expected(3)
        assert (session.stats()["direct"], session.stats()["fallbacks"]) == (0, 1)


@pytest.mark.parametrize(
    ("variable", "given", "wanted"),
    [
        ("", None, (True, False)),
        ("0", None, (False, False)),
        ("off", None, (False, False)),
        ("1", None, (True, False)),
        ("PLAIN", None, (True, True)),
        ("0", True, (True, False)),
        ("1", False, (False, False)),
        ("plain", True, (True, True)),
    ],
)
def test_the_variable_and_the_argument(variable: str, given: bool | None, wanted: tuple[bool, bool]) -> None:
    with patch.dict(os.environ, {"GRADWIRE_DIRECT": variable}):
        assert wants_direct(given) == wanted


def test_another_word_in_the_variable_is_refused() -> None:
    with patch.dict(os.environ, {"GRADWIRE_DIRECT": "maybe"}), pytest.raises(ArgumentValueError, match="maybe"):
        wants_direct(None)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files with a certificate for the loopback, its key, and their authority, which no system knows."""
    folder = tmp_path_factory.mktemp("certificates")
    found = {name: folder / f"{name}.pem" for name in ("cert", "key", "ca")}
    made = trustme.CA()
    issued = made.issue_cert("127.0.0.1", "localhost")
    issued.private_key_pem.write_to_path(str(found["key"]))
    for pem in issued.cert_chain_pems:
        pem.write_to_path(str(found["cert"]), append=True)
    made.cert_pem.write_to_path(str(found["ca"]))
    return found


def test_the_authority_of_the_gateway_counts_for_its_workers(authority: dict[str, Path]) -> None:
    pair = {"tls_cert": authority["cert"], "tls_key": authority["key"]}
    with patch.dict(tls._files, clear=True), small_fleet(gateway=pair, worker=pair) as fleet:
        fleet.verify = ssl.create_default_context(cafile=str(authority["ca"]))
        session = fleet.create()
        opened = gradwire.connect(fleet.gateway.url, fleet.gateway.api_key, session=session, ca=authority["ca"])
        assert count(3) == expected(3)
        assert opened.stats()["direct"] == 1
        opened.close()


def test_an_untrusted_certificate_is_avoided(authority: dict[str, Path], fleet: SmallFleet, room: str) -> None:
    pair = {"tls_cert": authority["cert"], "tls_key": authority["key"]}
    with live_server(**pair) as stranger:
        fleet.point(stranger.url)
        with joined(fleet, room) as session:
            assert count(3) == expected(3)
            assert (session.stats()["direct"], session.stats()["fallbacks"]) == (0, 1)


def test_a_worker_without_encryption_behind_an_encrypted_gateway(authority: dict[str, Path]) -> None:
    """On this machine it is followed; elsewhere it is relayed, unless the program allows it."""
    pair = {"tls_cert": authority["cert"], "tls_key": authority["key"]}
    with patch.dict(tls._files, clear=True), small_fleet(gateway=pair) as fleet:
        session = fleet.create()

        def direct() -> int:
            opened = gradwire.connect(fleet.gateway.url, fleet.gateway.api_key, session=session, ca=authority["ca"])
            assert count(2) == expected(2)
            found = opened.stats()["direct"]
            opened.close()
            return found

        assert direct() == 1
        with patch.object(dialer, "_is_loopback", lambda host: False):  # as if it were another machine
            assert direct() == 0
            with patch.dict(os.environ, {"GRADWIRE_DIRECT": "plain"}):
                assert direct() == 1


class NotReady(BaseHTTPRequestHandler):
    """A worker that is stopping, or a proxy before one that is gone."""

    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        pass


def test_a_worker_that_stays_unready_is_avoided(fleet: SmallFleet, room: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), NotReady) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        NotReady.asked = 0
        fleet.point(f"http://127.0.0.1:{server.server_port}")
        with joined(fleet, room) as session:
            assert count(3) == expected(3)
            assert (session.stats()["direct"], session.stats()["fallbacks"]) == (0, 1)
        server.shutdown()
    assert NotReady.asked == FRUITLESS_AT_MOST
    assert fleet.director.relayed == 1
