"""An S3-compatible server in this process: moto's, an emulation."""

from __future__ import annotations

import itertools
import logging
import urllib.request
from collections.abc import Iterator

import pytest

from gradwire_server.durable.shared.object_storage import ObjectStorage

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The endpoint of an S3-compatible server, with the bucket ``bucket-a``."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket-a", method="PUT"), timeout=30) as response:
        assert response.status == 200
    yield endpoint
    server.stop()


@pytest.fixture
def bucket(s3: str) -> ObjectStorage:
    """An empty prefix of the bucket."""
    return ObjectStorage.open(
        f"s3://bucket-a/test-{next(_NUMBERS)}",
        endpoint=s3, region="us-east-1", access_key_id="x", secret_access_key="y",
    )  # fmt: skip
