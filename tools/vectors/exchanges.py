"""Scripts of HTTP requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from gradwire.cli.conformance.vectors import Vector
from gradwire_protocol.frames import structure_hash

from .steps import (
    ANYTHING,
    FRAMES,
    JSON,
    MSGPACK,
    NOTHING,
    PATH,
    Step,
    encoded,
    failed,
    frame,
    message_hex,
    post,
    refused,
    request,
    script,
    structure,
    value,
)

UP2: Final = ["upload", ["payload", "float32", [2]]]
TWO: Final = [{"values": [1.0, 2.0]}]
NOBODY: Final = "/v1/sessions/s_nobody"


def vectors() -> Iterator[Vector]:
    """The group."""
    for make in (_sessions, _frames, _loops, _tensors, _gradients, _access, _shapes_of_requests, _failing):
        for vector in make():
            yield vector | {"id": f"http/{vector['id']}"}


def _sessions() -> Iterator[Vector]:
    yield script(
        "server/version", "what the server is", request("GET", "/v1/version", 200, None,
            {"protocol": 1, "name": "gradwire"}),
        request("GET", "/livez", 200, None, {"status": "alive"}, key="none"),
        request("GET", "/v1/devices", 200, None, {"devices": ANYTHING}), session=None,
    )  # fmt: skip
    yield script(
        "server/ops", "the op table, unchanged under its ETag",
        request("GET", "/v1/ops", 200, None, {"protocol": 1, "ops": ANYTHING}), session=None,
    )  # fmt: skip
    made = {"id": ANYTHING, "device": "cpu", "default_dtype": "float64", "state": "running", "streams": 0}
    yield script(
        "sessions/life", "a session is made, described, listed and deleted, and is then gone",
        request("POST", "/v1/sessions", 201, {"default_dtype": "float64", "device": "cpu", "seed": 3}, made,
            capture={"own": "/id"}),
        request("GET", "/v1/sessions/${own}", 200, None, made | {"contents": {"tensors": 0, "frames_applied": 0}}),
        request("GET", "/v1/sessions/${own}/memory", 200, None, {"live_bytes": 0}),
        request("DELETE", "/v1/sessions/${own}", 204),
        refused("GET", "/v1/sessions/${own}", 404, "session_gone"),
        refused("POST", "/v1/sessions/${own}/frames", 404, "session_gone", frame([])), session=None,
    )  # fmt: skip
    again = {"Idempotency-Key": "conformance-${session}"}
    yield script(
        "sessions/idempotent", "a repeated request with the same Idempotency-Key gets the same session",
        request("POST", "/v1/sessions", 201, {}, {}, headers=again, capture={"own": "/id"}),
        request("POST", "/v1/sessions", 201, {}, {"id": "${own}"}, headers=again),
        request("DELETE", "/v1/sessions/${own}", 204),
    )  # fmt: skip
    yield script("sessions/unknown", "a session that never was", refused("GET", NOBODY, 404, "not_found"), session=None)
    yield script(
        "sessions/device", "a device that the server does not have",
        refused("POST", "/v1/sessions", 422, "device_mismatch", {"device": "cuda:99"}), session=None,
    )  # fmt: skip
    yield script(
        "sessions/invalid", "unknown members and values of the wrong type, all listed",
        refused("POST", "/v1/sessions", 422, "invalid_request", {"ttl_s": "long", "colour": "red"},
            extra={"errors": ANYTHING}),
        session=None,
    )  # fmt: skip
    yield script(
        "sessions/clients", "a client over REST has numbers and ids of its own",
        request("POST", f"{PATH}/clients", 201, {}, {"expected": 1},
            capture={"client": "/client", "first": "/first_id"}),
        post(frame([["ones", [[1]]]], [0], seq=1, client="${client}", first="${first}"),
            {"seq": 1, "first": "${first}", "made": 1}),
        post(frame([["add", [-1, "int"]]], [0], seq=2, client="${client}", first="${first+1}",
            external=["${first}"], scalars=[2]),
             {"values": [value("float32", [3.0])]}),
        refused("POST", FRAMES, 409, "frame_out_of_order", frame([], seq=9, client="${client}"), extra={"expected": 3}),
        refused("POST", FRAMES, 400, "malformed_frame", frame([], client="${client}")),
    )  # fmt: skip
    yield script(
        "sessions/export", "a session's tensors move to another by a file; names stay",
        request("PUT", f"{PATH}/tensors/7?name=w", 201, {"values": [1.0, 2.0], "dtype": "float32"}),
        request("GET", f"{PATH}/export", 200, answer_headers={"Content-Type": "application/safetensors"}),
    )  # fmt: skip


def _frames() -> Iterator[Vector]:
    ops = [UP2, ["requires_grad_", [0]], ["mul", [0, 0]], ["sum", [1]], ["backward", [[2], [None]]], ["grad_of", [0]]]
    yield script(
        "frames/gradient", "a first gradient: the sum of squares of [1, 2]",
        post(frame(ops, [2, 3], payloads=TWO), {"made": 4, "first": ANYTHING,
             "values": [value("float32", 5.0), value("float32", [2.0, 4.0])]}),
    )  # fmt: skip
    yield script(
        "frames/external", "the next frame refers to tensors of the last",
        post(frame([UP2], payloads=TWO), {"made": 1}, capture={"x": "/first"}),
        post(frame([["mul", [-1, "float"]], ["add", [0, -1]]], [1], external=["${x}"], scalars=[10.0]),
             {"values": [value("float32", [11.0, 22.0])]}),
    )  # fmt: skip
    yield script(
        "frames/chosen-ids", "ids that the client chooses",
        post(frame([UP2, ["neg", [0]]], first=40, payloads=TWO), {"first": 40, "made": 2}),
        post(frame([], [-1, -2], external=[41, 40]), {"values": [value("float32", [-1.0, -2.0]),
            value("float32", [1.0, 2.0])]}),
    )  # fmt: skip
    yield script(
        "frames/releases", "a released id, and a result that was dropped, do not exist any more",
        post(frame([UP2, ["neg", [0]]], first=40, payloads=TWO) | {"structure": {"ops": [UP2, ["neg", [0]]],
            "drops": [1]}}, {}),
        post(frame([], [-1], external=[40], releases=[40]), {"values": [value("float32", [1.0, 2.0])]}),
        request("POST", FRAMES, 200, frame([], [-1, -2], external=[40, 41]),
                {"errors": [{"code": "unknown_tensor"}, {"code": "unknown_tensor"}],
                    "values": [{"error": 0}, {"error": 1}]}),
        request("GET", f"{PATH}/tensors", 200, None, {"tensors": [], "next": None}),
    )  # fmt: skip
    yield script(
        "frames/again", "a numbered frame that is sent twice is applied once, and answered twice",
        post(frame([UP2], seq=1, first=40, payloads=TWO), {"seq": 1}),
        *[post(frame([["add_", [-1, "int"]]], [-1], seq=2, external=[40], scalars=[1]),
            {"seq": 2, "values": [value("float32", [2.0, 3.0])]})] * 2,
        post(frame([], [-1], seq=3, external=[40], ack=2), {"values": [value("float32", [2.0, 3.0])]}),
        refused("POST", FRAMES, 409, "reply_forgotten", frame([], seq=1), extra={"expected": 4}),
    )  # fmt: skip
    yield script(
        "frames/gap", "a number that leaves a gap is refused with the expected one, and nothing happens",
        refused("POST", FRAMES, 409, "frame_out_of_order", frame([["ones", [[1]]]], seq=5), extra={"expected": 1}),
        request("GET", f"{PATH}/tensors", 200, None, {"tensors": []}),
        post(frame([], seq=1), {"seq": 1}),
    )  # fmt: skip
    yield script(
        "frames/poison", "a failed op poisons what depends on it, and nothing else; the first cause is reported",
        request("POST", FRAMES, 200, frame([["ones", [[2]]], ["ones", [[3]]], ["add", [0, 1]], ["neg", [2]],
            ["neg", [0]]], [3, 4], first=40),
                {"errors": [{"code": "shape_mismatch", "op": "add", "index": 2}], "made": 5,
                 "values": [{"error": 0, "dtype": NOTHING}, value("float32", [-1.0, -1.0])]}),
        request("POST", FRAMES, 200, frame([["exp", [-1]]], [0], external=[43]),
                {"errors": [{"code": "shape_mismatch", "op": "add", "index": 2}], "values": [{"error": 0}]}),
        post(frame([["exp", [-1]]], external=[40])),
    )  # fmt: skip
    numbers = [True, -3, "9007199254740993", 0.5, "NaN", "-Infinity", [1.5, -2.5]]
    kinds = ["bool", "int", "int", "float", "float", "float", "complex"]
    yield script(
        "frames/numbers", "numbers of every kind, also those that JSON has no form for",
        post(frame([["full", [[1], kind]] for kind in kinds], list(range(7)), scalars=numbers), {"values": [
            value("bool", [True]), value("int64", [-3]), value("int64", ["9007199254740993"]), value("float32", [0.5]),
            value("float32", ["NaN"]), value("float32", ["-Infinity"]), value("complex64", [[1.5, -2.5]], [1]),
        ]}),
    )  # fmt: skip
    yield script(
        "frames/empty", "a frame that does nothing", post(frame([]), {"values": [], "made": 0, "refused": NOTHING})
    )
    yield script(
        "frames/msgpack", "the same as bytes, with a buffer, answered as bytes",
        request("POST", FRAMES, 200, headers=MSGPACK, hex=message_hex(
            {"type": "frame", "structure": structure([["upload", ["payload", "int64", [2]]], ["neg", [0]]], [1]),
                "payloads": [{"buffer": 0}]},
            [(5).to_bytes(8, "little") + (2**53 + 1).to_bytes(8, "little")]),
                answer_headers={"Content-Type": "application/msgpack"})
        | {"expect": {"status": 200, "message": {"type": "reply",
            "values": [value("int64", [-5, "-9007199254740993"])]}}},
    )  # fmt: skip
    whole = structure([["full", [[2], "float"]]], [0])
    data = encoded(whole)
    digest = structure_hash(data).hex()

    def known(number: float, **fields: Any) -> str:
        return message_hex({"type": "frame", "hash": digest, "scalars": [number]} | fields)

    def answered(data: str, number: float) -> Step:
        message = {"type": "reply", "values": [value("float32", [number, number])]}
        return request("POST", FRAMES, 200, headers=MSGPACK, hex=data) | {"expect": {"status": 200, "message": message}}

    yield script(
        "frames/structure-hash", "a structure travels once, then its hash is enough",
        refused("POST", FRAMES, 409, "unknown_structure", headers=MSGPACK, hex=known(1.0)),
        answered(known(1.0, structure=whole), 1.0), answered(known(2.0), 2.0),
    )  # fmt: skip
    yield script(
        "frames/wrong-hash", "a hash of other bytes",
        refused("POST", FRAMES, 400, "malformed_frame", headers=MSGPACK,
            hex=known(1.0, structure=structure([["ones", [[2]]]], [0]))),
    )  # fmt: skip
    yield script(
        "frames/near", "counters instead of ids: the client's number is added",
        request("POST", f"{PATH}/clients", 201, {}, {}, capture={"client": "/client", "first": "/first_id"}),
        post(frame([UP2], seq=1, client="${client}", first=1, near=True, payloads=TWO), {"first": "${first}"}),
        post(frame([], [-1], seq=2, client="${client}", external=[1], near=True),
            {"values": [value("float32", [1.0, 2.0])]}),
        post(frame([], [-1], seq=3, client="${client}", external=["${first}"], releases=["${first}"]),
             {"values": [value("float32", [1.0, 2.0])]}),
    )  # fmt: skip
    yield script(
        "frames/timed", "times of the frame and of each record",
        post(frame([["ones", [[2]]], ["neg", [0]]], timed=True, detailed=True),
             {"timing": {"started": {"$above": 0}, "finished": {"$above": 0}, "ops": [{"$above": 0}] * 4}}),
    )  # fmt: skip
    yield script(
        "frames/lines", "where the program called each record changes nothing",
        post(frame([["ones", [[2]]], ["neg", [0]]], [1], lines=["train.py:12", ""]),
             {"values": [value("float32", [-1.0, -1.0])]}),
    )  # fmt: skip
    yield script(
        "frames/cancel", "what neither waits nor runs cannot be cancelled",
        refused("DELETE", f"{FRAMES}/1", 404, "not_found"), request("DELETE", FRAMES, 202, None, {"frames": 0}),
    )  # fmt: skip


def _loops() -> Iterator[Vector]:
    made = [request("PUT", f"{PATH}/tensors/10", 201, {"values": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "dtype": "float32"}),
            request("PUT", f"{PATH}/tensors/11", 201, {"values": [0.0, 0.0], "dtype": "float32"})]  # fmt: skip
    step = frame([["select", [-1, 0, "int"]], ["add_", [-2, 0]], ["sum", [-2]]], external=[10, 11], scalars=[0, 1, 2],
                 repeat=3, stacked=[1, -2])  # fmt: skip
    yield script(
        "repeat/loop", "three iterations in one frame: state, numbers of each iteration, stacked values",
        *made, post(step, {"made": 4}, capture={"first": "/first"}),
        post(frame([], [-1, -2, -3], external=["${first+2}", "${first+3}", 11]), {"values": [
            value("float32", [3.0, 10.0, 21.0]), value("float32", [[1.0, 2.0], [4.0, 6.0], [9.0, 12.0]]),
                value("float32", [9.0, 12.0])]}),
    )  # fmt: skip
    yield script(
        "repeat/scalars", "too few numbers for all iterations",
        *made, refused("POST", FRAMES, 400, "malformed_frame", step | {"scalars": [0, 1]}),
    )  # fmt: skip
    yield script(
        "repeat/reads", "a repeated frame reads nothing",
        refused("POST", FRAMES, 400, "malformed_frame", frame([["ones", [[1]]]], [0], repeat=2)),
    )  # fmt: skip
    yield script(
        "repeat/drops", "what is dropped in each iteration is not stacked",
        refused("POST", FRAMES, 400, "malformed_frame",
                {"structure": {"ops": [["ones", [[1]]]], "drops": [0]}, "repeat": 2, "stacked": [0]}),
    )  # fmt: skip
    yield script(
        "repeat/limit", "all iterations count for the limit of ops",
        refused("POST", FRAMES, 413, "limit_exceeded", frame([["zeros", [[2]]]], repeat=1 << 40),
                extra={"setting": "GRADWIRE_MAX_OPS_PER_FRAME"}),
    )  # fmt: skip
    yield script(
        "repeat/failure", "the first iteration that fails is the last, and the stacks are poisoned",
        *made, request("POST", FRAMES, 200, step | {"scalars": [0, 7, 1]},
                       {"errors": [{"code": "index_out_of_range", "op": "select", "extra": {"iteration": 1}}]},
                           capture={"first": "/first"}),
        request("POST", FRAMES, 200, frame([], [-1, -2], external=["${first+2}", 11]),
                {"errors": [{"code": "index_out_of_range"}], "values": [{"error": 0}, value("float32", [1.0, 2.0])]}),
    )  # fmt: skip


def _tensors() -> Iterator[Vector]:
    tensor = f"{PATH}/tensors/7"
    yield script(
        "tensors/json", "a tensor as JSON: made, read, replaced, listed, deleted",
        request("PUT", f"{tensor}?requires_grad=true&name=w", 201, {"values": [[1.5, "NaN"]], "dtype": "float32"},
                {"id": 7, "dtype": "float32", "shape": [1, 2], "created": True}),
        request("GET", tensor, 200, None, value("float32", [[1.5, "NaN"]])),
        request("PUT", tensor, 200, {"values": [[2, 3]], "dtype": "float32"}, {"created": False}),
        request("GET", tensor, 200, None, value("float32", [[2.0, 3.0]])),
        request("GET", f"{PATH}/tensors", 200, None, {"tensors": [{"id": 7, "shape": [1, 2], "dtype": "float32",
                "requires_grad": True, "is_leaf": True, "name": "w"}], "next": None}),
        request("DELETE", tensor, 204), refused("GET", tensor, 404, "unknown_tensor"),
        refused("DELETE", tensor, 404, "unknown_tensor"),
    )  # fmt: skip
    raw = {"Content-Type": "application/octet-stream", "Gradwire-Dtype": "bfloat16", "Gradwire-Shape": "2,2"}
    yield script(
        "tensors/raw", "a tensor as bytes",
        request("PUT", tensor, 201, headers=raw, hex="803f004080bf807f"),
        request("GET", tensor, 200, headers={"Accept": "application/octet-stream"},
                answer_headers={"Gradwire-Dtype": "bfloat16", "Gradwire-Shape": "2,2"})
        | {"expect": {"status": 200, "headers": {"Gradwire-Dtype": "bfloat16"}, "hex": "803f004080bf807f"}},
        request("GET", tensor, 200, None, value("bfloat16", [[1.0, 2.0], [-1.0, "Infinity"]])),
    )  # fmt: skip
    header = json.dumps({"x": {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]}}).encode()
    file = len(header).to_bytes(8, "little") + header + (1).to_bytes(8, "little") + (2**63 - 1).to_bytes(8, "little")
    yield script(
        "tensors/safetensors", "a tensor as a safetensors file",
        request("PUT", tensor, 201, headers={"Content-Type": "application/safetensors"}, hex=file.hex()),
        request("GET", tensor, 200, None, value("int64", [1, "9223372036854775807"])),
    )  # fmt: skip
    yield script(
        "tensors/pages", "tensors in pages by rising id",
        post(frame([["ones", [[1]]]] * 5, first=100), {"made": 5}),
        request("GET", f"{PATH}/tensors?limit=2", 200, None, {"tensors": [{"id": 100}, {"id": 101}], "next": 101}),
        request("GET", f"{PATH}/tensors?limit=2&after=103", 200, None, {"tensors": [{"id": 104}], "next": None}),
        request("GET", f"{PATH}/tensors?tensor=102&tensor=999", 200, None, {"tensors": [{"id": 102}]}),
    )  # fmt: skip
    yield script(
        "tensors/shape", "a tensor is replaced by one of its shape only",
        request("PUT", tensor, 201, {"values": [1, 2], "dtype": "int64"}),
        refused("PUT", tensor, 422, "shape_mismatch", {"values": [1, 2, 3], "dtype": "int64"}),
    )  # fmt: skip
    yield script(
        "tensors/not-acceptable", "a form that there is none of",
        request("PUT", tensor, 201, {"values": 1, "dtype": "int64"}),
        refused("GET", tensor, 406, "not_acceptable", headers={"Accept": "image/png"}, extra={"available": ANYTHING}),
    )  # fmt: skip
    yield script(
        "tensors/media-type", "a body of a type that is not taken",
        refused("PUT", tensor, 415, "unsupported_media_type", headers={"Content-Type": "image/png"}, hex="00",
            extra={"accepted": ANYTHING}),
    )  # fmt: skip


def _gradients() -> Iterator[Vector]:
    ops = [UP2, ["requires_grad_", [0]], ["mul", [0, 0]], ["sum", [1]]]
    made = post(frame(ops, first=40, payloads=TWO))
    yield script(
        "gradients/backward", "backward accumulates, and returns what was asked for",
        made, request("POST", f"{PATH}/backward", 200, {"tensors": [42], "grads_of": [40]},
            {"grads": [value("float32", [2.0, 4.0])]}),
        refused("POST", f"{PATH}/backward", 422, "graph_error", {"tensors": [42]}),
    )  # fmt: skip
    yield script(
        "gradients/grad", "grad returns gradients and changes nothing",
        made, request("POST", f"{PATH}/grad", 200, {"outputs": [42], "inputs": [40], "retain_graph": True},
                      {"gradients": [value("float32", [2.0, 4.0])], "ids": None}),
        request("POST", f"{PATH}/grad", 200, {"outputs": [42], "inputs": [40], "keep": True}, {"ids": [ANYTHING]}),
    )  # fmt: skip
    yield script(
        "gradients/graph", "the live graph",
        made, request("GET", f"{PATH}/graph?tensor=42", 200, None,
            {"nodes": ANYTHING, "edges": ANYTHING, "saved_bytes": ANYTHING}),
        request("GET", f"{PATH}/graph?format=dot", 200),
        refused("GET", f"{PATH}/graph?tensor=999", 404, "unknown_tensor"),
    )  # fmt: skip


def _access() -> Iterator[Vector]:
    yield script(
        "access/no-key", "no key", refused("GET", "/v1/version", 401, "unauthorized", key="none"), session=None
    )
    yield script(
        "access/wrong-key", "a key that is none",
        refused("GET", "/v1/version", 401, "unauthorized", key="none",
            headers={"Authorization": "Bearer gw_nobody"}), session=None,
    )  # fmt: skip
    yield script(
        "access/scope", "a key without the scope",
        refused("GET", "/v1/keys", 403, "forbidden", extra={"scope": "admin"}), session=None, needs=["plain_key"],
    )  # fmt: skip
    yield script(
        "access/strangers", "another tenant's session is not found, as if it did not exist",
        *[refused(method, f"{PATH}{path}", 404, "not_found", body, key="other") for method, path, body in (
            ("GET", "", None), ("DELETE", "", None), ("POST", "/frames", frame([])), ("GET", "/tensors/1", None),
                ("DELETE", "/frames", None))],
        refused("POST", "/v1/tickets", 404, "not_found", {"session": "${session}"}, key="other"),
        request("GET", PATH, 200), needs=["other_key"],
    )  # fmt: skip
    own = {"Authorization": "Bearer ${key}"}
    yield script(
        "access/quota", "a key with a quota of one session: the second is refused, for the client to fix",
        request("POST", "/v1/keys", 201, {"name": "conformance", "quotas": {"max_key_sessions": 1}},
                {"state": "active", "scopes": ["session"]}, key="admin", capture={"key": "/key", "key_id": "/id"}),
        request("POST", "/v1/sessions", 201, {}, {}, key="none", headers=own, capture={"own": "/id"}),
        refused("POST", "/v1/sessions", 429, "too_many_requests", {}, key="none", headers=own),
        request("DELETE", "/v1/sessions/${own}", 204, key="none", headers=own),
        request("DELETE", "/v1/keys/${key_id}", 204, key="admin"),
        refused("GET", "/v1/version", 401, "unauthorized", key="none", headers=own), session=None, needs=["admin_key"],
    )  # fmt: skip
    yield script(
        "access/read-only", "a key with the scope read looks, and changes nothing",
        request("POST", "/v1/keys", 201, {"name": "conformance", "scopes": ["read"]}, {}, key="admin",
            capture={"key": "/key", "key_id": "/id"}),
        request("GET", "/v1/sessions", 200, None, {"sessions": []}, key="none", headers=own),
        refused("POST", "/v1/sessions", 403, "forbidden", {}, key="none", headers=own, extra={"scope": "session"}),
        request("DELETE", "/v1/keys/${key_id}", 204, key="admin"), session=None, needs=["admin_key"],
    )  # fmt: skip
    yield script(
        "access/ticket", "a ticket names its session and when it ends",
        request("POST", "/v1/tickets", 201, {"session": "${session}"},
            {"session": "${session}", "ticket": ANYTHING, "expires_at": ANYTHING}),
        refused("POST", "/v1/tickets", 404, "not_found", {"session": "s_nobody"}),
        refused("POST", "/v1/tickets", 422, "invalid_request", {}),
    )  # fmt: skip


def _shapes_of_requests() -> Iterator[Vector]:
    yield script(
        "requests/path", "a path that leads nowhere", refused("GET", "/v1/nowhere", 404, "not_found"), session=None
    )
    yield script("requests/method", "a method that the path does not have",
                 refused("PATCH", "/v1/sessions", 405, "method_not_allowed"), session=None)  # fmt: skip
    yield script("requests/json", "a body that is not JSON",
                 refused("POST", FRAMES, 400, "malformed_frame", headers=JSON, text="{"))  # fmt: skip
    yield script("requests/session-json", "a body that is not JSON, where no frame is expected",
                 refused("POST", "/v1/sessions", 422, "invalid_request", headers=JSON, text="{"),
                     session=None)  # fmt: skip
    yield script("requests/frame-type", "a frame in a media type that is none",
                 refused("POST", FRAMES, 415, "unsupported_media_type", headers={"Content-Type": "text/csv"},
                     text="1,2"))  # fmt: skip
    yield script("requests/not-a-frame", "a message that is no frame",
                 refused("POST", FRAMES, 400, "malformed_frame", headers=MSGPACK,
                     hex=message_hex({"type": "cancel", "first": 1, "last": 2})))  # fmt: skip
    yield script("requests/no-structure", "a frame with neither a structure nor a hash",
                 refused("POST", FRAMES, 400, "malformed_frame", {"scalars": [1]}))  # fmt: skip
    yield script("requests/client", "a client that never was",
                 refused("POST", FRAMES, 400, "malformed_frame", frame([], seq=1, client=77)))  # fmt: skip
    yield script("requests/field", "a field of the wrong type",
                 refused("POST", FRAMES, 400, "malformed_frame", frame([], seq="one")))  # fmt: skip
    yield script(
        "limits/ops", "more records than a session allows",
        refused("POST", FRAMES, 413, "limit_exceeded", frame([["ones", [[1]]]] * 11),
            extra={"setting": "GRADWIRE_MAX_OPS_PER_FRAME", "limit": 10}),
        session={"limits": {"max_ops_per_frame": 10}},
    )  # fmt: skip
    yield script(
        "limits/decoded", "a message that would take too much memory when it is decoded",
        refused("POST", FRAMES, 413, "limit_exceeded", frame([], scalars=[0] * 40),
            extra={"setting": "GRADWIRE_MAX_DECODED_BYTES"}),
        session={"limits": {"max_decoded_bytes": 64}},
    )  # fmt: skip
    yield script(
        "limits/tensor", "a tensor that is too large, and a result that the session has no room for",
        request("POST", FRAMES, 200, frame([["zeros", [[300]]]], [0]),
            failed("limit_exceeded", op="zeros", extra={"setting": "GRADWIRE_MAX_TENSOR_BYTES", "limit": 1000})),
        session={"limits": {"max_tensor_bytes": 1000}},
    )  # fmt: skip
    yield script(
        "limits/work", "an op with more work than the session allows",
        request("POST", FRAMES, 200, frame([["ones", [[16, 16]]], ["matmul", [0, 0]]], [1]),
                failed("time_exceeded", op="matmul", extra={"setting": "GRADWIRE_MAX_OP_WORK"})),
        session={"limits": {"max_op_work": 1000}},
    )  # fmt: skip
    yield script(
        "limits/tensors", "more tensors than the session allows",
        request("POST", FRAMES, 200, frame([["ones", [[1]]]] * 4),
            failed("limit_exceeded", index=3, extra={"setting": "GRADWIRE_MAX_TENSORS"})),
            session={"limits": {"max_tensors": 3}},
    )  # fmt: skip
    yield script(
        "limits/reads", "more values than a reply may have",
        request("POST", FRAMES, 200, frame([["ones", [[300]]]], [0]),
            failed("limit_exceeded", extra={"setting": "GRADWIRE_MAX_READ_BYTES"})),
        session={"limits": {"max_read_bytes": 1000}},
    )  # fmt: skip


INT2: Final = ["upload", ["payload", "int64", [2]]]
FAILING: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("shape_mismatch", "shapes", "operands that do not broadcast",
     frame([UP2, ["ones", [[3]]], ["add", [0, 1]]], payloads=TWO)),
    ("shape_mismatch", "payload", "a payload of another shape",
        frame([["upload", ["payload", "float32", [3]]]], payloads=TWO)),
    ("dtype_mismatch", "grad", "an integer tensor that is to require grad",
        frame([INT2, ["requires_grad_", [0]]], payloads=[{"values": [1, 2]}])),
    ("device_mismatch", "device", "a device that there is not", frame([["zeros", [[1], "float32", "cuda:99"]]])),
    ("index_out_of_range", "dim", "a dimension that there is not", frame([UP2, ["softmax", [0, 7]]], payloads=TWO)),
    ("invalid_argument", "step", "a step of zero", frame([["arange", [0, 5, 0]]])),
    ("invalid_value", "empty", "no tensors to join", frame([["cat", [[]]]])),
    ("invalid_argument_type", "few", "too few arguments", frame([UP2, ["mul", [0]]], payloads=TWO)),
    ("invalid_argument_type", "many", "too many arguments", frame([UP2, ["exp", [0, 0]]], payloads=TWO)),
    ("invalid_argument_type", "kind", "a text where a tensor goes", frame([["exp", ["float"]]], scalars=[1.0])),
    ("number_too_large", "large", "an int beyond 64 bits, also without sign",
        frame([UP2, ["mul", [0, "int"]]], payloads=TWO, scalars=["18446744073709551616"])),
    ("unknown_op", "unknown", "an op that there is not", frame([["frobnicate", []]])),
    ("unsupported", "dtype", "an op that is not defined for the dtype",
        frame([["ones", [[2], "complex64"]], ["floor", [0]]])),
    ("graph_error", "history", "a backward without a graph",
        frame([UP2, ["sum", [0]], ["backward", [[1], [None]]]], payloads=TWO)),
    ("kernel_failed", "division", "an integer division by zero",
        frame([INT2, ["div", [0, "int", "floor"]]], payloads=[{"values": [1, 2]}], scalars=[0])),
    ("linalg_failed", "singular", "the inverse of a singular matrix", frame([["zeros", [[2, 2]]], ["inverse", [0]]])),
    ("unknown_tensor", "id", "an id that was never assigned", frame([["neg", [-1]]], external=[12345])),
    ("malformed_frame", "result", "a reference to a result that is not yet made", frame([["neg", [5]]])),
    ("malformed_frame", "entry", "a reference beyond external", frame([["neg", [-9]]])),
    ("malformed_frame", "payload", "a payload that is missing", frame([UP2])),
    ("malformed_frame", "number", "a number that is missing", frame([["ones", [[1]]], ["add", [0, "int"]]])),
    ("malformed_frame", "number-kind", "a number of another kind than declared",
        frame([["ones", [[1]]], ["add", [0, "int"]]], scalars=[1.5])),
    ("malformed_frame", "buffer", "a buffer in a JSON frame", frame([UP2], payloads=[{"buffer": 0}])),
    ("not_found", "name", "a name that no tensor has", frame([["by_name", ["nobody"]]])),
)  # fmt: skip


def _failing() -> Iterator[Vector]:
    alive = post(frame([["full", [[1], "float"]]], [0], scalars=[2.5]), {"values": [value("float32", [2.5])]})
    for code, name, text, body in FAILING:
        index = len(body["structure"]["ops"]) - 1
        op = body["structure"]["ops"][index][0]
        yield script(
            f"failures/{code}/{name}", f"{text}: the op fails, the session goes on",
            request("POST", FRAMES, 200, body, failed(code, op=op, index=index, detail=ANYTHING)), alive,
        )  # fmt: skip
