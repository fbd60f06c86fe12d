"""Frames in natural JSON over REST and as text on a stream: names, named arguments, literal numbers and data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

import gradwire
from gradwire._core.session import current_session as sessions
from gradwire_protocol.frames import PROTOCOL_VERSION
from tests.live_server import LiveServer, live_server

from .exchange import problem

Frame = dict[str, Any]


@pytest.fixture
def session(http: httpx.Client) -> Iterator[str]:
    path = http.post("/v1/sessions").headers["location"]
    yield path
    http.delete(path)


def send(http: httpx.Client, session: str, *ops: Any, **fields: Any) -> dict[str, Any]:
    """Apply a frame in which nothing fails. Returns the values that it reads, by name."""
    response = http.post(f"{session}/frames", json={"ops": ops, **fields})
    assert response.status_code == 200, response.text
    reply = response.json()
    assert not reply.get("errors"), reply
    return {value["name"]: value.get("values") for value in reply.get("values", ())}


def refused(http: httpx.Client, session: str, status: int, code: str, frame: Frame) -> dict[str, Any]:
    """What is wrong with a frame, which has changed nothing."""
    before = http.get(session).json()["contents"]["frames_applied"]
    found = problem(http.post(f"{session}/frames", json=frame), status, code)
    assert http.get(session).json()["contents"]["frames_applied"] == before
    return found


X = {"op": "upload", "data": [[1.0, 2.0], [3.0, 4.0]], "as": "x"}


# The forms of a record


@pytest.mark.parametrize("record", [
    ["pow", ["x", 2], "y"],
    ["pow", ["x", 2], ["y"]],
    ["pow", ["x", 2.0], "y"],
    {"op": "pow", "self": "x", "exponent": 2, "as": "y"},
    {"op": "pow", "self": "x", "exponent": 2, "as": ["y"]},
    {"as": "y", "exponent": "2", "self": "x", "op": "pow"},
])  # fmt: skip
def test_a_record_has_names_and_literal_numbers(http: httpx.Client, session: str, record: Any) -> None:
    assert send(http, session, X, record, reads=["y"]) == {"y": [[1.0, 4.0], [9.0, 16.0]]}


def test_compact_and_natural_records_mix(http: httpx.Client, session: str) -> None:
    body = {
        "structure": {
            "ops": [
                ["upload", ["payload", "float32", [2]]],
                ["mul", [0, "float"]],
                {"op": "upload", "data": [10.0, 20.0], "as": "b"},
                ["mul", [1, 0.5]],
                {"op": "add", "self": "b", "other": 1, "alpha": "int", "as": "c"},
                ["add", [3, 0]],
            ],
            "reads": [3, "c", 5],
        },
        "scalars": [4.0, 3],
        "payloads": [{"values": [1.0, 2.0]}],
    }
    reply = http.post(f"{session}/frames", json=body).json()
    assert [value["values"] for value in reply["values"]] == [[2.0, 4.0], [13.0, 23.0], [3.0, 6.0]]
    assert [value.get("name") for value in reply["values"]] == [None, "c", None]


def test_the_compact_form_means_what_it_meant(http: httpx.Client, session: str) -> None:
    """An int where a tensor may stand is a reference in it, and its results have ids."""
    body = {"structure": {"ops": [["ones", [[2]]], ["full", [[2], "int"]], ["mul", [1, 0]]], "reads": [2]}}
    reply = http.post(f"{session}/frames", json=body | {"scalars": [7]}).json()
    assert reply["values"] == [{"dtype": "float32", "shape": [2], "values": [7.0, 7.0]}]
    listed = http.get(f"{session}/tensors").json()["tensors"]
    assert [row["id"] for row in listed] == [reply["first"] + i for i in range(3)]


def test_ops_with_any_number_of_results_have_as_many_as_names(http: httpx.Client, session: str) -> None:
    read = send(
        http, session, X, {"op": "split", "self": "x", "split_size_or_sections": 1, "as": ["a", "b"]},
        ["unbind", ["x", 1], ["c", None]], reads=["a", "b", "c"],
    )  # fmt: skip
    assert read == {"a": [[1.0, 2.0]], "b": [[3.0, 4.0]], "c": [1.0, 3.0]}
    wrong = {"ops": [{"op": "split", "self": "x", "split_size_or_sections": 1}]}
    assert "list their names" in refused(http, session, 422, "invalid_argument_type", wrong)["detail"]


def test_gradients_in_one_frame(http: httpx.Client, session: str) -> None:
    read = send(
        http, session, X, {"op": "requires_grad_", "self": "x"}, ["pow", ["x", 2], "y"], ["mean", ["y"], "loss"],
        {"op": "grad", "outputs": "loss", "inputs": ["x"], "retain_graph": True, "as": "g"},
        {"op": "backward", "tensors": ["loss"]}, {"op": "grad_of", "self": "x", "as": "h"}, reads=["g", "h"],
    )  # fmt: skip
    assert read == {"g": [[0.5, 1.0], [1.5, 2.0]], "h": [[0.5, 1.0], [1.5, 2.0]]}


@pytest.mark.parametrize(("given", "dtype", "values"), [
    ([[1, 2], [3, 4]], "int64", [[1, 2], [3, 4]]),
    ([1, 2.5], "float32", [1.0, 2.5]),
    ([True, False], "bool", [True, False]),
    (3, "int64", 3),
    (1.5, "float32", 1.5),
    ([], "float32", []),
    (["NaN", "Infinity", "-Infinity", 1], "float32", ["NaN", "Infinity", "-Infinity", 1.0]),
    (["9007199254740993", 1], "int64", ["9007199254740993", 1]),
])  # fmt: skip
def test_data_is_literal(http: httpx.Client, session: str, given: Any, dtype: str, values: Any) -> None:
    body = {"ops": [{"op": "upload", "data": given, "as": "x"}], "reads": ["x"]}
    (value,) = http.post(f"{session}/frames", json=body).json()["values"]
    assert (value["dtype"], value["values"]) == (dtype, values)


def test_complex_data_says_so(http: httpx.Client, session: str) -> None:
    pairs = {"op": "upload", "data": [[1, 2], [3, "Infinity"]], "dtype": "complex64", "as": "x"}
    assert send(http, session, pairs, reads=["x"]) == {"x": [[1.0, 2.0], [3.0, "Infinity"]]}


def test_special_numbers_are_literal(http: httpx.Client, session: str) -> None:
    read = send(
        http, session,
        {"op": "full", "size": [1], "fill_value": "NaN", "as": "nan"},
        {"op": "full", "size": [1], "fill_value": "-Infinity", "dtype": "float64", "as": "inf"},
        {"op": "full", "size": [1], "fill_value": "9007199254740993", "as": "big"},
        {"op": "full", "size": [1], "fill_value": [1, -2.5], "as": "z"},
        {"op": "full", "size": [1], "fill_value": True, "as": "true"},
        ["mul", ["z", [0, 1]], "turned"],
        ["norm", ["inf", "Infinity"], "norm"],
        reads=["nan", "inf", "big", "turned", "true", "norm"],
    )  # fmt: skip
    assert read == {
        "nan": ["NaN"], "inf": ["-Infinity"], "big": ["9007199254740993"], "turned": [[2.5, 1.0]], "true": [True],
        "norm": "Infinity",
    }  # fmt: skip


def test_new_tensors_take_what_the_session_takes(http: httpx.Client) -> None:
    session = http.post("/v1/sessions", json={"default_dtype": "float64"}).headers["location"]
    body = {"ops": [{"op": "upload", "data": [0.5], "as": "x"}], "reads": ["x"]}
    assert http.post(f"{session}/frames", json=body).json()["values"][0]["dtype"] == "float64"
    http.delete(session)


# Names in the session


def test_a_frame_uses_what_another_has_named(http: httpx.Client, session: str) -> None:
    send(http, session, X)
    assert send(http, session, ["mul", ["x", 10], "y"], reads=["y", "x"]) == {
        "y": [[10.0, 20.0], [30.0, 40.0]], "x": [[1.0, 2.0], [3.0, 4.0]]
    }  # fmt: skip
    assert send(http, session, ["add", ["x", "y"], "x"]) == {}, "the new x is made of the old one"
    assert send(http, session, reads=["x"]) == {"x": [[11.0, 22.0], [33.0, 44.0]]}


def test_a_dropped_name_is_of_its_frame_only(http: httpx.Client, session: str) -> None:
    send(http, session, X)
    send(http, session, ["mul", ["x", 0], "x"], ["sum", ["x"], "s"], drops=["x"])
    assert send(http, session, reads=["x", "s"]) == {"x": [[1.0, 2.0], [3.0, 4.0]], "s": 0.0}
    send(http, session, releases=["x"])
    refused(http, session, 404, "unknown_tensor", {"reads": ["x"]})


def test_names_are_those_of_other_interfaces(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/5", json={"values": [1.0, 2.0]}, params={"name": "put"})
    assert send(http, session, ["mul", ["put", 3], "y"], ["by_name", ["put"], "same"], reads=["y", "same"]) == {
        "y": [3.0, 6.0], "same": [1.0, 2.0]
    }  # fmt: skip
    assert send(http, session, ["neg", ["p"], "n"], reads=["n"], external={"p": 5}) == {"n": [-1.0, -2.0]}


def test_the_name_of_a_failed_result_stays_where_it_was(http: httpx.Client, session: str) -> None:
    send(http, session, X)
    body = {"ops": [["view", ["x", [3]], "x"]]}
    assert http.post(f"{session}/frames", json=body).json()["errors"][0]["op"] == "view"
    assert send(http, session, reads=["x"]) == {"x": [[1.0, 2.0], [3.0, 4.0]]}


def test_a_repeated_frame_goes_on_with_what_it_named(http: httpx.Client, session: str) -> None:
    send(http, session, {"op": "upload", "data": [1.0], "as": "w"})
    send(http, session, ["mul", ["w", 2], "w"], repeat=10)
    assert send(http, session, reads=["w"]) == {"w": [1024.0]}
    body = {"ops": [{"op": "mul", "self": "w", "other": "float", "as": "w"}], "repeat": 3, "stacked": ["w"]}
    reply = http.post(f"{session}/frames", json=body | {"scalars": [0.5, 0.5, 0.5]}).json()
    stack = reply["first"] + reply["made"] - 1
    assert send(http, session, reads=["s", "w"], external={"s": stack}) == {
        "s": [[512.0], [256.0], [128.0]], "w": [128.0]
    }  # fmt: skip


# A training loop


def layer(name: str, rows: int, columns: int) -> list[Any]:
    return [
        {"op": "randn", "size": [rows, columns], "as": f"{name}.raw"},
        {"op": "mul", "self": f"{name}.raw", "other": rows**-0.5, "as": name},
        {"op": "requires_grad_", "self": name},
    ]


def step(lr: float, count: int) -> Frame:
    """One step of Adam for a network with two layers."""
    return {
        "ops": [
            {"op": "set_grad", "self": "w1"},
            {"op": "set_grad", "self": "w2"},
            {"op": "matmul", "self": "x", "other": "w1", "as": "z"},
            {"op": "tanh", "self": "z", "as": "h"},
            {"op": "matmul", "self": "h", "other": "w2", "as": "y"},
            {"op": "mse_loss", "self": "y", "target": "t", "as": "loss"},
            {"op": "backward", "tensors": ["loss"]},
            {
                "op": "adam_step",
                "params": ["w1", "w2"],
                "exp_avgs": ["m1", "m2"],
                "exp_avg_sqs": ["v1", "v2"],
                "lr": lr,
                "step": count,
            },
        ],
        "reads": ["loss"],
    }


def test_a_training_loop_leaves_nothing_behind_and_runs_by_a_plan(http: httpx.Client, session: str) -> None:
    send(
        http, session, {"op": "manual_seed", "seed": 0}, {"op": "randn", "size": [16, 4], "as": "x"},
        {"op": "sum", "self": "x", "dim": 1, "keepdim": True, "as": "t"}, *layer("w1", 4, 8), *layer("w2", 8, 1),
        *[{"op": "zeros_like", "self": f"w{i}", "as": f"{kind}{i}"} for kind in "mv" for i in (1, 2)],
        drops=["w1.raw", "w2.raw"],
    )  # fmt: skip
    losses, sizes = [], []
    for count in range(1, 201):
        reply = http.post(f"{session}/frames", json=step(0.05 / count**0.5, count)).json()
        losses.append(reply["values"][0]["values"])
        if count in (20, 200):
            contents = http.get(session).json()["contents"]
            sizes.append((contents["tensors"], contents["memory"]["live_bytes"], contents["graph_nodes"]))
    assert losses[-1] < 0.02 * losses[0]
    assert sizes[0] == sizes[1], "re-posted frames leave nothing behind"
    assert (sizes[0][0], contents["names"]) == (0, 12), "names hold the tensors"
    assert contents["plans"]["hits"] >= 190, contents["plans"]


# What the documentation shows


def test_the_examples_of_the_documentation_work_when_pasted(http: httpx.Client, session: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    section = page.split("## Natural JSON\n")[1].split("\n## ")[0]
    frames = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    assert len(frames) == 5
    replies = []
    for frame in frames:
        response = http.post(f"{session}/frames", content=frame, headers={"Content-Type": "application/json"})
        assert response.status_code == 200, response.text
        replies.append(response.json())
        assert not replies[-1].get("errors")
    assert [value["name"] for value in replies[0]["values"]] == ["loss", "g"]
    assert replies[0]["values"][1]["values"] == [[0.5, 1.0], [1.5, 2.25]]
    assert send(http, session, reads=["w"]) == {"w": [0.015625, 0.03125]}
    assert replies[4]["values"][0]["name"] == "loss"


# What is refused, with nothing applied


@pytest.mark.parametrize(("ops", "status", "code", "place", "words"), [
    ([["pwo", ["x", 2], "y"]], 422, "unknown_op", ("pwo", 1), "did you mean 'pow'"),
    ([{"op": "matmull", "self": "x"}], 422, "unknown_op", ("matmull", 1), "did you mean 'matmul"),
    ([{"op": "pow", "self": "x", "exponnt": 2}], 422, "invalid_argument_type", ("pow", 1), "did you mean 'exponent'"),
    ([{"op": "pow", "self": "x"}], 422, "invalid_argument_type", ("pow", 1), "missing the argument 'exponent'"),
    ([["pow", ["x", 2, 3], "y"]], 422, "invalid_argument_type", ("pow", 1), "got 3 arguments; it takes 2"),
    ([{"op": "relu", "self": 0}], 422, "invalid_argument_type", ("relu", 1), "by name, not by number"),
    ([{"op": "pow", "self": 0, "exponent": 2}], 422, "invalid_argument_type", ("pow", 1), "self and exponent are"),
    ([["cat", [["x", 0], 0], "y"]], 422, "invalid_argument_type", ("cat", 1), "by name, not by number"),
    ([{"op": "relu", "self": "xx"}], 404, "unknown_tensor", ("relu", 1), "named 'xx'; did you mean 'x'?"),
    ([["relu", ["y"], "z"], ["relu", ["x"], "y"]], 404, "unknown_tensor", ("relu", 1), "makes it after its first use"),
    ([["relu", ["x"], "x"]], 400, "malformed_frame", ("relu", 1), "names two results 'x'"),
    ([["relu", ["x"], "NaN"]], 400, "malformed_frame", ("relu", 1), "'NaN' cannot be the name"),
    ([["relu", ["x"], "7"]], 400, "malformed_frame", ("relu", 1), "'7' cannot be the name"),
    ([["relu", ["x"], ["a", "b"]]], 400, "malformed_frame", ("relu", 1), "results is 1, of names 2"),
    ([["relu_", ["x"], "y"]], 400, "malformed_frame", ("relu_", 1), "no result to name 'y'"),
    ([{"self": "x"}], 400, "malformed_frame", None, 'needs "op"'),
    ([["relu", {"self": "x"}]], 400, "malformed_frame", ("relu", 1), "named arguments need"),
    ([{"op": "sum", "self": "x", "dim": "a"}], 422, "invalid_argument_type", ("sum", 1), "dim"),
    ([{"op": "relu", "self": None}], 422, "invalid_argument_type", ("relu", 1), "self"),
    ([{"op": "sgd_step", "params": ["x"], "lr": "fast"}], 422, "invalid_argument_type", ("sgd_step", 1), "lr"),
    ([{"op": "upload", "data": ["a"]}], 422, "invalid_value", ("upload", 1), "not 'a'"),
])  # fmt: skip
def test_a_mistake_refuses_the_frame(
    http: httpx.Client, session: str, ops: list[Any], status: int, code: str, place: Any, words: str
) -> None:
    found = refused(http, session, status, code, {"ops": [X, *ops]})
    assert words in found["detail"]
    assert place is None or (found["op"], found["index"]) == place


@pytest.mark.parametrize(("frame", "words"), [
    ({"ops": [], "sclars": [1]}, "unknown field 'sclars' of a frame; did you mean 'scalars'?"),
    ({"ops": [], "read": []}, "unknown field 'read' of a frame; did you mean 'reads'"),
    ({"structure": {"ops": [], "drop": []}}, "unknown field 'drop' of a structure; did you mean 'drops'?"),
    ({"ops": [], "payloads": [{"value": 1}]}, "unknown field 'value' of a payload; did you mean 'values'?"),
    ({"ops": [], "buffers": []}, "unknown field 'buffers' of a frame"),
    ({"ops": [], "structure": {"ops": []}}, "not both"),
    ({"ops": [X], "drops": ["xx"]}, "no result of this frame is named 'xx'; did you mean 'x'?"),
    ({"ops": [X], "releases": ["x"]}, "list it in 'drops'"),
    ({"ops": [X], "scalars": [1]}, "scalars has 1 entries, but the records use 0"),
    ({"ops": [["full", [[1], "float"], "x"]]}, "a number that is missing"),
    ({"ops": [X], "hash": "AAAA"}, "hash is of a structure in compact form"),
])  # fmt: skip
def test_an_unknown_field_is_refused(http: httpx.Client, session: str, frame: Frame, words: str) -> None:
    assert words in refused(http, session, 400, "malformed_frame", frame)["detail"]


@pytest.mark.parametrize(("method", "path", "body", "words"), [
    ("POST", "/v1/sessions", {"devise": "cpu"}, "unknown field 'devise' of SessionRequest; did you mean 'device'?"),
    ("POST", "/v1/sessions", {"limits": {"max_tensor": 1}}, "did you mean 'max_tensors'"),
    ("POST", "/v1/tickets", {"sesion": "s"}, "did you mean 'session'?"),
    ("POST", "backward", {"tensor": [1]}, "did you mean 'tensors'?"),
    ("PUT", "tensors/5", {"value": [1]}, "did you mean 'values'?"),
])  # fmt: skip
def test_other_bodies_refuse_unknown_fields(
    http: httpx.Client, session: str, method: str, path: str, body: Any, words: str
) -> None:
    url = path if path.startswith("/") else f"{session}/{path}"
    assert words in problem(http.request(method, url, json=body), 422, "invalid_request")["detail"]


def test_many_iterations_of_many_numbers_are_refused(http: httpx.Client, session: str) -> None:
    body = {"ops": [["full", [[1], 0.5], "x"]] * 1 + [["full", [[1], 0.5]]] * 7, "repeat": 1 << 20}
    refused(http, session, 413, "limit_exceeded", body)
    body = {"ops": [["zeros", [[1]], "x"]], "repeat": 1 << 62}
    refused(http, session, 413, "limit_exceeded", body)


def test_a_number_of_results_is_no_work_for_the_translation(http: httpx.Client, session: str) -> None:
    named = {"ops": [X, ["split", ["x", 1], 1 << 40]]}
    assert "list their names" in refused(http, session, 422, "invalid_argument_type", named)["detail"]
    compact = {"ops": [X, ["split", [0, 1], 1 << 40], ["neg", ["x"], "y"]]}
    assert "out of range" in refused(http, session, 400, "malformed_frame", compact)["detail"]


@pytest.mark.parametrize("argument", [
    1 << 70, -(1 << 70), [[1, 2], [3, 4]], "9" * 20, "9" * 21, json.loads("[" * 400 + "]" * 400),
    json.loads("[" * 400 + "1" + ", 1]" * 400),
])  # fmt: skip
@pytest.mark.parametrize("record", [
    lambda each: ["relu", [each]], lambda each: ["pow", [0, each]], lambda each: ["pow", ["x", each]],
    lambda each: ["sum", [0, each]], lambda each: {"op": "sum", "self": "x", "dim": each},
    lambda each: {"op": "upload", "data": each}, lambda each: {"op": "full", "size": each, "fill_value": each},
    lambda each: [each, []], lambda each: ["relu", ["x"], each], lambda each: ["relu", each], lambda each: each,
])  # fmt: skip
def test_extreme_arguments_are_no_defects(http: httpx.Client, session: str, record: Any, argument: Any) -> None:
    response = http.post(f"{session}/frames", json={"ops": [X, record(argument)]})
    assert response.status_code in (200, 400, 404, 413, 422), response.text
    assert all(error["code"] != "internal" for error in response.json().get("errors", ())), response.text


# Text messages on a stream


def test_text_messages_take_the_same_frames(server: LiveServer, http: httpx.Client, session: str) -> None:
    url = f"{server.stream_url}{session.rsplit('/', 1)[-1]}/stream"
    key = {"Authorization": f"Bearer {server.api_key}"}

    with connect(url, additional_headers=key, compression=None) as socket:

        def ask(**message: Any) -> dict[str, Any]:
            socket.send(json.dumps(message))
            answer: dict[str, Any] = json.loads(socket.recv(60))
            return answer

        assert ask(type="hello", version=PROTOCOL_VERSION)["type"] == "welcome"
        reply = ask(type="frame", seq=1, ops=[X, ["pow", ["x", 2], "y"]], reads=["y"])
        assert (reply["values"][0]["name"], reply["values"][0]["values"]) == ("y", [[1.0, 4.0], [9.0, 16.0]])
        wrong = ask(seq=2, ops=[["pow", ["y", 2, 2], "z"]])["refused"]
        assert (wrong["code"], wrong["op"], wrong.get("index", 0)) == ("invalid_argument_type", "pow", 0)
        unknown = ask(seq=2, ops=[["neg", ["y"], "z"], ["neg", ["zz"]]])["refused"]
        assert (unknown["code"], unknown["op"], unknown["index"]) == ("unknown_tensor", "neg", 1)
        assert ask(seq=2, ops=[["neg", ["y"], "z"]], reads=["z"])["values"][0]["name"] == "z", "the number was due"
        last = ask(type="frame", seq=3, opps=[])
        assert "unknown field 'opps' of a frame; did you mean 'ops'" in last["problem"]["detail"]
    assert send(http, session, reads=["z"]) == {"z": [[-1.0, -4.0], [-9.0, -16.0]]}


def test_other_text_messages_refuse_unknown_fields(server: LiveServer, session: str) -> None:
    url = f"{server.stream_url}{session.rsplit('/', 1)[-1]}/stream"
    key = {"Authorization": f"Bearer {server.api_key}"}
    for message, words in [
        ({"type": "hello", "version": PROTOCOL_VERSION, "clint": 0}, "field 'clint' of a hello; did you mean 'client'"),
        ({"type": "helo", "version": PROTOCOL_VERSION}, "unknown message type 'helo'; did you mean 'hello'?"),
    ]:  # fmt: skip
        with connect(url, additional_headers=key, compression=None) as socket:
            socket.send(json.dumps(message))
            assert words in json.loads(socket.recv(60))["problem"]["detail"]


# Where sessions live elsewhere


@pytest.mark.parametrize("kind", ["inline", "process"])
def test_names_and_literals_survive_a_restart(kind: str, tmp_path: Path) -> None:
    """The journal and the processes of sessions carry frames in compact form."""
    settings: dict[str, Any] = {"data_dir": tmp_path, "session_host": kind}
    with live_server(**settings) as server, server.http() as http:
        session = http.post("/v1/sessions", json={"durability": "applied"}).headers["location"]
        nan = {"op": "full", "size": [1], "fill_value": "NaN", "as": "nan"}
        assert send(http, session, X, nan, ["mul", ["x", 2], "x2"], reads=["nan"]) == {"nan": ["NaN"]}
        send(http, session, ["add", ["x", 1], "x"], releases=["x2"])
    with live_server(**settings) as server, server.http() as http:
        assert send(http, session, reads=["x", "nan"]) == {"x": [[2.0, 3.0], [4.0, 5.0]], "nan": ["NaN"]}
        refused(http, session, 404, "unknown_tensor", {"reads": ["x2"]})


def test_python_and_json_share_names(server: LiveServer, http: httpx.Client) -> None:
    before = sessions._current
    with gradwire.connect(server.url, server.api_key) as mine:
        path = f"/v1/sessions/{mine.id}"
        gradwire.tensor([1.0, 2.0]).set_name("w")
        mine.synchronize()
        assert send(http, path, ["mul", ["w", 3], "tripled"], reads=["tripled"]) == {"tripled": [3.0, 6.0]}
        assert mine.tensor("tripled").tolist() == [3.0, 6.0]
    sessions._current = before
