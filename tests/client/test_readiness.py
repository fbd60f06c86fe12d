"""Waiting for a socket, also one whose descriptor select(2) refuses."""

from __future__ import annotations

import fcntl
import resource
import socket
from collections.abc import Iterator

import pytest

from gradwire._core.wire.readiness import wait_either, wait_readable

HIGH = 1500
"""Above the descriptors of select(2)."""


@pytest.fixture(params=[0, HIGH], ids=["low", "high"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], HIGH + 100), limits[1]))
    mine, peer = socket.socketpair()
    found = socket.socket(fileno=fcntl.fcntl(mine.fileno(), fcntl.F_DUPFD_CLOEXEC, request.param))
    mine.close()
    with found, peer:
        assert found.fileno() >= request.param
        yield found, peer
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_nothing_to_read_takes_the_time(pair: tuple[socket.socket, socket.socket]) -> None:
    for timeout in (-1, 0, 0.001):
        assert not wait_readable(pair[0], timeout)


def test_bytes_and_the_end_can_be_read(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[1].send(b"x")
    for timeout in (None, 1e12, float("inf")):
        assert wait_readable(pair[0], timeout)
    assert pair[0].recv(10) == b"x"
    pair[1].close()
    assert wait_readable(pair[0], None)
    assert wait_either(pair[0], None)[0]
    assert pair[0].recv(10) == b""


def test_a_full_buffer_cannot_be_written(pair: tuple[socket.socket, socket.socket]) -> None:
    assert wait_either(pair[0], 0) == (False, True)
    pair[0].setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            pair[0].send(bytes(1 << 16))
    assert wait_either(pair[0], 0) == (False, False)
    pair[1].send(b"x")
    assert wait_either(pair[0], None) == (True, False)


def test_a_closed_socket_is_an_error(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].close()
    with pytest.raises((OSError, ValueError)):
        wait_readable(pair[0], 0)
