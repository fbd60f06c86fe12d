"""The error vocabulary: problems as they arrive, and what a client makes of them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import Final

from gradwire.cli.conformance.vectors import Vector
from gradwire_protocol.errors import BY_CODE, from_code

WHY: Final = {
    "internal": "a defect of the server", "out_of_memory": "needs a machine whose memory is full",
    "unavailable": "needs a server that stops or is overloaded",
        "connection_lost": "the client's own: no server answers",
    "worker_died": "needs a worker process that dies at each try", "journal_damaged": "needs a damaged file",
    "collective_failed": "needs a group with another rank, which fails",
}  # fmt: skip
"""Codes that no request provokes on a server in order, so that a client can only be tested by a document."""


def vectors(others: Iterable[Vector]) -> Iterator[Vector]:
    """The group. ``others``: all other vectors, among which those that provoke a code are looked up."""
    provoking: dict[str, list[str]] = {}
    for vector in others:
        for code in set(_codes(vector)):
            provoking.setdefault(code, []).append(vector["id"])
    for code, cls in sorted(BY_CODE.items()):
        problem = {
            "code": code, "detail": f"{code}: what happened", "op": "add", "seq": 3, "index": 1,
            "retryable": cls.retryable, "extra": {"limit": 10},
        }  # fmt: skip
        error = from_code(code, str(problem["detail"]))
        found: Vector = {
            "id": f"errors/{code}", "text": " ".join((cls.__doc__ or "").split()).split(". ")[0].rstrip("."),
            "problem": problem, "code": error.code, "class": type(error).__name__, "status": cls.status,
            "builtin": next(base.__name__ for base in cls.__mro__ if base.__module__ == builtins.__name__),
            "retryable": cls.retryable,
        }  # fmt: skip
        if code in WHY:
            found["document_only"] = WHY[code]
        else:
            found["provoked_by"] = provoking[code][:3]
        yield found
    yield {
        "id": "errors/unknown", "text": "A code that this client does not know is an internal error with that code",
        "problem": {"code": "of_a_later_version", "detail": "something new"}, "code": "internal",
        "class": type(from_code("of_a_later_version", "")).__name__, "status": 500, "builtin": "RuntimeError",
        "retryable": False, "document_only": "no server of this version sends it",
    }  # fmt: skip


def _codes(value: object) -> Iterator[str]:
    """The error codes that a vector expects."""
    if isinstance(value, dict):
        code = value.get("code")
        if isinstance(code, str):
            yield code
        for each in value.values():
            yield from _codes(each)
    elif isinstance(value, list):
        for each in value:
            yield from _codes(each)
