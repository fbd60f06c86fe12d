"""General rules are found by trial; what no rule describes is not claimed."""

from __future__ import annotations

import pytest
from tools.derived_rules import Rule, rule_of
from tools.typescript import camel, parameters, rule, typescript_type

import gradwire_protocol.ops  # noqa: F401  fills the table
from gradwire_protocol.table import TABLE


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", Rule("broadcast", "promote")),
        ("exp", Rule("broadcast", "@0.float")),
        ("sum", Rule("reduce", "dtype|@0.summed")),
        ("var", Rule("reduce", "@0.real")),
        ("gt", Rule("broadcast", "bool")),
        ("argmax", Rule("reduce", "int64")),
        ("mse_loss", Rule("loss", "promote")),
        ("softmax", Rule("@0", "dtype|@0")),
        ("zeros", Rule("size", "dtype|default")),
        ("max_dim", Rule("reduce", "@0,int64")),
        ("matmul", Rule("?", "@0")),
    ],
)
def test_a_rule_is_found_by_trial(name: str, expected: Rule) -> None:
    assert rule_of(TABLE[name]) == expected


def test_an_in_place_form_has_the_rule_of_its_op() -> None:
    assert rule(TABLE["add_"]) == rule(TABLE["add"])


def test_nothing_is_claimed_of_ops_that_act_on_the_session() -> None:
    assert rule(TABLE["by_name"]) == Rule("?", "?")


def test_a_row_tells_data_from_structure_and_floats_from_ints() -> None:
    assert parameters(TABLE["add"]) == "self: Tensor, other: Tensor | Scalar, *, alpha: Scalar = 1"
    assert "threshold: Real = 20.0" in parameters(TABLE["softplus"])
    assert "dim: int[] | int | null = null" in parameters(TABLE["sum"])
    assert "start: Position | null = null" in parameters(TABLE["slice"])


def test_names_and_types_of_typescript() -> None:
    assert [camel(name) for name in ("log_softmax", "clamp_min_", "max_pool2d", "t")] == [
        "logSoftmax", "clampMin_", "maxPool2d", "t",
    ]  # fmt: skip
    params = {param.name: param for param in TABLE["conv2d"].params}
    assert typescript_type(TABLE["conv2d"], params["padding"]) == 'number | "valid" | "same" | readonly number[]'
