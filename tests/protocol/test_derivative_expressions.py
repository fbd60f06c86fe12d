"""Expressions of gradients: what they stand for, and that what makes no sense is refused."""

from __future__ import annotations

from typing import Any

import pytest

import gradwire_protocol.ops  # noqa: F401  (fills the table)
from gradwire_protocol.derivative_expressions import Expressions
from gradwire_protocol.table import TABLE, gradients


def tree(text: str, op: str = "mul", by: str = "self") -> Any:
    return Expressions(TABLE[op], {by: text}).tree(by)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("grad", "grad0"),
        ("c", []),
        ("2", []),
        ("-grad", [["neg", "grad0"]]),
        ("1 - self", [["rsub:RsubBackward1", "self", None]]),
        ("sub(c, self)", [["sub", None, "self"]]),
        ("self ** 2", [["pow:PowBackward0", "self", None]]),
        ("cos(self) * grad", [["cos", "self"], ["mul", 0, "grad0"]]),
        ("sum_dim(grad)", [["sum:SumBackward1", "grad0"]]),
        ("sum.SumBackward0(grad)", [["sum", "grad0"]]),
        ("linalg_eigh(self)[1]", [["linalg_eigh", "self"], [":", [0, 1]]]),
        ("cat((grad, self), ())", [["cat", "grad0", "self"]]),
        ("opaque(self)", [[":MulBackward0", "grads", "self"]]),
        ("opaque", [[":MulBackward0", "grads", "self", "other"]]),
    ],
)
def test_an_expression_stands_for_steps(text: str, steps: Any) -> None:
    assert tree(text) == {"is": steps}


def test_equal_steps_are_one() -> None:
    assert tree("(s := cos(self)) * s") == tree("cos(self) * cos(self)") == {"is": [["cos", "self"], ["mul", 0, 0]]}


def test_a_step_that_is_named_is_known_to_all_gradients_of_an_op() -> None:
    both = Expressions(TABLE["mul"], {"self": "(s := cos(grad)) * other", "other": "s"})
    assert both.tree("other") == {"is": [["cos", "grad0"]]}


def test_conj_is_there_for_what_is_complex() -> None:
    plain, conjugated = {"is": [["mul", "grad0", "other"]]}, {"is": [["conj", "other"], ["mul", "grad0", 0]]}
    assert tree("grad * conj(other)") == [("is_complex", "other"), True, conjugated, plain]


def test_a_gradient_that_came_in_is_as_complex_as_any_operand() -> None:
    asked = tree("conj(grad)")
    assert asked[0] == ("is_complex", "self")
    assert asked[3][0] == ("is_complex", "other")


def test_a_product_has_the_name_of_its_dimensions() -> None:
    asked = tree("self @ self", "inverse")
    assert asked[0] == ("ndim", "self", ">", 2)
    assert asked[2:] == [{"is": [["matmul", "self", "self"]]}, {"is": [["matmul:UnsafeViewBackward0", "self", "self"]]}]


def test_what_is_written_first_comes_first() -> None:
    facts = tree("c if dim is None else grad if not keepdim else -grad", "amax")
    assert facts[:3] == [("value", "dim", "==", None), True, {"is": []}]
    assert facts[3][:3] == [("value", "keepdim", "==", True), False, {"is": "grad0"}]


def test_tests_that_exclude_each_other_are_asked_once() -> None:
    asked = tree("(grad if p == 1 else -grad) * (self if p == 2 else self * self)", "norm")
    assert asked[2] == {"is": [["mul", "self", "self"], ["mul", "grad0", 0]]}


def test_the_expressions_tell_what_is_saved_and_asked() -> None:
    read = Expressions(TABLE["add"], {"self": "grad", "other": "grad * self if alpha == 1 else result"})
    assert read.saves() == {"other": ["self", "result"]}
    assert read.numbers() == {"alpha"}


def test_a_list_has_an_item_and_others() -> None:
    assert tree("contract(grad, *operands, operands)", "einsum", "operands") == {
        "is": [["contract", "grad0", "operands!", "operands."]]
    }


@pytest.mark.parametrize("text", ["grad * nothing", "[grad]", "grad if nothing(self) else c", "grad if 1 + 1 else c"])
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="gradients"):
        tree(text)


def test_gradients_stand_below_the_op() -> None:
    with pytest.raises(ValueError, match="must stand below @op"):
        gradients("grad")(TABLE["mul"].rule)
