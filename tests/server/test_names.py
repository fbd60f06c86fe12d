"""Named tensors over REST."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live_server import LiveServer, live_server

MSG = "application/octet-stream"


@pytest.fixture(scope="module", params=["inline", "process"])
def server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    with live_server(session_host=request.param) as found:
        yield found


@pytest.fixture
def session(server: LiveServer) -> Any:
    with server.http() as http:
        made = http.post("/v1/sessions", json={}).json()["id"]
        yield http, f"/v1/sessions/{made}"
        http.delete(f"/v1/sessions/{made}")


def post(http: httpx.Client, path: str, **frame: Any) -> dict[str, Any]:
    answer = http.post(f"{path}/frames", json=frame)
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    assert not reply.get("errors"), reply
    return reply


def test_a_result_is_read_by_its_name_in_every_form(session: Any) -> None:
    http, path = session
    post(http, path, ops=[{"op": "full", "size": [2, 2], "fill_value": 1.5, "as": "w"}])
    assert http.get(f"{path}/names/w").json() == {
        "name": "w", "dtype": "float32", "shape": [2, 2], "values": [[1.5, 1.5], [1.5, 1.5]],
    }  # fmt: skip
    raw = http.get(f"{path}/names/w", headers={"Accept": MSG})
    assert struct.unpack("<4f", raw.content) == (1.5,) * 4
    assert raw.headers["Gradwire-Shape"] == "2,2"
    assert http.get(f"{path}/names/w", headers={"Accept": "application/safetensors"}).content.endswith(raw.content)


def test_names_are_listed_in_pages(session: Any) -> None:
    http, path = session
    names = [f"layer.{i:02}" for i in range(7)]
    post(http, path, ops=[{"op": "zeros", "size": [i], "as": name} for i, name in enumerate(names)])
    found: list[str] = []
    after = ""
    for _ in range(4):
        page = http.get(f"{path}/names", params={"after": after, "limit": 3}).json()
        found += [row["name"] for row in page["names"]]
        after = page["next"]
        if after is None:
            break
    assert found == names
    row = http.get(f"{path}/names", params={"after": "layer.05"}).json()["names"][0]
    assert (row["shape"], row["dtype"], row["requires_grad"], row["is_leaf"]) == ([6], "float32", False, True)


def test_a_named_tensor_is_written_and_keeps_its_history_apart(session: Any) -> None:
    http, path = session
    made = http.put(f"{path}/names/w", params={"requires_grad": True}, json={"values": [1.0, 2.0]})
    assert made.status_code == 201
    assert made.json() == {"name": "w", "dtype": "float32", "shape": [2], "created": True}
    again = http.put(
        f"{path}/names/w", content=struct.pack("<2d", 3.0, 4.0),
        headers={"Content-Type": MSG, "Gradwire-Dtype": "float64", "Gradwire-Shape": "2"},
    )  # fmt: skip
    assert again.status_code == 200
    assert again.json() == {"name": "w", "dtype": "float32", "shape": [2], "created": False}
    ops = [["pow", ["w", 2], "s"], ["sum", ["s"], "y"], ["backward", ["y"]], ["grad_of", ["w"], "g"]]
    assert post(http, path, ops=ops, reads=["g"])["values"][0]["values"] == [6, 8]
    other = http.put(f"{path}/names/w", json={"values": [1.0]})
    assert other.status_code == 422
    assert "'w' has shape [2], the body [1]" in other.json()["detail"]
    assert http.get(f"{path}/tensors").json()["tensors"] == []  # named tensors have no id


def test_a_name_is_removed_and_unknown_ones_are_told(session: Any) -> None:
    http, path = session
    http.put(f"{path}/names/weights", json={"values": [1.0, 2.0]})
    missing = http.get(f"{path}/names/weight")
    assert missing.status_code == 404
    assert "did you mean 'weights'" in missing.json()["detail"]
    assert http.delete(f"{path}/names/weights").status_code == 204
    assert http.delete(f"{path}/names/weights").status_code == 404
    assert http.get(f"{path}/names").json() == {"names": [], "next": None}


def test_names_belong_to_their_session_and_reading_needs_only_the_scope_read(server: LiveServer, session: Any) -> None:
    http, path = session
    http.put(f"{path}/names/w", json={"values": [1.0]})
    with server.http(server.other_key) as other:
        assert other.get(f"{path}/names").status_code == 404
        assert other.get(f"{path}/names/w").status_code == 404
        assert other.delete(f"{path}/names/w").status_code == 404
    assert http.get(f"{path}/names/w").status_code == 200
