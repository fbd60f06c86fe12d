"""The facts of derivatives: there are some for every op that can be differentiated, and they make sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import gradwire_engine.ops  # noqa: F401  (fills the registry, and the table)
from gradwire_engine.registry import ROWS
from gradwire_protocol.derivatives import facts_of, leaves
from gradwire_protocol.table import TABLE, Op

OPS = [op for op in TABLE.values() if facts_of(op) is not None and op.base is None]


def test_every_op_with_a_derivative_has_facts() -> None:
    known = {op.name for op in OPS}
    told = {
        name for name, row in ROWS.items() if row.op.grad_fn is not None and row.op.base is None and row.has_derivative
    }
    assert told <= known


def outcomes(op: Op) -> Iterator[Any]:
    facts = facts_of(op)
    assert facts is not None
    for parameter in facts.gradients:
        yield from facts.outcomes(parameter)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_facts_speak_of_what_there_is(op: Op) -> None:
    facts = facts_of(op)
    assert facts is not None
    names = {p.name for p in op.params}
    assert facts.gradients.keys() <= op.differentiable
    assert {n for saved in facts.saves.values() for n in saved if not n.startswith("result")} <= names
    for outcome in outcomes(op):
        for leaf in leaves(outcome):
            assert leaf.rstrip(".!") in names or leaf.startswith(("grad", "result"))
        for number, (told, *inputs) in enumerate(outcome if isinstance(outcome, list) else ()):
            assert told.partition(":")[0] in {*TABLE, ""}
            for i in inputs:
                step = i[0] if isinstance(i, list) else i
                assert not isinstance(step, int) or 0 <= step < number


def outcome_of(name: str, parameter: str) -> list[Any]:
    facts = facts_of(TABLE[name])
    assert facts is not None
    return facts.outcomes(parameter)


def test_some_that_are_known() -> None:
    assert [["mul", "grad0", "other"]] in outcome_of("mul", "self")
    assert outcome_of("add", "self") == ["grad0"]
    assert outcome_of("neg", "self") == [[["neg", "grad0"]]]
    assert [["cos", "self"], ["mul", "grad0", 0]] in outcome_of("sin", "self")
    exp, mul = facts_of(TABLE["exp"]), facts_of(TABLE["mul"])
    assert exp is not None and mul is not None
    assert exp.saves == {"self": ["result"]}
    assert mul.saves == {"self": ["other"], "other": ["self"]}


def test_an_in_place_form_has_the_facts_of_its_op() -> None:
    assert facts_of(TABLE["mul_"]) is facts_of(TABLE["mul"])
