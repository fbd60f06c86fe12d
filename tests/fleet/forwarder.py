"""One TCP address in front of several gateways, as a load balancer is: each connection goes to one that answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.CancelledError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with suppress(ConnectionError, RuntimeError):
        writer.close()


@contextmanager
def forwarder(targets: Callable[[], Sequence[str]]) -> Iterator[str]:
    """Forward connections to the first of the URLs that answers. Yields the URL of the address."""
    loop = asyncio.new_event_loop()
    ready: list[int] = []
    started = threading.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for url in targets():
            parts = urlsplit(url)
            with suppress(OSError):
                there, back = await asyncio.open_connection(parts.hostname, parts.port)
                await asyncio.gather(_pump(reader, back), _pump(there, writer))
                return
        writer.close()

    async def begin() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        started.set()

    def run() -> None:
        loop.run_until_complete(begin())
        loop.run_forever()

    thread = threading.Thread(target=run, name="forwarder", daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield f"http://127.0.0.1:{ready[0]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
