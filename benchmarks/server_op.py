"""The server's cost of one small op, from the bytes of its frame on: decode, check, run, record history.

This runs in one process, with the server's garbage collector settings and no network.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import torch

from gradwire_engine.session.session import Session
from gradwire_protocol import envelope
from gradwire_protocol.frames import Frame, Structure, structure_hash

from .report import Plan, Row, Target
from .timing import interleave, seconds

LIMIT_US: Final = 25.0
MANY: Final = 100


def frames(session: Session, ops: int, history: bool) -> tuple[bytes, bytes]:
    """A message of this many multiplications of 2x2 tensors: with its structure, and with the hash alone.

    The frame drops its results. Number 0 means the next one, so the bytes can be applied repeatedly.
    """
    client = session.new_client()
    first = client << 32
    make = [["ones", [[2, 2]]], ["ones", [[2, 2]]]]
    switch = [["requires_grad_", [0, True]]] if history else []
    made, _ = session.apply(Frame(client=client, first=first + 1, structure=raw(Structure(ops=make + switch))))
    assert made.refused is None, made.refused
    assert not made.errors, made.errors
    record = ["mul", [-1, -2]]
    structure = raw(Structure(ops=[record] * ops, drops=list(range(ops))))
    facts = {"client": client, "first": first + 3, "external": [first + 1, first + 2], "ack": 2**53 - 1}
    key = structure_hash(bytes(structure))
    whole = Frame(structure=structure, hash=key, **facts)
    known = Frame(hash=key, **facts)
    return tuple(envelope.join(envelope.encode(frame)) for frame in (whole, known))  # type: ignore[return-value]


def run(plan: Plan) -> Iterator[Row]:
    """Frames of one op and of a hundred, known and new."""
    torch.set_num_threads(1)
    x, w = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)

    def local() -> None:
        for _ in range(MANY):
            w * x

    with collector_of_a_server():
        session = Session()
        many_whole, many_known = frames(session, MANY, history=True)
        one_whole, one_known = frames(session, 1, history=True)
        cases: list[tuple[str, bytes, int]] = [
            (f"in a frame of {MANY}, seen before", many_known, MANY),
            (f"in a frame of {MANY}, new", many_whole, MANY),
            ("in a frame of its own, seen before", one_known, 1),
            ("in a frame of its own, new", one_whole, 1),
        ]
        for message in (many_whole, one_whole):
            apply(session, message)
        for name, message, ops in cases:
            repeats = plan.of(1000 // ops, 1)
            sides: dict[str, Callable[[], float]] = {
                "ours": lambda m=message, r=repeats, n=ops: microseconds(session, m, r) / n,  # type: ignore[misc]
                "theirs": lambda: seconds(local) / MANY * 1e6,
            }
            found = interleave(sides, plan.rounds)
            yield Row("server_op", name, "us/op", found["ours"], found["theirs"], Target(LIMIT_US))


def apply(session: Session, message: bytes) -> None:
    """Apply a frame from its bytes.

    Raises:
        RuntimeError: with its first error.
    """
    frame, buffers = envelope.decode(message)
    reply, _ = session.apply(frame, buffers)  # type: ignore[arg-type]
    if reply.refused is not None or reply.errors:
        raise RuntimeError(f"the frame did not run: {reply.refused or reply.errors[0]}")


def microseconds(session: Session, message: bytes, repeats: int) -> float:
    """The average time to apply a frame from its bytes."""

    def several() -> None:
        for _ in range(repeats):
            apply(session, message)

    return seconds(several) / repeats * 1e6


def raw(structure: Structure) -> Any:
    """An encoded structure."""
    return msgspec.Raw(envelope.encode_part(structure))


@contextmanager
def collector_of_a_server() -> Iterator[None]:
    """The server's garbage collector settings, during a ``with``."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
