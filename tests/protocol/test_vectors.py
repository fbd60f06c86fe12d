"""The offline halves of the conformance vectors, as a client library runs them."""

from __future__ import annotations

import builtins
import json
from typing import Any

import msgspec
import numpy as np
import pytest
from tools.vectors.frame_maker import Ref
from tools.vectors.records import arguments, encoded, plain
from tools.vectors.table import spelled

from gradwire.cli.conformance.scripts import opened, packed
from gradwire.cli.conformance.values import to_bytes, to_values
from gradwire.cli.conformance.vectors import Vector, folder, load
from gradwire_engine.session.json_values import from_json, to_json
from gradwire_protocol import dtypes, envelope
from gradwire_protocol.errors import BY_CODE, GradwireError, from_code
from gradwire_protocol.frames import Problem, structure_hash
from gradwire_protocol.natural_frames import RefusedFrame, decode_frame
from gradwire_protocol.table import lookup


def cases(group: str) -> Any:
    return pytest.mark.parametrize("vector", load(folder(), group), ids=lambda vector: vector["id"])


@cases("envelope")
def test_messages_and_their_bytes(vector: Vector) -> None:
    data = bytes.fromhex(vector["bytes"])
    if "error" in vector:
        with pytest.raises(BY_CODE[vector["error"]]):
            envelope.decode(data)
        return
    message, buffers = envelope.decode(data)
    assert [bytes(each).hex() for each in buffers] == vector.get("buffers", [])
    assert envelope.join(envelope.encode(message, buffers)) == data
    # a client without our structs: the header alone
    header, _ = opened(data)
    header.pop("buffers", None)
    assert {n: v.hex() if isinstance(v, bytes) else v for n, v in header.items()} == vector["message"]
    assert envelope.decode(packed(vector["message"], [bytes(each) for each in buffers]))[0] == message


@cases("values")
def test_numbers_and_their_bytes(vector: Vector) -> None:
    dtype, shape = dtypes.BY_NAME[vector["dtype"]], tuple(vector["shape"])
    if "error" in vector:
        with pytest.raises(GradwireError) as refused:
            from_json(vector["values"], dtype, shape)
        assert refused.value.code == vector["error"]
        return
    data = bytes.fromhex(vector["bytes"])
    written = from_json(vector["values"], dtype, shape)
    assert written.tobytes() == data
    if vector.get("direction") == "encode":
        return
    assert to_json(np.frombuffer(data, written.dtype).reshape(shape), dtype) == vector["values"]
    assert to_values(data, dtype.name, list(shape)) == vector["values"]
    assert to_values(to_bytes(vector["values"], dtype.name, list(shape)), dtype.name, list(shape)) == vector["values"]


@cases("structure_hash")
def test_structures_and_their_hashes(vector: Vector) -> None:
    data = bytes.fromhex(vector["bytes"])
    assert structure_hash(data).hex() == vector["hash"]
    if "structure" in vector:
        assert envelope.encode_part(vector["structure"]) == data


@cases("records")
def test_calls_and_their_records(vector: Vector) -> None:
    op, given = lookup(vector["op"]), arguments(vector)
    if "error" in vector:
        with pytest.raises(GradwireError) as refused:
            encoded(op, given)
        assert refused.value.code == vector["error"]
        return
    args, scalars, payloads = encoded(op, given)
    numbers = [[*map(spelled, each)] if isinstance(each, list) else spelled(each) for each in scalars]
    found = [op.name, plain(args)], numbers, payloads
    assert found == (vector["record"], vector["scalars"], vector["payloads"])
    assert all(
        isinstance(each, Ref) for value in given.values() for each in ([value] if isinstance(value, Ref) else [])
    )


@cases("natural")
def test_natural_frames_and_their_compact_ones(vector: Vector) -> None:
    if "steps" in vector:
        return
    text = json.dumps(vector["frame"])
    if "problem" in vector:
        try:
            frame = decode_frame(text).frame
        except RefusedFrame as refused:
            assert refused.error.code == vector["problem"]["code"]
        except GradwireError as error:
            assert error.code == vector["problem"]["code"]
        else:
            assert frame.named, "only the session knows whether a tensor has this name"
        return
    found = json.loads(msgspec.json.encode(decode_frame(text).frame))
    assert found | {"scalars": []} == vector["compact"] | {"scalars": []}
    assert decode_frame(json.dumps(vector["compact"])).read_names == []


@cases("errors")
def test_problems_and_their_errors(vector: Vector) -> None:
    problem = msgspec.convert(vector["problem"], Problem)
    error = from_code(problem.code, problem.detail, **problem.extra)
    assert isinstance(error, getattr(builtins, vector["builtin"]))
    assert (type(error).code, type(error).__name__) == (vector["code"], vector["class"])
    assert (error.status, error.retryable) == (vector["status"], vector["retryable"])
    assert error.details["code"] == vector["problem"]["code"]


@pytest.mark.parametrize("vector", load(folder(), "stream"), ids=lambda vector: vector["id"])
def test_bytes_of_messages_in_scripts(vector: Vector) -> None:
    for step in vector["steps"]:
        if step["do"] == "send" and "message" in step and "hex" in step:
            data = packed(step["message"], [bytes.fromhex(each) for each in step.get("buffers", [])])
            assert data.hex() == step["hex"]
