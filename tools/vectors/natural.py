"""Frames in natural JSON: the compact frames that they become, what is answered, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gradwire.cli.conformance.vectors import Vector
from gradwire_engine.session.session import Session
from gradwire_protocol.errors import BY_CODE, GradwireError
from gradwire_protocol.natural_frames import RefusedFrame, decode_frame

from .steps import FRAMES, connect, ended, receive, refused, reply, request, script, send_text, value
from .table import spelled

Frame = dict[str, Any]

X: Final = {"op": "upload", "data": [[1.0, 2.0], [3.0, 4.0]], "as": "x"}
UP2: Final = ["upload", ["payload", "float32", [2]]]


def frame(*ops: Any, **fields: Any) -> Frame:
    """A frame with its ops at the top level."""
    return {"ops": list(ops), **fields}


TRANSLATED: Final[tuple[tuple[str, str, Frame], ...]] = (
    ("literal-int", "a literal number in place of its kind", frame(X, ["pow", ["x", 2], "y"], reads=["y"])),
    ("literal-float", "a number with a fraction is a float", frame(X, ["mul", ["x", 0.5], "y"], reads=["y"])),
    ("literal-bool", "a bool", frame(X, ["mul", ["x", True], "y"], reads=["y"])),
    ("literal-complex", "a complex number", frame(X, ["mul", ["x", [0, 1]], "y"], reads=["y"])),
    ("literal-special", "NaN, an infinity and an integer beyond 2**53",
     frame(*[{"op": "full", "size": [1], "fill_value": v, "as": n} for n,
         v in (("a", "NaN"), ("b", "-Infinity"), ("c", "9007199254740993"))],
           reads=["a", "b", "c"])),
    ("named-arguments", "arguments by name", frame(X, {"op": "sum", "self": "x", "dim": 1, "keepdim": True,
        "as": "s"}, reads=["s"])),
    ("any-order", "named arguments in any order, the name first",
        frame(X, {"as": "y", "exponent": 2, "self": "x", "op": "pow"}, reads=["y"])),
    ("results", "several results, one of them without a name",
        frame(X, ["max_dim", ["x", 1], ["m", None]], reads=["m"])),
    ("open-results", "as many results as names", frame(X, {"op": "split", "self": "x", "split_size_or_sections": 1,
        "as": ["a", "b"]}, reads=["b", "a"])),
    ("data-ints", "data of integers", frame({"op": "upload", "data": [1, 2], "as": "x"}, reads=["x"])),
    ("data-bools", "data of bools", frame({"op": "upload", "data": [True, False], "as": "x"}, reads=["x"])),
    ("data-dtype", "data of a dtype", frame({"op": "upload", "data": [1, 2], "dtype": "float64", "as": "x"},
        reads=["x"])),
    ("data-number", "a number is a tensor without dimensions",
        frame({"op": "upload", "data": 1.5, "as": "x"}, reads=["x"])),
    ("drops", "a dropped name is of its frame only", frame(X, ["neg", ["x"], "y"], reads=["y"], drops=["x"])),
    ("structure", "ops inside of a structure", {"structure": {"ops": [X, ["neg", ["x"], "y"]], "reads": ["y"]}}),
    ("mixed", "records in compact form beside natural ones",
     {"structure": {"ops": [UP2, ["mul", [0, "float"]], {"op": "upload", "data": [10.0, 20.0], "as": "b"},
         ["mul", [1, 0.5]], ["add", ["b", 1], "c"]],
                    "reads": [3, "c"]}, "scalars": [4.0], "payloads": [{"values": [1.0, 2.0]}]}),
    ("compact", "a compact frame stays as it is", {"structure": {"ops": [["ones", [[2]]], ["mul", [0, "int"]]],
        "reads": [1]}, "scalars": [3]}),
    ("gradient", "a first gradient",
     frame(X, {"op": "requires_grad_", "self": "x"}, ["pow", ["x", 2], "y"], ["mean", ["y"], "loss"],
         {"op": "backward", "tensors": ["loss"]},
           {"op": "grad_of", "self": "x", "as": "g"}, reads=["loss", "g"])),
    ("redefined", "a name that is given again is the new result",
        frame(X, ["neg", ["x"], "y"], ["mul", ["y", 2], "z"], reads=["z", "x"])),
    ("optimizer", "a step with defaults",
     frame({"op": "upload", "data": [1.0, 2.0], "as": "w"}, {"op": "requires_grad_", "self": "w"},
         {"op": "set_grad", "self": "w", "grad": "w"},
           {"op": "sgd_step", "params": ["w"], "momentum_buffers": [None], "lr": 0.5}, reads=["w"])),
)  # fmt: skip

REFUSED: Final[tuple[tuple[str, str, Frame], ...]] = (
    ("op", "an op that there is not", frame(X, ["pwo", ["x", 2], "y"])),
    ("argument", "an argument that the op does not have", frame(X, {"op": "pow", "self": "x", "exponnt": 2})),
    ("missing", "a missing argument", frame(X, {"op": "pow", "self": "x"})),
    ("number-as-tensor", "a number where only a tensor goes", frame(X, {"op": "relu", "self": 0})),
    ("unknown-name", "a name that nothing has", frame(X, {"op": "relu", "self": "xx"})),
    ("later-name", "a name that a later record makes", frame(X, ["relu", ["y"], "z"], ["relu", ["x"], "y"])),
    ("twice", "two results of one name", frame(X, ["relu", ["x"], "x"])),
    ("reserved", "a name that spells a number", frame(X, ["relu", ["x"], "NaN"])),
    ("names", "more names than results", frame(X, ["relu", ["x"], ["a", "b"]])),
    ("no-result", "a name for no result", frame(X, ["relu_", ["x"], "y"])),
    ("field", "a field that a frame does not have", frame(sclars=[1])),
    ("structure-field", "a field that a structure does not have", {"structure": {"ops": [], "drop": []}}),
    ("both", "ops at the top level and in a structure", frame(structure={"ops": []})),
    ("drops", "a dropped name that no result has", frame(X, drops=["xx"])),
    ("surplus", "numbers that belong to no record", frame(X, scalars=[1])),
    ("data", "data that is no numbers", frame({"op": "upload", "data": ["a"]})),
)  # fmt: skip


def vectors() -> Iterator[Vector]:
    """The group."""
    for name, text, natural in TRANSLATED:
        yield _translated(f"natural/{name}", text, natural)
    for name, text, natural in REFUSED:
        yield {"id": f"natural/refused/{name}", "text": text, "frame": natural, "problem": _problem(natural)}
    for vector in _scripts():
        yield vector | {"id": f"natural/{vector['id']}"}


def _translated(label: str, text: str, natural: Frame) -> Vector:
    found = decode_frame(json.dumps(natural))
    compact = json.loads(msgspec.json.encode(found.frame))
    if found.frame.scalars:
        compact["scalars"] = [spelled(each) for each in found.frame.scalars]
    session = Session()
    try:
        answer = session.apply(found.frame, human=True)[0]
    finally:
        session.close()
    if answer.errors or answer.refused is not None:
        raise AssertionError(f"{label}: {answer}")
    names = found.read_names or [""] * len(answer.values)
    values = [
        {"dtype": each.dtype, "shape": each.shape, "values": each.values} | ({"name": name} if name else {})
        for each, name in zip(answer.values, names, strict=True)
    ]
    return {"id": label, "text": text, "frame": natural, "compact": compact, "expect": {"values": values}}


def _problem(natural: Frame) -> dict[str, Any]:
    """What the translation says, or the session: the name of a tensor may be the session's."""
    try:
        found = decode_frame(json.dumps(natural))
    except RefusedFrame as refusal:
        return _said(refusal.error)
    except GradwireError as error:
        return _said(error)
    session = Session()
    try:
        answer = session.apply(found.frame, human=True)[0].refused
    finally:
        session.close()
    assert answer is not None
    return {"code": answer.code, "status": BY_CODE[answer.code].status} | (
        {"op": answer.op, "index": answer.index} if answer.op else {}
    )


def _said(error: GradwireError) -> dict[str, Any]:
    placed = {name: error.details[name] for name in ("op", "index") if name in error.details}
    return {"code": error.code, "status": error.status} | placed


def post(natural: Frame, **values: Any) -> dict[str, Any]:
    """A frame over REST and the float32 values that it reads, by name."""
    wanted = [value("float32", each) | {"name": name} for name, each in values.items()]
    return request("POST", FRAMES, 200, natural, {"errors": [], "values": wanted})


def _scripts() -> Iterator[Vector]:
    yield script(
        "names/session", "a name outlives its frame, moves, and is released",
        post(frame(X)), post(frame(["mul", ["x", 10], "y"], reads=["y", "x"]), y=[[10.0, 20.0], [30.0, 40.0]],
            x=[[1.0, 2.0], [3.0, 4.0]]),
        post(frame(["add", ["x", "y"], "x"])), post(frame(reads=["x"]), x=[[11.0, 22.0], [33.0, 44.0]]),
        post(frame(releases=["x"])), refused("POST", FRAMES, 404, "unknown_tensor", frame(reads=["x"])),
    )  # fmt: skip
    yield script(
        "names/external", "a frame's own name for an id",
        request("POST", FRAMES, 200, {"structure": {"ops": [UP2]}, "first": 40,
            "payloads": [{"values": [1.0, 2.0]}]}, {"errors": []}),
        post(frame(["neg", ["p"], "n"], reads=["n"], external={"p": 40}), n=[-1.0, -2.0]),
    )  # fmt: skip
    yield script(
        "names/failed", "the name of a failed result stays where it was",
        post(frame(X)), request("POST", FRAMES, 200, frame(["view", ["x", [3]], "x"]), {"errors": [{"op": "view"}]}),
        post(frame(reads=["x"]), x=[[1.0, 2.0], [3.0, 4.0]]),
    )  # fmt: skip
    yield script(
        "names/repeat", "a repeated frame goes on with what it named",
        post(frame({"op": "upload", "data": [1.0], "as": "w"})), post(frame(["mul", ["w", 2], "w"], repeat=10)),
        post(frame(reads=["w"]), w=[1024.0]),
    )  # fmt: skip
    yield script(
        "stream/text", "text messages take the same frames; a refused number stays due",
        connect(), send_text({"type": "hello", "version": 1}), receive({"type": "welcome"}),
        send_text({"seq": 1, **frame(X, ["pow", ["x", 2], "y"], reads=["y"])}),
        receive(reply(1, values=[value("float32", [[1.0, 4.0], [9.0, 16.0]]) | {"name": "y"}])),
        send_text({"seq": 2, **frame(["neg", ["zz"], "z"])}),
        receive({"type": "reply", "seq": 2, "refused": {"code": "unknown_tensor", "op": "neg"}}),
        send_text({"seq": 2, **frame(["neg", ["y"], "z"], reads=["z"])}),
        receive(reply(2, values=[value("float32", [[-1.0, -4.0], [-9.0, -16.0]]) | {"name": "z"}])),
    )  # fmt: skip
    yield script(
        "stream/unknown-field", "a field that a message does not have ends the stream",
        connect(), send_text({"type": "hello", "version": 1, "clint": 0}), ended("malformed_frame", 4400),
    )  # fmt: skip
