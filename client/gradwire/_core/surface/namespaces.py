"""The namespaces of functions beside the main one: ``linalg``, ``fft``, ``special``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradwire_protocol.table import TABLE

from .methods import function_of


def offered_in(namespace: str) -> dict[str, Callable[..., Any]]:
    """The functions that the op table exposes in a namespace, by the name they have there.

    An op ``linalg_qr`` with ``exposed=("linalg",)`` is ``gradwire.linalg.qr``. An op whose name has no such prefix
    (``erf`` in ``special``) keeps its name.
    """
    found = {}
    for op in TABLE.values():
        if namespace in op.exposed:
            found[op.name.removeprefix(namespace + "_")] = function_of(op)
    return found
