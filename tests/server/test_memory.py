"""The memory of a session's tensors, over REST."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from .exchange import frame, post, problem

KB = 1024


def leaf(http: httpx.Client, session: str) -> None:
    """Tensor 1: a KB that requires grad."""
    done = http.put(f"{session}/tensors/1?requires_grad=true", json={"values": [[0.5] * 16] * 16})
    assert done.status_code == 201, done.text


def test_memory_is_what_tensors_and_graph_hold(http: httpx.Client, session: str) -> None:
    leaf(http, session)
    post(http, session, frame([["exp", [-1]], ["sin", [0]], ["sum", [1]]], external=[1], first=10))
    found = http.get(f"{session}/memory").json()
    limit = http.get(session).json()["limits"]["max_session_bytes"]
    assert found["live_bytes"] == 3 * KB + 4
    assert found["saved_bytes"] == 1 * KB  # exp keeps its result, and sin the same
    assert found["pooled_bytes"] == 0
    assert found["peak_bytes"] >= found["live_bytes"]
    assert found["limit_bytes"] == limit
    assert http.get(session).json()["contents"]["memory"] == found


def test_backward_frees_what_was_kept_for_it(http: httpx.Client, session: str) -> None:
    leaf(http, session)
    ops = [["exp", [-1]], ["sin", [0]], ["sum", [1]]]
    post(http, session, frame(ops, external=[1], first=10))
    post(http, session, frame([], releases=[10, 11]))
    assert http.get(f"{session}/memory").json()["saved_bytes"] == 1 * KB
    assert http.post(f"{session}/backward", json={"tensors": [12], "retain_graph": True}).status_code == 200
    assert http.get(f"{session}/memory").json()["saved_bytes"] == 1 * KB
    assert http.post(f"{session}/backward", json={"tensors": [12]}).status_code == 200
    found = http.get(f"{session}/memory").json()
    assert found["saved_bytes"] == 0
    assert found["live_bytes"] == 2 * KB + 4  # the leaf, its gradient, and the sum


def test_named_tensors_keep_their_graph(http: httpx.Client, session: str) -> None:
    leaf(http, session)
    post(http, session, frame([["exp", [-1]], ["set_name", [0, "kept"]]], external=[1], first=10))
    post(http, session, frame([], releases=[10]))
    assert http.get(f"{session}/memory").json()["saved_bytes"] == 1 * KB


def test_the_peak_is_reset(http: httpx.Client, session: str) -> None:
    leaf(http, session)
    post(http, session, frame([["exp", [-1]], ["exp", [-1]]], external=[1], first=10))
    post(http, session, frame([], releases=[10, 11]))
    before = http.delete(f"{session}/memory/peak")
    assert before.status_code == 200
    assert before.json()["peak_bytes"] == 3 * KB
    assert http.get(f"{session}/memory").json()["peak_bytes"] == 1 * KB


def test_memory_is_the_owners_to_see(http: httpx.Client, stranger: httpx.Client, session: str) -> None:
    problem(stranger.get(f"{session}/memory"), 404, "not_found")
    problem(stranger.delete(f"{session}/memory/peak"), 404, "not_found")


def test_the_graph_tells_dtypes_bytes_and_positions(http: httpx.Client, new_session: Callable[..., str]) -> None:
    session = new_session()
    leaf(http, session)
    post(http, session, frame([["exp", [-1]], ["sin", [0]], ["cos", [0]], ["add", [1, 2]]], external=[1], first=10))
    graph = http.get(f"{session}/graph", params={"tensor": 13}).json()
    nodes = {node["name"]: node for node in graph["nodes"]}
    assert {name: node["saved_bytes"] for name, node in nodes.items()} == {
        "AddBackward0": 0, "SinBackward0": KB, "CosBackward0": KB, "ExpBackward0": KB, "AccumulateGrad": 0,
    }  # fmt: skip
    assert graph["saved_bytes"] == KB
    assert {node["dtypes"][0] for node in graph["nodes"]} == {"float32"}
    assert nodes["AccumulateGrad"]["tensors"] == [1]  # although only 13 was asked for
    positions = [nodes[name]["position"] for name in ("ExpBackward0", "SinBackward0", "CosBackward0", "AddBackward0")]
    assert positions == list(range(positions[0], positions[0] + 4))
    assert not any(node["freed"] or node["custom"] for node in graph["nodes"])
    post(http, session, frame([["sum", [-1]], ["backward", [[0], [None]]]], external=[13]))
    graph = http.get(f"{session}/graph", params={"tensor": 13}).json()
    assert {node["name"] for node in graph["nodes"] if node["freed"]} == {
        "SinBackward0",
        "CosBackward0",
        "ExpBackward0",
    }
    assert graph["saved_bytes"] == 0
