"""Annotations of values."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentError

from .proxy import Proxy


def annotate(val: Any, type: Any) -> Any:
    """Give a proxy's node a type; other values have one.

    Raises:
        RuntimeError: where it has another one.
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise ArgumentError(f"node {val.node} has the type {val.node.type} already, and gets {type}")
        val.node.type = type
    return val


__all__ = ["annotate"]
