"""A client that requests much and reads nothing costs the server no more than its backlog."""

from __future__ import annotations

import os
import struct
import time
from contextlib import suppress

from gradwire_protocol import envelope
from tests.live_server import server_process

from .exchange import binary, stream

VALUE = [1 << 20]
ASKED = 60
BACKLOG = 16 << 20


def resident(pid: int) -> int:
    """Bytes of a process in memory."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_values_that_nobody_reads_are_not_computed_ahead() -> None:
    """240 MB are asked for. What is ahead is the backlog, and what a session may have given it at a time."""
    with server_process(max_stream_backlog_bytes=BACKLOG) as server, server.http() as http:
        assert server.process is not None
        session = http.post("/v1/sessions").headers["location"]
        with stream(server, session) as peer:
            before = resident(server.process.pid)
            assert peer.welcome is not None
            client = peer.welcome.client
            connection = peer.socket.socket
            connection.settimeout(1)
            with suppress(TimeoutError):
                for seq in range(1, ASKED + 1):
                    frame = binary(
                        seq, [["ones", [VALUE]]], [0], first=(client << 32) + seq, releases=[(client << 32) + seq - 1]
                    )
                    data = envelope.join(envelope.encode(frame, []))
                    connection.sendall(struct.pack("!BBH", 0x82, 0xFE, len(data)) + bytes(4) + data)
            time.sleep(1)
            grown = resident(server.process.pid) - before
            assert grown < 200 << 20, f"{grown:,} bytes"
            with server.http() as other:
                assert other.get("/livez").status_code == 200
                assert other.post("/v1/sessions").status_code == 201
