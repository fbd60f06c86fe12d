"""Every op with arguments of the right kinds and arbitrary values: results, or typed errors, never a defect."""

from __future__ import annotations

import random
from typing import Any, get_args, get_origin

import msgspec
import pytest

import gradwire_protocol.ops  # noqa: F401  (fills the table)
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_protocol.dtypes import DType
from gradwire_protocol.frames import Frame, Payload
from gradwire_protocol.table import TABLE, Kind, Op, Param

ROUNDS = 60
OPERANDS = [
    ["ones", [[2, 3]]],
    ["full", [[2, 3], "float"]],
    ["arange", [6]],
    ["ones", [[3, 3], "float64"]],
    ["zeros", [[]]],
    ["ones", [[0, 3]]],
    ["ones", [[2, 3], "bool"]],
    ["ones", [[4], "complex64"]],
    ["ones", [[1, 2, 4, 4], "float16"]],
    ["ones", [[2, 2, 3, 3]]],
    ["arange", [3, None, 1, "int32"]],
    ["ones", [[2, 3]]],
    ["requires_grad_", [11]],
    ["mul", [11, "float"]],
]
COUNT = 13


class Draw:
    """Arguments for an op, and the numbers that belong to them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scalars: list[Any] = []

    def tensor(self) -> int:
        return -1 - self.random.randrange(COUNT)

    def number(self) -> str:
        kind = self.random.choice(["int", "float", "bool"])
        numbers = {"int": [-2, -1, 0, 1, 2, 7, 300], "float": [-1.5, 0.0, 0.5, 2.0, "NaN"], "bool": [True, False]}
        self.scalars.append(self.random.choice(numbers[kind]))
        return kind

    def argument(self, param: Param) -> Any:
        pick = self.random
        if param.optional and pick.random() < 0.4:
            return None
        match param.kind:
            case Kind.TENSOR:
                return self.tensor()
            case Kind.OPERAND:
                return self.tensor() if pick.random() < 0.6 else self.number()
            case Kind.TENSORS:
                return [self.tensor() for _ in range(pick.randrange(4))]
            case Kind.OPTIONAL_TENSORS:
                return [self.tensor() if pick.random() < 0.7 else None for _ in range(pick.randrange(4))]
            case Kind.SCALAR:
                return self.number()
            case Kind.POSITION:
                self.scalars.append(pick.choice([-3, -1, 0, 1, 2, 9]))
                return "int"
            case Kind.PAYLOAD:
                return "payload"
        return self.attribute(pick.choice(param.check))

    def attribute(self, member: Any) -> Any:
        pick = self.random
        if get_origin(member) is tuple:
            inner = get_args(member)[0]
            return [self.attribute(inner) for _ in range(pick.randrange(4))]
        if member is DType:
            return pick.choice(["float32", "float64", "int64", "bool", "complex64", "bfloat16"])
        if member is bool:
            return pick.random() < 0.5
        if member is int:
            return pick.choice([-2, -1, 0, 1, 2, 3, 5])
        if member is float:
            return pick.choice([-1.0, 0.0, 0.5, 1.0, 2.5])
        if member is str:
            return pick.choice(["cpu", "mean", "sum", "none", "ij,jk->ik", "ij", "tanh", "reflect", "floor", "amax"])
        return None


def record(op: Op, draw: Draw) -> list[Any]:
    required = sum(p.required for p in op.params)
    count = draw.random.randint(required, len(op.params))
    args = [draw.argument(p) for p in op.params[:count]]
    return [op.name, args] if op.results is not None else [op.name, args, draw.random.randrange(1, 4)]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_plausible_arguments_never_meet_a_defect(name: str) -> None:
    op = TABLE[name]
    for seed in range(ROUNDS):
        session = Session(Limits(max_tensor_bytes=1 << 22))
        first = Frame(structure=msgspec.Raw(msgspec.json.encode({"ops": OPERANDS})), scalars=[2.5, 0.5])
        made, _ = session.apply(first, human=True)
        assert not made.errors and made.made == COUNT
        draw = Draw(seed)
        ops = [record(op, draw)]
        frame = Frame(
            structure=msgspec.Raw(msgspec.json.encode({"ops": ops})),
            external=list(range(made.first, made.first + COUNT)),
            scalars=draw.scalars,
            payloads=[Payload(values=[1, 2])],
        )
        reply, _ = session.apply(frame, human=True)
        assert reply.refused is None or reply.refused.code != "internal", (ops[0], draw.scalars, reply.refused)
        defects = [p.detail for p in reply.errors if p.code == "internal"]
        assert not defects, (seed, ops[0], draw.scalars, defects)
