"""What a client sends a gateway cannot reach more than its own session. Without a cluster."""

from __future__ import annotations

import pytest

from gradwire_protocol.errors import InvalidRequest
from gradwire_server.fleet.forwarding import target
from gradwire_server.fleet.resources import requested
from gradwire_server.settings.settings import Settings

WORKER = "http://10.0.0.5:40123"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"/gw/v1/sessions/s_1/tensors", "/gw/v1/sessions/s_1/tensors"),
        (b"/gw%2Fv1%2Fsessions%2Fs_1%2Ftensors%2Fx@192.0.2.9", "/gw/v1/sessions/s_1/tensors/x@192.0.2.9"),
        (b"/gw%2Fv1%2Fsessions%2Fs_1@192.0.2.9:80/x", "/gw/v1/sessions/s_1@192.0.2.9:80/x"),
    ],
)
def test_a_request_goes_to_the_worker_whatever_its_path_is(raw, path) -> None:
    scope = {"type": "http", "path": path, "raw_path": raw, "root_path": "/gw", "query_string": b"a=%2F&b=@c"}
    found = target(WORKER, scope)
    assert (found.scheme, found.host, found.port, found.query) == ("http", "10.0.0.5", 40123, b"a=%2F&b=@c")
    assert found.path == path.removeprefix("/gw")


def test_a_name_with_unusual_characters_arrives_as_it_was() -> None:
    scope = {"type": "http", "path": "/v1/sessions/s_1/names/a b?c#\u00e4%", "query_string": b""}
    assert target(WORKER, scope).raw_path == b"/v1/sessions/s_1/names/a%20b%3Fc%23%C3%A4%25"


@pytest.mark.parametrize(
    "asked",
    [
        {"cpus": 0}, {"cpus": 0.001}, {"cpus": 0.50001}, {"resources": {"CPU": 1}}, {"resources": {"node:10.0.0.1": 1}},
        {"resources": {"": 1}}, {"memory": 0}, {"memory": "1MB"},
        {"labels": {"zone": "!in(a)"}}, {"labels": {"ray.io/node-type": "head"}},
    ],
)  # fmt: skip
def test_what_no_session_may_ask_for_is_refused(asked) -> None:
    with pytest.raises(InvalidRequest):
        requested(Settings(), "cpu", **asked)


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"cpus": 0.05}, {"cpus": 0, "gpus": 0.5}, {"cpus": 0, "gpu": "H100"}, {"resources": {"nvlink": 0.5}},
        {"labels": {"zone": "east-1.a", "example.com/rack": "7"}},
    ],
)  # fmt: skip
def test_what_a_session_may_ask_for_is_granted(asked) -> None:
    requested(Settings(), "cpu", **asked)
