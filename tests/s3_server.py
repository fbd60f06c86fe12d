"""An S3-compatible server in this process: moto's, an emulation."""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

BUCKET: Final = "bucket-a"
CREDENTIALS: Final = {"region": "us-east-1", "access_key_id": "x", "secret_access_key": "y"}


@contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint of an S3-compatible server with one bucket."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    # It looks for an object and creates it in two steps, so two exclusive creations at once could both succeed.
    turn, application = threading.Lock(), server._server.app  # type: ignore[union-attr]

    def one_at_a_time(environ: Any, respond: Any) -> Any:
        with turn:
            return application(environ, respond)

    server._server.app = one_at_a_time  # type: ignore[union-attr]
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    bucket = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
    try:
        with urllib.request.urlopen(bucket, timeout=30) as response:
            assert response.status == 200
        yield endpoint
    finally:
        server.stop()
