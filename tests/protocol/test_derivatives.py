"""What is declared of derivatives is what the engine's derivatives do, on every sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import gradwire_engine.ops  # noqa: F401  (fills the registry, and the table)
from gradwire_engine.autograd.registry import ROWS, Row
from gradwire_protocol.derivatives import DerivativeFacts, facts_of, leaves
from gradwire_protocol.table import TABLE, Op
from tests.derivative_tracing import trace, trace_composite, written

OPS = [op for op in TABLE.values() if op.base is None and facts_of(op) is not None]
DERIVED = sorted(n for n, r in ROWS.items() if r.has_derivative and r.op.base is None and r.op.underivable is None)
COMPOSITE = sorted(n for n, r in ROWS.items() if r.composite is not None and r.op.grad_fn is not None)

SIZES = "which steps there are depends on sizes that no test asks for"
LAYOUTS = "node names depend on how the operands lie in memory, or on an equation"
MASKS = "which steps there are depends on the mask and on dropout"
APPROXIMATE = {
    "adaptive_avg_pool_backward": SIZES, "amax": SIZES, "amin": SIZES, "contract": LAYOUTS, "einsum": LAYOUTS,
    "expand": SIZES, "flash_attention": MASKS, "linalg_householder_product": SIZES, "linalg_lu_solve": LAYOUTS,
    "lstm_layer": SIZES, "matmul": LAYOUTS, "pdist": SIZES, "rnn_layer": SIZES, "std": SIZES, "std_mean": SIZES,
    "tensordot": LAYOUTS, "var": SIZES, "var_mean": SIZES,
}  # fmt: skip
"""Ops whose declaration does not tell every call, and why."""


def declared(op: Op) -> DerivativeFacts:
    facts = facts_of(op)
    if facts is None:
        rows = {case.parameter: written(op, case.outcome) for case in trace(op.name)}
        lines = ", ".join(f'{name}="{text}"' for name, text in rows.items())
        pytest.fail(f"declare what the gradients of {op.name} are made of: @gradients({lines})")
    return facts


@pytest.mark.parametrize("name", DERIVED)
def test_gradients_are_made_as_declared(name: str) -> None:
    op = TABLE[name]
    facts = declared(op)
    cases = trace(name)
    wrong = [case for case in cases if not case.fits(case.declared(op, facts))]
    if name in APPROXIMATE:
        assert wrong, f"{name} is declared precisely: it needs no line in APPROXIMATE"
    said = "\n".join(
        f"{name}{case.sample}, the gradient by {case.parameter!r}:\n"
        f"    declared: {written(op, case.declared(op, facts))}\n"
        f"    right:    {written(op, case.outcome)}"
        for case in wrong
    )
    assert not wrong or (name in APPROXIMATE and len(wrong) < len(cases)), said
    seen, spread = {c.parameter for c in cases}, {c.parameter for c in cases if c.spread}
    assert spread <= facts.spread, f"@gradients of {name}: broadcasts={tuple(sorted(spread))}"
    assert op.elementwise or facts.spread & seen <= spread, f"@gradients of {name}: broadcasts={tuple(sorted(spread))}"


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_save_what_is_declared(name: str) -> None:
    row, facts = ROWS[name], declared(TABLE[name])
    saved = saves(row)
    one = len(row.op.differentiable) == 1 or "" in saved
    right: Any = {operand: " ".join(names) for operand, names in saved.items() if names}
    if one:
        right = " ".join(right.values())
    assert _by_operand(facts.saves, one) == _by_operand(saved, one), f"@gradients of {name}: saves={right!r}"


def saves(row: Row) -> dict[str, list[str]]:
    if row.joint is not None:
        return {"": list(row.saves)}
    if row.has_lists:
        return {"": list(dict.fromkeys(name for needs, _ in row.rules.values() for name in needs))}
    return {p: [n for n in needs if n not in row.dispensable] for p, (needs, _) in row.rules.items()}


def _by_operand(saved: dict[str, list[str]], one: bool) -> Any:
    """What is saved, whatever the order; in any case, where there is no other."""
    if one and set(saved) <= {""} | set(list(saved)[:1]):
        return sorted(n for names in saved.values() for n in names)
    return {p: sorted(names) for p, names in saved.items() if names}


@pytest.mark.parametrize("name", COMPOSITE)
def test_ops_that_are_made_of_others_depend_on_what_is_declared(name: str) -> None:
    op = TABLE[name]
    facts = declared(op)
    found: dict[tuple[str, ...], set[str]] = {}
    for case, kept in trace_composite(name):
        told = {leaf.rstrip(".!") for leaf in leaves(case.declared(op, facts))} - {"grads"}
        assert case.outcome <= told, f"{name}{case.sample}, by {case.parameter!r}: opaque({', '.join(case.outcome)})"
        assert kept <= {name for names in facts.saves.values() for name in names}, (
            f"{name}{case.sample}: saves={sorted(kept)}"
        )
        found.setdefault((case.parameter, *sorted(told)), set()).update(case.outcome)
    for (parameter, *told), reached in found.items():
        assert set(told) == reached, f"{name}, by {parameter!r}: opaque({', '.join(sorted(reached))})"


def outcomes(op: Op) -> Iterator[Any]:
    for parameter in op.differentiable:
        yield from declared(op).outcomes(parameter)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_facts_speak_of_what_there_is(op: Op) -> None:
    facts = declared(op)
    names = {p.name for p in op.params}
    assert facts.parameters == op.differentiable
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
    return declared(TABLE[name]).outcomes(parameter)


def test_some_that_are_known() -> None:
    assert [["mul", "grad0", "other"]] in outcome_of("mul", "self")
    assert outcome_of("add", "self") == ["grad0"]
    assert outcome_of("neg", "self") == [[["neg", "grad0"]]]
    assert [["cos", "self"], ["mul", "grad0", 0]] in outcome_of("sin", "self")
    assert declared(TABLE["exp"]).saves == {"self": ["result"]}
    assert declared(TABLE["mul"]).saves == {"self": ["other"], "other": ["self"]}


def test_an_in_place_form_has_the_facts_of_its_op() -> None:
    assert facts_of(TABLE["mul_"]) is facts_of(TABLE["mul"])
