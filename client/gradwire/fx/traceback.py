"""What nodes note of the place in a program that made them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

from .node import Node

_OWN: Final = str(Path(__file__).parents[1])
_state: dict[str, Any] = {"meta": {}, "preserve": False, "replayed": None}

Function = TypeVar("Function", bound=Callable[..., Any])


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Inside of it, nodes get the meta of those that an interpreter runs when they are made."""
    before = dict(_state)
    _state.update(preserve=enable, meta=dict(_state["meta"]))
    try:
        yield
    finally:
        _state.update(before)


def has_preserved_node_meta() -> bool:
    """Whether that is so."""
    return bool(_state["preserve"])


def get_current_meta() -> dict[str, Any]:
    """The meta of the node that is run."""
    found: dict[str, Any] = _state["meta"]
    return found


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Inside of it, a node's meta is what nodes get that are made meanwhile."""
    before = _state["meta"]
    if _state["preserve"] and node.meta:
        _state["meta"] = dict(node.meta)
    try:
        yield
    finally:
        _state["meta"] = before


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Inside of it, nodes that are made while meta is preserved get these entries in ``meta["custom"]``."""
    before = _state["meta"]
    _state["meta"] = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _state["meta"] = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Function], Function]:
    """A decorator: a function that runs inside of :func:`annotate`."""

    def decorate(function: Function) -> Function:
        @wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated  # type: ignore[return-value]

    return decorate


@contextmanager
def set_current_replay_node(node: Node | None) -> Iterator[None]:
    """Inside of it, :func:`get_current_replay_node` is this node."""
    before = _state["replayed"]
    _state["replayed"] = node
    try:
        yield
    finally:
        _state["replayed"] = before


def get_current_replay_node() -> Node | None:
    """The node that :func:`set_current_replay_node` named, if one did."""
    found: Node | None = _state["replayed"]
    return found


def set_stack_trace(stack: list[str]) -> None:
    """Say where nodes come from that are made while meta is preserved."""
    if _state["preserve"] and stack:
        _state["meta"]["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Where the node comes from that is run, or the lines that run now."""
    if _state["preserve"]:
        return [_state["meta"].get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


def program_stack() -> str | None:
    """The lines of the program that run, from the first ``forward`` on; None where there is none."""
    frames = [frame for frame in traceback.extract_stack(sys._getframe(1)) if not frame.filename.startswith(_OWN)]
    first = next((i for i, frame in enumerate(frames) if frame.name == "forward"), None)
    return None if first is None else "".join(traceback.format_list(frames[first:])).strip()


__all__ = [
    "annotate", "annotate_fn", "format_stack", "get_current_meta", "get_current_replay_node",
    "has_preserved_node_meta", "preserve_node_meta", "set_current_meta", "set_current_replay_node", "set_stack_trace",
]  # fmt: skip
