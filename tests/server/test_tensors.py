"""Tensors over REST in their three formats."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load, save

from gradwire_protocol import dtypes

from .exchange import post, problem, upload

RAW = "application/octet-stream"
SAFETENSORS = "application/safetensors"


NARROW = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
"""Dtypes that the library's NumPy interface lacks, with their tags."""


def native(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def sample(name: str) -> np.ndarray[Any, Any]:
    values = np.array([[0, 1, 2], [3, 100, 1]])
    return (values * (1 + 0.5j) if name.startswith("complex") else values).astype(native(name))


def raw_headers(array: np.ndarray[Any, Any]) -> dict[str, str]:
    return {"Content-Type": RAW, "Gradwire-Dtype": array.dtype.name, "Gradwire-Shape": ",".join(map(str, array.shape))}


@pytest.mark.parametrize("name", dtypes.BY_NAME)
def test_raw_bytes_come_back_as_they_went(http: httpx.Client, session: str, name: str) -> None:
    array = sample(name)
    made = http.put(f"{session}/tensors/7", content=array.tobytes(), headers=raw_headers(array))
    assert made.status_code == 201, made.text
    assert made.json() == {"id": 7, "dtype": name, "shape": [2, 3], "created": True}
    got = http.get(f"{session}/tensors/7", headers={"Accept": RAW})
    assert got.content == array.tobytes()
    assert (got.headers["gradwire-dtype"], got.headers["gradwire-shape"]) == (name, "2,3")


@pytest.mark.parametrize("name", [name for name in dtypes.BY_NAME if name != "complex128" and name not in NARROW])
def test_safetensors_agrees_with_the_library(http: httpx.Client, session: str, name: str) -> None:
    array = sample(name)
    made = http.put(f"{session}/tensors/7", content=save({"x": array}), headers={"Content-Type": SAFETENSORS})
    assert made.json() == {"id": 7, "dtype": name, "shape": [2, 3], "created": True}
    got = http.get(f"{session}/tensors/7", headers={"Accept": SAFETENSORS})
    assert got.headers["content-type"] == SAFETENSORS
    found = load(got.content)["tensor"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(("name", "tag"), NARROW.items())
def test_safetensors_carries_what_numpy_lacks(http: httpx.Client, session: str, name: str, tag: str) -> None:
    array = sample(name)
    http.put(f"{session}/tensors/7", content=array.tobytes(), headers=raw_headers(array))
    file = http.get(f"{session}/tensors/7", headers={"Accept": SAFETENSORS}).content
    assert f'"{tag}"'.encode() in file
    made = http.put(f"{session}/tensors/8", content=file, headers={"Content-Type": SAFETENSORS})
    assert made.json()["dtype"] == name
    again = http.get(f"{session}/tensors/8", headers={"Accept": RAW}).content
    assert again == array.tobytes()


def test_safetensors_has_no_complex128(http: httpx.Client, session: str) -> None:
    array = sample("complex128")
    http.put(f"{session}/tensors/7", content=array.tobytes(), headers=raw_headers(array))
    problem(http.get(f"{session}/tensors/7", headers={"Accept": SAFETENSORS}), 422, "unsupported")


@pytest.mark.parametrize("name", dtypes.BY_NAME)
def test_json_comes_back_as_it_went(http: httpx.Client, session: str, name: str) -> None:
    array = sample(name)
    http.put(f"{session}/tensors/7", content=array.tobytes(), headers=raw_headers(array))
    got = http.get(f"{session}/tensors/7").json()
    assert (got["id"], got["dtype"], got["shape"]) == (7, name, [2, 3])
    http.put(f"{session}/tensors/8", json={"values": got["values"], "dtype": name})
    again = http.get(f"{session}/tensors/8", headers={"Accept": RAW}).content
    assert again == array.tobytes()


@pytest.mark.parametrize(
    ("values", "dtype"),
    [(1, "int64"), (1.5, "float32"), (True, "bool"), ([1, 2.0], "float32"), ([], "float32"), (["NaN"], "float32")],
)
def test_json_guesses_the_dtype_as_pytorch_does(http: httpx.Client, session: str, values: Any, dtype: str) -> None:
    assert http.put(f"{session}/tensors/7", json={"values": values}).json()["dtype"] == dtype


def test_numbers_that_json_lacks_have_a_form_both_ways(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1", json={"values": ["NaN", "Infinity", "-Infinity", 1]})
    got = http.get(f"{session}/tensors/1").json()["values"]
    assert got == ["NaN", "Infinity", "-Infinity", 1.0]
    raw = np.frombuffer(http.get(f"{session}/tensors/1", headers={"Accept": RAW}).content, np.float32)
    assert math.isnan(raw[0])
    assert raw[1] == math.inf

    http.put(f"{session}/tensors/4", json={"values": [str(2**64 - 1), 3], "dtype": "uint64"})
    assert http.get(f"{session}/tensors/4").json()["values"] == [str(2**64 - 1), 3]
    problem(http.put(f"{session}/tensors/5", json={"values": [-1], "dtype": "uint64"}), 400, "malformed_frame")
    problem(http.put(f"{session}/tensors/5", json={"values": [1], "dtype": "qint8"}), 422, "invalid_value")

    big = 2**53 + 1
    http.put(f"{session}/tensors/2", json={"values": [str(big), -3], "dtype": "int64"})
    text = http.get(f"{session}/tensors/2").text
    assert json.loads(text)["values"] == [str(big), -3]

    http.put(f"{session}/tensors/3", json={"values": [[1, 2], [3, "NaN"]], "dtype": "complex64"})
    got = http.get(f"{session}/tensors/3").json()
    assert (got["shape"], got["values"]) == ([2], [[1.0, 2.0], [3.0, "NaN"]])


def test_a_bare_nan_is_not_json(http: httpx.Client, session: str) -> None:
    response = http.put(
        f"{session}/tensors/1", content=b'{"values": [NaN]}', headers={"Content-Type": "application/json"}
    )
    problem(response, 422, "invalid_request")


def test_a_tensor_of_no_dimensions_and_one_of_no_elements(http: httpx.Client, session: str) -> None:
    for tensor, array in ((1, np.array(2.5, "float32")), (2, np.zeros((2, 0, 3), "float32"))):
        http.put(f"{session}/tensors/{tensor}", content=array.tobytes(), headers=raw_headers(array))
        got = http.get(f"{session}/tensors/{tensor}", headers={"Accept": RAW})
        assert got.content == array.tobytes()
        assert got.headers["gradwire-shape"] == ",".join(map(str, array.shape))
        file = http.get(f"{session}/tensors/{tensor}", headers={"Accept": SAFETENSORS}).content
        assert load(file)["tensor"].shape == array.shape


def test_putting_again_replaces_values_in_place(http: httpx.Client, session: str) -> None:
    assert http.put(f"{session}/tensors/1?requires_grad=true", json={"values": [1.0, 2.0]}).status_code == 201
    again = http.put(f"{session}/tensors/1", json={"values": [3.0, 4.0]})
    assert (again.status_code, again.json()["created"]) == (200, False)
    row = http.get(f"{session}/tensors").json()["tensors"][0]
    assert (row["requires_grad"], row["is_leaf"]) == (True, True)
    assert http.get(f"{session}/tensors/1").json()["values"] == [3.0, 4.0]
    problem(http.put(f"{session}/tensors/1", json={"values": [3.0]}), 422, "shape_mismatch")


def test_values_of_another_dtype_are_cast_and_the_answer_says_so(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1", json={"values": [1.0, 2.0]})
    again = http.put(f"{session}/tensors/1", json={"values": [3, 4]})
    assert again.json() == {"id": 1, "dtype": "float32", "shape": [2], "created": False}
    assert http.get(f"{session}/tensors/1").json()["dtype"] == "float32"


def test_a_put_tensor_can_be_named(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/5?name=weights", json={"values": [1.0]})
    assert http.get(f"{session}/tensors").json()["tensors"][0]["name"] == "weights"


def test_ids_of_streams_are_not_put(http: httpx.Client, session: str) -> None:
    problem(http.put(f"{session}/tensors/{(5 << 32) + 1}", json={"values": 1.0}), 422, "invalid_request")


def test_a_deleted_tensor_is_gone(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1", json={"values": 1.0})
    assert http.delete(f"{session}/tensors/1").status_code == 204
    problem(http.get(f"{session}/tensors/1"), 404, "unknown_tensor")
    problem(http.delete(f"{session}/tensors/1"), 404, "unknown_tensor")


def test_the_list_has_pages(http: httpx.Client, session: str) -> None:
    for tensor in range(1, 6):
        post(http, session, upload(1.0, "float32", [], first=tensor))
    first = http.get(f"{session}/tensors?limit=2").json()
    assert ([row["id"] for row in first["tensors"]], first["next"]) == ([1, 2], 2)
    rest = http.get(f"{session}/tensors?after=2").json()
    assert ([row["id"] for row in rest["tensors"]], rest["next"]) == ([3, 4, 5], None)
    last = http.get(f"{session}/tensors?after=3&limit=2").json()
    assert ([row["id"] for row in last["tensors"]], last["next"]) == ([4, 5], None)


def test_tensors_of_some_ids_are_listed_alone(http: httpx.Client, session: str) -> None:
    for tensor in range(1, 6):
        post(http, session, upload(1.0, "float32", [], first=tensor))
    some = http.get(f"{session}/tensors?tensor=4&tensor=2&tensor=9&tensor=4").json()
    assert ([row["id"] for row in some["tensors"]], some["next"]) == ([2, 4], None)
    page = http.get(f"{session}/tensors?tensor=4&tensor=2&limit=1").json()
    assert ([row["id"] for row in page["tensors"]], page["next"]) == ([2], 2)
    many = "&".join(f"tensor={i}" for i in range(1, 1002))
    problem(http.get(f"{session}/tensors?{many}"), 422, "invalid_request")


@pytest.mark.parametrize(
    ("headers", "content", "status", "code"),
    [
        ({"Content-Type": "text/csv"}, b"1,2", 415, "unsupported_media_type"),
        ({"Content-Type": RAW}, b"1234", 422, "invalid_request"),
        ({"Content-Type": RAW, "Gradwire-Dtype": "float31", "Gradwire-Shape": "1"}, b"1234", 422, "invalid_value"),
        ({"Content-Type": RAW, "Gradwire-Dtype": "float32", "Gradwire-Shape": "-1"}, b"1234", 422, "invalid_request"),
        ({"Content-Type": RAW, "Gradwire-Dtype": "float32", "Gradwire-Shape": "2"}, b"1234", 422, "shape_mismatch"),
        (
            {"Content-Type": RAW, "Gradwire-Dtype": "float32", "Gradwire-Shape": str(10**15)},
            b"1234", 413, "limit_exceeded",
        ),
        ({"Content-Type": SAFETENSORS}, b"", 400, "malformed_frame"),
        ({"Content-Type": SAFETENSORS}, b"\xff" * 8 + b"{}", 400, "malformed_frame"),
        ({"Content-Type": SAFETENSORS}, save({"a": np.ones(1), "b": np.ones(1)}), 422, "invalid_request"),
        ({"Content-Type": SAFETENSORS}, save({"a": np.ones(1, "uint8")}).replace(b"U8", b"Q8"), 422, "unsupported"),
        ({"Content-Type": SAFETENSORS}, save({"a": np.ones(4)})[:-1], 400, "malformed_frame"),
        ({"Content-Type": "application/json"}, b"[1, 2]", 422, "invalid_request"),
        ({"Content-Type": "application/json"}, b"{}", 422, "invalid_request"),
        ({"Content-Type": "application/json"}, b'{"values": 1, "more": 2}', 422, "invalid_request"),
        ({"Content-Type": "application/json"}, b'{"values": [[1], [1, 2]]}', 422, "shape_mismatch"),
        ({"Content-Type": "application/json"}, b'{"values": "seven"}', 400, "malformed_frame"),
        ({"Content-Type": "application/json"}, b'{"values": ' + b"[" * 100_000, 422, "invalid_request"),
        ({"Content-Type": "application/json"}, b"\xff\xfe", 422, "invalid_request"),
    ],
)  # fmt: skip
def test_what_is_no_tensor_is_refused(
    http: httpx.Client, session: str, headers: dict[str, str], content: bytes, status: int, code: str
) -> None:
    problem(http.put(f"{session}/tensors/1", content=content, headers=headers), status, code)
    assert http.get(f"{session}/tensors").json()["tensors"] == []


@pytest.mark.parametrize("tensor", ["0", "-1", str(2**53), "one", "1.5"])
def test_what_is_no_id_is_refused(http: httpx.Client, session: str, tensor: str) -> None:
    problem(http.get(f"{session}/tensors/{tensor}"), 422, "invalid_request")


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("application/*;q=0.5, application/safetensors", SAFETENSORS),
        ("text/html, application/octet-stream;q=0.1", RAW),
        ("application/json;q=0, */*", RAW),
    ],
)
def test_accept_chooses_the_form(http: httpx.Client, session: str, accept: str, kind: str) -> None:
    http.put(f"{session}/tensors/1", json={"values": 1.0})
    assert http.get(f"{session}/tensors/1", headers={"Accept": accept}).headers["content-type"] == kind


def test_a_form_that_there_is_not(http: httpx.Client, session: str) -> None:
    http.put(f"{session}/tensors/1", json={"values": 1.0})
    found = problem(http.get(f"{session}/tensors/1", headers={"Accept": "text/html"}), 406, "not_acceptable")
    assert "application/json" in found["extra"]["available"]
