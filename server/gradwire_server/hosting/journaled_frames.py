"""Frames as the journal and its clients see them: encoded, refused, and what they left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from gradwire_engine.autograd.registry import BACKWARDS
from gradwire_protocol import envelope
from gradwire_protocol.errors import Cancelled, GradwireError, MalformedFrame
from gradwire_protocol.frames import Frame, Problem, Reply, Structure

from ..durable.disk import Piece

Buffers = list[memoryview]

_NO_STRUCTURE: Final = Frame().structure


def encoded(frame: Frame, buffers: Buffers, human: bool) -> Sequence[Piece]:
    """The frame as a journal record: its wire format, with a JSON structure converted to MessagePack.

    Raises:
        MalformedFrame: for numbers that MessagePack cannot represent.
    """
    if not frame.structure and frame.structure is not _NO_STRUCTURE:
        # msgspec omits the field only for the default object; other empty bytes would be invalid MessagePack.
        frame = msgspec.structs.replace(frame, structure=_NO_STRUCTURE)
    if human:
        structure = msgspec.Raw(msgspec.msgpack.encode(bytes(frame.structure)))
        frame = msgspec.structs.replace(frame, structure=structure)
    try:
        return envelope.encode(frame, buffers)
    except (OverflowError, RecursionError, TypeError, ValueError) as error:
        raise MalformedFrame(f"the journal cannot represent the frame: {error}") from None


def plain(problem: Problem) -> Problem:
    """The problem, without details that MessagePack cannot represent."""
    try:
        msgspec.msgpack.encode(problem)
    except (TypeError, OverflowError, RecursionError, ValueError):
        return msgspec.structs.replace(problem, extra={})
    return problem


def refusal(seq: int, error: GradwireError) -> Reply:
    problem = Problem(error.code, error.message, seq=seq, retryable=error.retryable, extra=error.details)
    return Reply(seq=seq, refused=problem)


def has_freed(reply: Reply, structure: Structure | None) -> bool:
    """Whether a cancelled frame may have freed a graph, the one change that is not undone."""
    if structure is None or not any(problem.code == Cancelled.code for problem in reply.errors):
        return False
    return any(record[0] == "grad" or record[0] in BACKWARDS for record in structure.ops if type(record[0]) is str)
