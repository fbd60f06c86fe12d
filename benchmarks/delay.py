"""A TCP relay that adds latency to a server without limiting throughput.

Each direction has a queue of pieces in transit, so a delay of 10 ms delays a stream of 100 messages by 10 ms, not by a
second. From the shell::

    python -m benchmarks.delay http://127.0.0.1:8000 --rtt-ms 20

prints the address to use, as one line of JSON, and relays until its standard input closes (or Ctrl-C).
"""

from __future__ import annotations

import asyncio
import json
import selectors
import sys
from contextlib import suppress
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer

PIECE_BYTES: Final = 1 << 16
PIECES_UNDER_WAY: Final = 4096
"""Per direction; beyond them (256 MB) the sender is held back, as by a full pipe."""


class Relay:
    """Relays connections from a free port of loopback to ``host:port``.

    Args:
        host, port: the target.
        rtt_s: seconds to add to a round trip, half of them in each direction.
    """

    def __init__(self, host: str, port: int, rtt_s: float = 0.020) -> None:
        self._host = host
        self._port = port
        self._delay = rtt_s / 2
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
        except OSError:
            pass  # one end is gone, so close the other
        finally:
            for end in (writer, far_writer):
                end.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction: pieces wait in a queue until they are due."""
        loop = asyncio.get_running_loop()
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(PIECES_UNDER_WAY)

        async def deliver() -> None:
            while True:
                due, piece = await under_way.get()
                wait = due - loop.time()
                if wait > 0:
                    await asyncio.sleep(wait)
                if not piece:
                    if writer.can_write_eof():
                        writer.write_eof()
                    return
                writer.write(piece)
                await writer.drain()

        delivery = asyncio.create_task(deliver())
        try:
            piece = b" "
            while piece:
                piece = await reader.read(PIECE_BYTES)
                await under_way.put((loop.time() + self._delay, piece))
                if delivery.done():
                    break
            await delivery
        finally:
            delivery.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await delivery


def precise_loop() -> asyncio.AbstractEventLoop:
    """An event loop with timers of microsecond precision; epoll, the default, rounds up to milliseconds."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


async def _relay_until_stdin_closes(host: str, port: int, rtt_s: float) -> None:
    async with Relay(host, port, rtt_s) as relay:
        print(json.dumps({"url": f"http://127.0.0.1:{relay.port}", "rtt_ms": rtt_s * 1e3}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    url: Annotated[str, typer.Argument(help="The server, as http://host:port or host:port.")],
    rtt_ms: Annotated[float, typer.Option(help="Milliseconds to add to a round trip.", min=0)] = 20.0,
) -> None:
    """Relay connections to a server, each direction delayed by half of a round trip."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    if parts.hostname is None or parts.port is None:
        raise typer.BadParameter(f"{url!r} names no host and port")
    runner: Any = asyncio.Runner(loop_factory=precise_loop)
    with runner, suppress(KeyboardInterrupt):
        runner.run(_relay_until_stdin_closes(parts.hostname, parts.port, rtt_ms / 1e3))


if __name__ == "__main__":
    app()
