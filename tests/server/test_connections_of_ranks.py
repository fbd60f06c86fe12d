"""Who may connect as a rank of a group, and for how long somebody may try."""

from __future__ import annotations

import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from gradwire_server.groups import listener as listeners
from gradwire_server.groups import messages
from gradwire_server.groups.listener import Listener
from gradwire_server.groups.messages import Hello, group_of
from gradwire_server.groups.peer_link import PeerLink

SECRET = "the secret of the group"


def group(rank: int) -> Any:
    return SimpleNamespace(
        rank=rank, received={0: 0, 1: 0}, sent={0: 0, 1: 0}, outbox={0: [], 1: []}, failed=False,
        lock=threading.Lock(), forget=lambda peer, number: None,
    )  # fmt: skip


def until(condition: Any, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(condition())


@pytest.fixture
def listener() -> Listener:
    return Listener()


def links(listener: Listener, secret: str = SECRET) -> PeerLink:
    """Rank 0's link to rank 1."""
    link = PeerLink(group(0), 1, SECRET, lambda: listener.address)
    listener.register((group_of(secret), 0), {1: link})
    return link


def said_by(connection: socket.socket) -> Hello | None:
    try:
        return messages.greeted(messages.read(connection, messages.MAX_HELLO_BYTES))
    except (OSError, ValueError):
        return None


def test_ranks_that_know_the_secret_connect(listener: Listener) -> None:
    first = links(listener)
    second = PeerLink(group(1), 0, SECRET, lambda: listener.address)
    assert until(lambda: first.connected and second.connected)
    for link in (first, second):
        link.close()
        link.drop()


def test_the_secret_is_never_sent_and_a_stranger_learns_no_use_of_it(listener: Listener) -> None:
    """It listens where a rank used to, and connects with what it heard there."""
    heard: list[Hello] = []
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        caller = PeerLink(group(1), 0, SECRET, lambda: stranger.getsockname()[:2])
        connection, _ = stranger.accept()
        with connection:
            hello = said_by(connection)
            assert hello is not None and SECRET not in repr(hello) and not hello.proof
            heard.append(hello)
            own = Hello(hello.group, 0, 1, 1, "n")
            own.proof = messages.proof("a guess", hello, own, 0)
            connection.sendall(messages.greeting(own))
            assert said_by(connection) is None  # no proof for somebody without one
            assert not caller.connected
        caller.close()
    first = links(listener)
    with socket.create_connection(listener.address) as connection:
        connection.sendall(messages.greeting(heard[0]))
        answer = said_by(connection)
        assert answer is not None and answer.proof
        connection.sendall(messages.greeting(msg := heard[0]))
        assert said_by(connection) is None and not msg.proof
        assert not first.connected
    first.close()


def test_a_slow_hello_ends_at_its_deadline(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "HELLO_S", 0.6)
    began = time.monotonic()
    with socket.create_connection(listener.address) as connection:
        with pytest.raises(OSError):
            for _ in range(200):  # each byte comes well before the deadline
                connection.sendall(b"\x01")
                time.sleep(0.1)
    assert time.monotonic() - began < 10


def test_the_oldest_of_many_strangers_gives_way(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "MAX_UNPROVED", 3)
    monkeypatch.setattr(listeners, "HELLO_S", 60.0)
    strangers = [socket.create_connection(listener.address) for _ in range(5)]
    try:
        for connection in strangers[:2]:
            connection.settimeout(10)
            assert connection.recv(1) == b""
        first = links(listener)
        second = PeerLink(group(1), 0, SECRET, lambda: listener.address)
        assert until(lambda: first.connected and second.connected)
        for link in (first, second):
            link.close()
            link.drop()
    finally:
        for connection in strangers:
            connection.close()
