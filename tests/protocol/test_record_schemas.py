"""Every op's arguments have a schema that agrees with samples of its calls, its rule and natural records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import torch

from gradwire_protocol import dtypes
from gradwire_protocol import ops as _ops  # noqa: F401  (fills the table)
from gradwire_protocol.choices import CHOICES, FREE, choices
from gradwire_protocol.errors import GradwireError
from gradwire_protocol.meta import Meta
from gradwire_protocol.natural_records import Defaults, NaturalRecords
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.record_schemas import arguments, component, plain, record
from gradwire_protocol.table import TABLE, Kind, Op, Param
from tests.samples import Sample, load

EXPOSED = [TABLE[name] for name in sorted(TABLE) if not TABLE[name].internal]
SAMPLED = [op for op in EXPOSED if (op.base or op).name in load() and op.name != "upload"]
CHOOSING = [
    (op, param) for op in EXPOSED for param in op.params if str in param.check and choices(op, param) is not None
]
CHECKED_BY_THE_ENGINE = {"set_float32_matmul_precision"}
CHECKED_BY_RULES = [(op, param) for op, param in CHOOSING if op.name not in CHECKED_BY_THE_ENGINE]
BY_HAND = {
    "muon_step": [{"params": [torch.ones(2, 2)], "momentum_buffers": [torch.ones(2, 2)], "lr": 0.1}],
    "batch": [{"self": torch.ones(2, 2), "dim": 0, "level": 1}],
} | {
    op.name: [
        {"self": torch.ones(2, dtype=dtype), "group": "world", "world_size": 2, "dst": 0}
        for dtype in (torch.float32, torch.int64)
    ]
    for op in EXPOSED
    if op.collective
}
"""Calls of ops without samples."""


def sampled(op: Op) -> Iterator[dict[str, Any]]:
    """The arguments of sample calls that succeed, by name."""
    for declared in load()[(op.base or op).name]:
        for dtype in (each for each in ("float32", *reversed(declared.dtypes)) if each in declared.dtypes):
            good = [sample for sample in declared.draw(dtype, 0) if not sample.expects_error]
            yield from (named(op, sample) for sample in good)
            if good:
                break


def named(op: Op, sample: Sample) -> dict[str, Any]:
    bound = op.bind(sample.args, sample.kwargs)
    return {
        param.name: value
        for param, value in zip(op.params, bound, strict=True)
        if param.required or value is not param.default
    }


def natural(value: Any) -> Any:
    """An argument as people write it in JSON: tensors by name."""
    if isinstance(value, torch.Tensor):
        return f"t{id(value)}"
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, list | tuple):
        return [natural(each) for each in value]
    return plain(value)


def described(param: Param, value: Any) -> Any:
    """An argument as a rule sees it."""
    if isinstance(value, torch.Tensor):
        dtype = dtypes.BY_NAME[str(value.dtype).removeprefix("torch.")]
        return Meta(tuple(value.shape), tuple(value.stride()), dtype, "cpu")
    if isinstance(value, list | tuple):
        inner = [described(param, each) for each in value]
        return inner if param.kind in (Kind.TENSORS, Kind.OPTIONAL_TENSORS) else tuple(inner)
    if param.kind in (Kind.SCALAR, Kind.OPERAND) and value is not None:
        return ScalarKind.of(value)
    return dtypes.BY_NAME[natural(value)] if isinstance(value, torch.dtype) else value


def complaint(op: Op, call: dict[str, Any], param: Param, text: str) -> str:
    """What the op's rule says of a text, without the text; nothing if it accepts the call."""
    chosen = {**call, param.name: text}
    values = [described(each, chosen.get(each.name, each.default)) for each in op.params]
    try:
        op.infer(values)
    except GradwireError as error:
        return error.message.replace(repr(text), "TEXT").replace(text, "TEXT")
    return ""


@pytest.mark.parametrize("op", EXPOSED, ids=lambda op: op.name)
def test_a_schema_has_every_parameter_and_its_default(op: Op) -> None:
    schema = arguments(op)
    assert list(schema["properties"]) == [param.name for param in op.params]
    assert set(schema["required"]) <= {param.name for param in op.params if param.required}
    jsonschema_rs.validator_for(schema)
    for param in op.params:
        declared = schema["properties"][param.name]
        assert declared.keys() & {"type", "anyOf"}, "any value"
        if not param.required:
            default = plain(param.default)
            assert declared.get("default") == default or (default is None and param.optional), param.name
            assert jsonschema_rs.is_valid(declared, default), param.name
    assert record(op)["title"] == component(op.name)


def test_schemas_have_names_of_their_own_in_any_spelling() -> None:
    spellings = [component(op.name).lower() for op in EXPOSED]
    assert len(set(spellings)) == len(spellings)
    assert all(each.isalnum() for each in spellings)


@pytest.mark.parametrize("op", SAMPLED, ids=lambda op: op.name)
def test_calls_satisfy_the_schema_and_are_records(op: Op) -> None:
    schema = record(op)
    validator = jsonschema_rs.validator_for(schema)
    count = 0
    for call in sampled(op):
        written = {"op": op.name, **{name: natural(value) for name, value in call.items()}}
        if op.results == 1:
            written["as"] = "result"
        elif op.results != 0:
            written["as"] = [f"result{i}" for i in range(op.results or 1)]
        assert not (errors := [error.message for error in validator.iter_errors(written)]), (call, errors)
        compact = NaturalRecords(0, {}, Defaults()).record(0, written)
        assert compact[0] == op.name
        count += 1
    assert count


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("pow", {"self": "x"}),
        ("pow", {"self": "x", "exponent": {}}),
        ("pow", {"self": "x", "exponent": 2, "exponnet": 2}),
        ("mse_loss", {"self": "x", "target": "y", "reduction": "average"}),
        ("sum", {"self": "x", "dtype": "float23"}),
        ("sum", {"self": ["x"]}),
        ("reshape", {"self": "x", "shape": [2.5]}),
        ("full", {"size": [2], "fill_value": 1, "device": "gpu"}),
    ],
)
def test_a_wrong_call_does_not_satisfy_the_schema(name: str, wrong: dict[str, Any]) -> None:
    assert not jsonschema_rs.is_valid(arguments(TABLE[name]), wrong)


def test_data_is_written_as_nested_lists() -> None:
    schema = arguments(TABLE["upload"])
    assert schema["required"] == ["data"]
    for data in (1, 2.5, True, "NaN", [], [[1, 2], [3, "Infinity"]]):
        assert jsonschema_rs.is_valid(schema, {"data": data}), data
    assert not jsonschema_rs.is_valid(schema, {"data": {"a": 1}})


def test_every_text_has_choices_or_is_free() -> None:
    texts = {param.name for op in EXPOSED for param in op.params if str in param.check and choices(op, param) is None}
    assert texts == FREE
    used = {f"{op.name}.{param.name}" for op, param in CHOOSING} | {param.name for _, param in CHOOSING}
    assert set(CHOICES) <= used


@pytest.mark.parametrize(("op", "param"), CHECKED_BY_RULES, ids=lambda each: each.name)
def test_rules_accept_the_choices_and_no_other_text(op: Op, param: Param) -> None:
    calls = BY_HAND[op.name] if op.name in BY_HAND else list(sampled(op))
    unknown = {complaint(op, call, param, "neither") for call in calls}
    assert "" not in unknown
    for text in choices(op, param) or ():
        assert "" in (found := [complaint(op, call, param, text) for call in calls]), (text, found)
