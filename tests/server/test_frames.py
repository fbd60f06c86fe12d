"""Frames over REST, in JSON and in MessagePack."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from gradwire_protocol import envelope
from gradwire_protocol.frames import Frame, Payload, Reply, structure_hash

from .exchange import binary, frame, post, problem, upload


def test_one_frame_computes_a_gradient(http: httpx.Client, session: str) -> None:
    reply = post(
        http,
        session,
        frame(
            [
                ["upload", ["payload", "float32", [2, 2]]],
                ["requires_grad_", [0]],
                ["pow", [0, "int"]],
                ["mean", [1]],
                ["backward", [[2], [None]]],
                ["grad_of", [0]],
            ],
            reads=[2, 3],
            payloads=[{"values": [[1, 2], [3, 4]]}],
            scalars=[2],
        ),
    )
    assert reply["values"][0] == {"dtype": "float32", "values": 7.5}
    assert reply["values"][1] == {"dtype": "float32", "shape": [2, 2], "values": [[0.5, 1.0], [1.5, 2.0]]}
    assert (reply["seq"], reply["made"]) == (1, 4)


def test_results_live_on_under_their_ids(http: httpx.Client, session: str) -> None:
    post(http, session, upload([1.0, 2.0], "float32", [2], first=10))
    reply = post(http, session, frame([["mul", [-1, "float"]]], reads=[0], external=[10], scalars=[3.0]))
    assert reply["values"][0]["values"] == [3.0, 6.0]
    assert http.get(f"{session}/tensors/{reply['first']}").json()["values"] == [3.0, 6.0]


def test_a_frame_sent_twice_is_applied_once(http: httpx.Client, session: str) -> None:
    post(http, session, upload([1.0], "float32", [1], seq=1, first=1))
    body = frame([["add_", [-1, "float"]]], reads=[-1], external=[1], scalars=[1.0], seq=2)
    first, second = post(http, session, body), post(http, session, body)
    assert first == second
    assert first["values"][0]["values"] == [2.0]
    assert http.get(f"{session}/tensors/1").json()["values"] == [2.0]


def test_what_a_write_would_have_changed_cannot_be_read_in_the_frame_that_failed(
    http: httpx.Client, session: str
) -> None:
    post(http, session, upload([1.0, 2.0], "float32", [2], seq=1, first=1))
    ops = [["ones", [[3]]], ["add", [-1, 0]], ["add_", [-1, 1]]]
    body = frame(ops, reads=[-1], external=[1], seq=2, first=2)
    reply = http.post(f"{session}/frames", json=body).json()
    assert reply["values"] == [{"error": 0}]
    assert [error["op"] for error in reply["errors"]] == ["add"]
    assert http.get(f"{session}/tensors/1").json()["values"] == [1.0, 2.0]


def test_a_frame_without_a_number_is_applied_each_time(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1", json={"values": [1.0]})
    body = frame([["add_", [-1, "float"]]], external=[1], scalars=[1.0])
    post(http, session, body)
    post(http, session, body)
    assert http.get(f"{session}/tensors/1").json()["values"] == [3.0]


def test_a_gap_in_the_numbers_is_refused_and_says_what_is_expected(http: httpx.Client, session: str) -> None:
    found = problem(http.post(f"{session}/frames", json=frame([], seq=5)), 409, "frame_out_of_order")
    assert found["retryable"]
    assert found["extra"]["expected"] == 1
    assert post(http, session, frame([], seq=1))["seq"] == 1


def test_a_reply_that_was_acknowledged_is_forgotten(http: httpx.Client, session: str) -> None:
    post(http, session, frame([], seq=1))
    post(http, session, frame([], seq=2, ack=1))
    problem(http.post(f"{session}/frames", json=frame([], seq=1)), 409, "reply_forgotten")


def test_programs_with_numbers_of_their_own_repeat_frames_safely(http: httpx.Client, session: str) -> None:
    one, other = (http.post(f"{session}/clients").json() for _ in range(2))
    assert one["client"] != other["client"]
    for who in (one, other):
        body = upload(1.0, "float32", [], client=who["client"], seq=who["expected"], first=who["first_id"])
        assert post(http, session, body) == post(http, session, body)
    assert len(http.get(f"{session}/tensors").json()["tensors"]) == 2
    problem(http.post(f"{session}/frames", json=frame([], client=one["client"])), 400, "malformed_frame")


def test_a_failed_op_fails_what_depends_on_it_and_nothing_else(http: httpx.Client, session: str) -> None:
    body = frame(
        [
            ["upload", ["payload", "float32", [2]]],
            ["upload", ["payload", "float32", [3]]],
            ["add", [0, 1]],
            ["exp", [2]],
            ["mul", [0, "int"]],
        ],
        reads=[3, 4],
        payloads=[{"values": [1, 2]}, {"values": [1, 2, 3]}],
        scalars=[2],
    )
    response = http.post(f"{session}/frames", json=body)
    assert response.status_code == 200
    reply = response.json()
    assert [(e["code"], e["op"], e["index"]) for e in reply["errors"]] == [("shape_mismatch", "add", 2)]
    assert reply["values"][0] == {"error": 0}
    assert reply["values"][1]["values"] == [2.0, 4.0]
    read = problem(http.get(f"{session}/tensors/{reply['first'] + 3}"), 422, "shape_mismatch")
    assert (read["op"], read["seq"]) == ("add", 1)


def test_a_structure_can_be_sent_as_its_hash(http: httpx.Client, session: str) -> None:
    structure = json.dumps({"ops": [["full", [[2], "float"]]], "reads": [0]})
    key = base64.b64encode(structure_hash(structure.encode())).decode()
    whole = f'{{"structure": {structure}, "hash": "{key}", "scalars": [1.5]}}'
    json_type = {"Content-Type": "application/json"}
    unknown = {"hash": key, "scalars": [2.5]}
    found = problem(http.post(f"{session}/frames", json=unknown), 409, "unknown_structure")
    assert found["retryable"]
    assert http.post(f"{session}/frames", content=whole, headers=json_type).status_code == 200
    assert post(http, session, unknown)["values"][0]["values"] == [2.5, 2.5]


def test_people_and_programs_share_a_session(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1", json={"values": [[1.0, 2.0], [3.0, 4.0]]})
    sent = binary(0, [["matmul", [-1, -1]]], [0], external=[1])
    reply, buffers = pack_and_post(http, session, sent)
    assert reply.values[0].shape == [2, 2]
    np.testing.assert_array_equal(np.frombuffer(buffers[0], "float32"), [7, 10, 15, 22])
    assert http.get(f"{session}/tensors/{reply.first}").json()["values"] == [[7.0, 10.0], [15.0, 22.0]]


def test_message_pack_carries_payloads_as_raw_buffers(http: httpx.Client, session: str) -> None:
    data = np.arange(6, dtype="float64")
    ops: list[Any] = [["upload", ["payload", "float64", [2, 3]]], ["neg", [0]]]
    reply, buffers = pack_and_post(http, session, binary(1, ops, [1], payloads=[Payload(buffer=0)]), [data.data])
    np.testing.assert_array_equal(np.frombuffer(buffers[0], "float64"), -data)
    again, same = pack_and_post(http, session, binary(1, ops, [1], payloads=[Payload(buffer=0)]), [data.data])
    assert (msgspec.to_builtins(again), same) == (msgspec.to_builtins(reply), buffers)


def pack_and_post(
    http: httpx.Client, session: str, sent: Frame, buffers: list[memoryview] | None = None
) -> tuple[Reply, list[memoryview]]:
    views = [view.cast("B") for view in buffers or []]
    body = envelope.join(envelope.encode(sent, views))
    response = http.post(f"{session}/frames", content=body, headers={"Content-Type": "application/msgpack"})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/msgpack"
    reply, out = envelope.decode(response.content)
    assert isinstance(reply, Reply)
    return reply, out


@pytest.mark.parametrize(
    ("content_type", "content", "status", "code"),
    [
        ("application/json", b"", 400, "malformed_frame"),
        ("application/json", b"{", 400, "malformed_frame"),
        ("application/json", b"[]", 400, "malformed_frame"),
        ("application/json", b"{}", 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": 1}}', 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": [["neg"]]}}', 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": []}, "seq": -1}', 409, "reply_forgotten"),
        ("application/json", b'{"structure": {"ops": []}, "seq": 1.5}', 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": []}, "client": 99}', 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": []}, "first": -7}', 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": []}, "first": 9007199254740993}', 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": ' + b"[" * 50_000, 400, "malformed_frame"),
        ("application/json", b'{"structure": {"ops": []}, "hash": "AAAA"}', 400, "malformed_frame"),
        ("application/json", b"\xff", 400, "malformed_frame"),
        ("application/msgpack", b"", 400, "malformed_frame"),
        ("application/msgpack", b"\xff\xff\xff\xff", 400, "malformed_frame"),
        ("application/msgpack", b"\x02\0\0\0\x80", 400, "malformed_frame"),
        ("application/msgpack", b"\x01\0\0\0\x80tail", 400, "malformed_frame"),
        ("text/plain", b"hello", 415, "unsupported_media_type"),
        ("application/x-www-form-urlencoded", b"a=b", 415, "unsupported_media_type"),
    ],
)
def test_what_is_no_frame_is_refused_and_the_session_goes_on(
    http: httpx.Client, session: str, content_type: str, content: bytes, status: int, code: str
) -> None:
    response = http.post(f"{session}/frames", content=content, headers={"Content-Type": content_type})
    problem(response, status, code)
    assert post(http, session, frame([], seq=1))["seq"] == 1


def test_a_reply_as_a_frame_is_refused(http: httpx.Client, session: str) -> None:
    body = envelope.join(envelope.encode(Reply(seq=1)))
    response = http.post(f"{session}/frames", content=body, headers={"Content-Type": "application/msgpack"})
    assert "a reply, not a frame" in problem(response, 400, "malformed_frame")["detail"]


def test_backward_as_a_call(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1?requires_grad=true", json={"values": [1.0, 2.0]})
    post(http, session, frame([["mul", [-1, -1]], ["sum", [0]]], external=[1], first=10))
    done = http.post(f"{session}/backward", json={"tensors": [11], "grads_of": [1, 10]})
    assert done.status_code == 200, done.text
    assert done.json() == {"grads": [{"dtype": "float32", "shape": [2], "values": [2.0, 4.0]}, None]}
    found = problem(http.post(f"{session}/backward", json={"tensors": [11]}), 422, "graph_error")
    assert found["op"] == "backward"


def test_backward_with_gradients_and_inputs(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1?requires_grad=true", json={"values": [1.0, 2.0]})
    http.put(f"{session}/tensors/2?requires_grad=true", json={"values": [3.0, 4.0]})
    http.put(f"{session}/tensors/3", json={"values": [1.0, 10.0]})
    post(http, session, frame([["mul", [-1, -2]]], external=[1, 2], first=10))
    body = {"tensors": [10], "gradients": [3], "inputs": [1], "retain_graph": True, "grads_of": [1, 2]}
    grads = http.post(f"{session}/backward", json=body).json()["grads"]
    assert grads == [{"dtype": "float32", "shape": [2], "values": [3.0, 40.0]}, None]


def test_grad_as_a_call_and_to_the_second_order(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1?requires_grad=true", json={"values": 3.0})
    post(http, session, frame([["pow", [-1, "int"]]], external=[1], scalars=[3], first=10))
    first = http.post(f"{session}/grad", json={"outputs": [10], "inputs": [1], "create_graph": True}).json()
    assert first["gradients"] == [{"dtype": "float32", "shape": [], "values": 27.0}]
    second = http.post(f"{session}/grad", json={"outputs": first["ids"], "inputs": [1]}).json()
    assert second == {"gradients": [{"dtype": "float32", "shape": [], "values": 18.0}], "ids": None}


def test_grad_leaves_nothing_behind_unless_asked(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1?requires_grad=true", json={"values": 3.0})
    http.put(f"{session}/tensors/2?requires_grad=true", json={"values": 3.0})
    post(http, session, frame([["mul", [-1, "int"]]], external=[1], scalars=[2], first=10))
    body = {"outputs": [10], "inputs": [1, 2], "allow_unused": True, "retain_graph": True}
    found = http.post(f"{session}/grad", json=body).json()
    assert found["gradients"] == [{"dtype": "float32", "shape": [], "values": 2.0}, None]
    assert [row["id"] for row in http.get(f"{session}/tensors").json()["tensors"]] == [1, 2, 10]
    kept = http.post(f"{session}/grad", json={**body, "keep": True}).json()["ids"]
    assert http.get(f"{session}/tensors/{kept[0]}").json()["values"] == 2.0


def test_the_graph_as_json_and_as_a_drawing(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1?requires_grad=true", json={"values": [1.0, 2.0]})
    post(http, session, frame([["exp", [-1]], ["sum", [0]]], external=[1], first=10))
    graph = http.get(f"{session}/graph").json()
    names = {node["id"]: node["name"] for node in graph["nodes"]}
    edges = {(names[edge["from"]], names[edge["to"]]) for edge in graph["edges"]}
    assert edges == {("SumBackward0", "ExpBackward0"), ("ExpBackward0", "AccumulateGrad")}
    only = http.get(f"{session}/graph", params={"tensor": [10]}).json()
    assert len(only["nodes"]) == 2
    for drawing in (
        http.get(f"{session}/graph?format=dot"),
        http.get(f"{session}/graph", headers={"Accept": "text/vnd.graphviz"}),
    ):
        assert drawing.headers["content-type"].startswith("text/vnd.graphviz")
        assert drawing.text.startswith("digraph")
        assert "SumBackward0" in drawing.text
    problem(http.get(f"{session}/graph?tensor=99"), 404, "unknown_tensor")
    problem(http.get(f"{session}/graph", headers={"Accept": "image/png"}), 406, "not_acceptable")


def test_the_graph_of_a_tensor_that_failed_tells_why(http: httpx.Client, session: str) -> None:
    http.post(f"{session}/frames", json=frame([["no_such_op", []]], first=1))
    problem(http.get(f"{session}/graph?tensor=1"), 422, "unknown_op")


def test_the_op_table_is_fetched_once(http: httpx.Client) -> None:
    table = http.get("/v1/ops")
    ops = {op["name"]: op for op in table.json()["ops"]}
    assert ops["mul"]["params"][1] == {
        "name": "other", "type": "Tensor | Scalar", "kind": "tensor or number", "required": True,
        "default": None, "differentiable": True,
    }  # fmt: skip
    assert (ops["mul_"]["in_place"], ops["mul_"]["base"]) == (True, "mul")
    assert all(op["doc"] for op in ops.values())
    tag = table.headers["etag"]
    again = http.get("/v1/ops", headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert http.get("/v1/ops", headers={"If-None-Match": '"old"'}).status_code == 200
