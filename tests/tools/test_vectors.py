"""The conformance vectors cover the protocol, are detected when stale, and do not change once they are frozen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.vectors import derivation, store
from tools.vectors.__main__ import app
from tools.vectors.problems import WHY
from tools.vectors.table import all_ops
from typer.testing import CliRunner

from gradwire_protocol import dtypes
from gradwire_protocol.errors import BY_CODE
from gradwire_protocol.frames import Frame, FromClient, FromServer, Reply, Welcome
from gradwire_protocol.params import Kind

STORED = store.read(store.FOLDER)
EVERYTHING = [vector for vectors in STORED.values() for vector in vectors]


def group(name: str) -> list[dict[str, Any]]:
    return STORED[name]


def parts(value: Any) -> Iterator[Any]:
    """A value and everything in it."""
    yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(each)


# Coverage


def test_ids_are_unique_and_begin_with_the_group() -> None:
    ids = [vector["id"] for vector in EVERYTHING]
    assert len(set(ids)) == len(ids)
    assert all(vector["id"].startswith(f"{name}/") and vector["text"] for name in STORED for vector in group(name))


def test_every_op_has_vectors_that_work_and_a_record() -> None:
    works = {
        record[0]
        for name, vectors in STORED.items()
        for vector in vectors
        if name.startswith("ops/") and "errors" not in vector["expect"]
        for record in vector["frame"]["structure"]["ops"]
    }
    refused = {
        vector["frame"]["structure"]["ops"][-1][0]
        for name, vectors in STORED.items()
        for vector in vectors
        if name.startswith("ops/") and vector["expect"].get("errors", [{}])[0].get("code") == "unknown_op"
    }
    recorded = {vector["op"] for vector in group("records") if "error" not in vector}
    only_errors = {"bump_version", "exit_dual_level", "forget_region"}  # what they do is that something else fails
    only_errors |= {op.name for op in all_ops() if op.collective}  # a frame alone opens no group
    assert {op.name for op in all_ops() if not op.internal} - works <= only_errors
    assert refused == {op.name for op in all_ops() if op.internal}
    assert {op.name for op in all_ops() if not op.internal} == recorded


def test_every_differentiable_op_has_gradients_somewhere() -> None:
    found = {
        vector["id"].split("/")[2]
        for vector in EVERYTHING
        if vector["id"].startswith("ops/") and "gradients" in vector["text"]
    }
    wanted = {op.name for op in all_ops() if op.grad_fn and not op.internal and op.base is None and op.mutates != 0}
    assert len(wanted & found) > 0.8 * len(wanted), sorted(wanted - found)


def test_every_message_type_and_field_is_there() -> None:
    messages = [vector["message"] for vector in group("envelope") if "message" in vector]
    kinds = {*FromClient.__args__, *FromServer.__args__}
    assert {message["type"] for message in messages} == {kind.__struct_config__.tag for kind in kinds}
    for kind in kinds:
        sent = {field for m in messages if m["type"] == kind.__struct_config__.tag for field in m}
        assert set(kind.__struct_fields__) - {"buffers"} <= sent, kind
    online = {
        each["type"]
        for vector in group("stream")
        for each in parts(vector)
        if isinstance(each, dict) and "type" in each
    }
    assert {kind.__struct_config__.tag for kind in kinds} <= online


def test_every_field_of_a_frame_is_sent_and_every_one_of_an_answer_expected() -> None:
    fields = {
        name
        for name in ("http", "stream")
        for vector in group(name)
        for each in parts(vector)
        if isinstance(each, dict)
        for name in each
    }
    assert set(Frame.__struct_fields__) - {"buffers"} <= fields | {"hash"}
    assert set(Reply.__struct_fields__) - {"buffers"} <= fields
    assert set(Welcome.__struct_fields__) - {"durability"} <= fields  # the target's own


def test_every_error_code_is_provoked_or_has_a_document_that_says_why_not() -> None:
    found = {vector["problem"]["code"]: vector for vector in group("errors")}
    assert set(BY_CODE) <= set(found)
    ids = {vector["id"]: vector for vector in EVERYTHING}
    for code in BY_CODE:
        if code in WHY:
            assert found[code]["document_only"]
        else:
            assert found[code]["provoked_by"]
            for each in found[code]["provoked_by"]:
                assert any(
                    isinstance(part, dict) and code in (part.get("code"), part.get("error"))
                    for part in parts(ids[each])
                )
    assert set(WHY) == {
        "internal", "out_of_memory", "unavailable", "connection_lost", "worker_died", "journal_damaged",
        "collective_failed",
    }  # fmt: skip


def test_every_dtype_and_every_kind_of_argument_is_there() -> None:
    assert {vector["dtype"] for vector in group("values")} == {dtype.name for dtype in dtypes.ALL}
    kinds = {param.kind for op in all_ops() for param in op.params}
    assert kinds == set(Kind)
    tags = {tag for vector in group("records") for each in vector["arguments"].values() if each for tag in each}
    assert tags == {"tensor", "tensors", "bool", "int", "float", "complex", "payload", "value"}


def test_a_client_in_javascript_reads_the_same_numbers() -> None:
    numbers = [part for part in parts(EVERYTHING) if type(part) is int]
    assert max(map(abs, numbers)) <= 2**53


# Freshness and freezing


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a few vectors, which are all that is derived."""
    few = {"values": STORED["values"][:6], "errors": STORED["errors"][:3]}
    monkeypatch.setattr(derivation, "derived", lambda stored: json.loads(json.dumps(few)))
    derivation.update(tmp_path)
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["--folder", str(folder), *arguments])
    return done.exit_code, done.output


def change(folder: Path, find: str, put: str) -> None:
    path = folder / "values.json"
    text = path.read_text()
    assert find in text
    path.write_text(text.replace(find, put, 1))


def test_what_was_written_is_fresh(own: Path) -> None:
    assert run(own, "--check") == (0, "")
    assert derivation.update(own) == []


def test_a_changed_a_missing_and_a_superfluous_vector_are_told_and_put_right(own: Path) -> None:
    path, lines = own / "values.json", (own / "values.json").read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1].replace('"bytes": "0001"', '"bytes": "0101"'), *lines[3:]]) + "\n")
    (own / "spare.json").write_text('{"vectors": []}')
    code, output = run(own, "--check")
    assert code == 1
    assert "values/bool/plain does not hold" in output
    assert f"{STORED['values'][1]['id']} is missing" in output
    assert run(own)[0] == 0
    assert run(own, "--check") == (0, "")


def test_a_manifest_that_tells_something_else_is_stale(own: Path) -> None:
    (own / "manifest.json").write_text('{"releases": {}}')
    assert run(own, "--check") == (1, "manifest.json does not tell what is there\n")


def test_numbers_that_differ_within_the_tolerance_are_kept_as_they_are() -> None:
    old = {"id": "a", "expect": {"values": [{"dtype": "float32", "values": [1.0, "NaN"]}]}, "rtol": 1e-4, "atol": 0.0}
    near, far = json.loads(json.dumps(old)), json.loads(json.dumps(old))
    near["expect"]["values"][0]["values"][0], far["expect"]["values"][0]["values"][0] = 1.00005, 1.001
    assert store.same(old, near)
    assert not store.same(old, far)
    assert store.merged({"g": [old]}, {"g": [near]}, {}) == {"g": [old]}
    assert store.merged({"g": [old]}, {"g": [far]}, {}) == {"g": [far]}


def test_a_release_is_frozen_once(own: Path) -> None:
    assert run(own, "--freeze", "1.0")[0] == 0
    assert store.releases(own)["1.0"]["values"]["vectors"] == 6
    assert "frozen already" in run(own, "--freeze", "1.0")[1]


def test_a_frozen_vector_does_not_change(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(own, "--freeze", "1.0")
    other = {
        "values": [STORED["values"][0] | {"bytes": "0101"}, *STORED["values"][1:6]],
        "errors": STORED["errors"][:3],
    }
    monkeypatch.setattr(derivation, "derived", lambda stored: other)
    before = (own / "values.json").read_text()
    code, output = run(own)
    assert code == 1
    assert "frozen vectors no longer hold: values/bool/plain" in output
    assert (own / "values.json").read_text() == before
    assert run(own, "--check")[0] == 1


def test_a_frozen_vector_is_neither_edited_nor_removed_by_hand(own: Path) -> None:
    run(own, "--freeze", "1.0")
    change(own, "bool: both", "bool: the two of them")
    code, output = run(own, "--check")
    assert code == 1
    assert "values.json no longer begins with the 6 vectors of release 1.0" in output
    assert run(own)[0] == 1


def test_vectors_are_added_after_the_frozen_ones(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(own, "--freeze", "1.0")
    more = {"values": [STORED["values"][7], *STORED["values"][:6]], "errors": STORED["errors"][:3]}
    monkeypatch.setattr(derivation, "derived", lambda stored: more)
    assert run(own)[0] == 0
    assert [vector["id"] for vector in store.read(own)["values"]] == [
        v["id"] for v in [*STORED["values"][:6], STORED["values"][7]]
    ]
    assert run(own, "--check") == (0, "")


def test_the_releases_in_the_manifest_are_there() -> None:
    assert list(store.broken(STORED, store.releases(store.FOLDER))) == []
