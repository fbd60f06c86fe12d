"""Every op with some mapped operands and otherwise arbitrary arguments: results, or typed errors."""

from __future__ import annotations

import msgspec
import pytest

import gradwire_protocol.ops  # noqa: F401  (fills the table)
from gradwire_engine.runtime.memory import Limits
from gradwire_engine.session.session import Session
from gradwire_protocol.frames import Frame, Payload
from gradwire_protocol.table import TABLE
from tests.engine.test_plausible_frames import COUNT, Draw, record

ROUNDS = 40
OPERANDS = [
    ["ones", [[2, 2, 3]]],
    ["batch", [0, 0, 1, "different"]],
    ["arange", [2]],
    ["batch", [2, 0, 1]],
    ["ones", [[2, 3, 2], "float64"]],
    ["batch", [4, 2, 1, "same"]],
    ["ones", [[2, 3], "bool"]],
    ["batch", [6, 1, 2]],
    ["ones", [[3, 2, 2, 3]]],
    ["requires_grad_", [8]],
    ["batch", [8, 0, 2]],
    ["batch", [9, 0, 1, "different"]],
    ["zeros", [[0, 2]]],
]
"""``batch`` is given the numbers of results, which ``requires_grad_`` has none of."""


@pytest.mark.parametrize("name", sorted(TABLE))
def test_mapped_operands_never_meet_a_defect(name: str) -> None:
    op = TABLE[name]
    for seed in range(ROUNDS):
        session = Session(Limits(max_tensor_bytes=1 << 22))
        made, _ = session.apply(Frame(structure=msgspec.Raw(msgspec.json.encode({"ops": OPERANDS}))), human=True)
        assert not made.errors and made.made == len(OPERANDS) - 1
        draw = Draw(seed)
        ops = [record(op, draw)]
        frame = Frame(
            structure=msgspec.Raw(msgspec.json.encode({"ops": ops})),
            external=[made.first + i % made.made for i in range(COUNT)],
            scalars=draw.scalars,
            payloads=[Payload(values=[1, 2])],
        )
        reply, _ = session.apply(frame, human=True)
        assert reply.refused is None or reply.refused.code != "internal", (ops[0], draw.scalars, reply.refused)
        defects = [p.detail for p in reply.errors if p.code == "internal"]
        assert not defects, (seed, ops[0], draw.scalars, defects)
