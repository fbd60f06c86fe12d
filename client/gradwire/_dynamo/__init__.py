"""``torch._dynamo``: PyTorch's reader of bytecode, which gradwire lacks: ``torch.compile`` replays what was recorded.

What only tells the compiler something is accepted without effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .._core.compiling.function import compile
from .._core.surface import stand_ins
from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)
from . import config, eval_frame, exc, external_utils, utils
from .eval_frame import OptimizedModule, is_dynamo_supported, is_inductor_supported

Anything = TypeVar("Anything")

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
           "disable_nested_graph_breaks", "disallow_in_graph", "dont_skip_tracing", "error_on_graph_break",
           "eval_frame", "exc", "explain", "export", "external_utils", "forbid_in_graph", "graph_break",
           "is_compiling", "is_dynamo_supported", "is_inductor_supported", "list_backends", "lookup_backend",
           "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize",
           "optimize_assert", "patch_dynamo_config", "register_backend", "replay", "reset", "run", "set_stance",
           "skip_frame", "substitute_in_graph", "utils"]  # fmt: skip


def graph_break(msg: str = "") -> None:
    """Without effect: there is no graph to break."""


def skip_frame(msg: str = "") -> None:
    """Without effect: Python runs every frame."""


def disallow_in_graph(fn: Anything) -> Anything:
    """The function, unchanged."""
    return fn


def forbid_in_graph(fn: Anything) -> Anything:
    """The function, unchanged."""
    return fn


def dont_skip_tracing(fn: Any = None) -> Any:
    """The function, unchanged."""
    return (lambda function: function) if fn is None else fn


def nonstrict_trace(traceable_fn: Anything) -> Anything:
    """The function, unchanged."""
    return traceable_fn


def disable_nested_graph_breaks(fn: Any = None) -> Any:
    """The function, unchanged."""
    return (lambda function: function) if fn is None else fn


@contextmanager
def error_on_graph_break(error_on_graph_break: bool) -> Iterator[None]:
    """``with`` without effect: there is no graph to break."""
    yield


def mark_dynamic(t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None,
                 max: int | None = None, specialize_on: Any = None) -> None:  # fmt: skip
    """Without effect: calls with other shapes are recorded for themselves."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Without effect: calls with other shapes are recorded for themselves."""


def mark_unbacked(t: Any, index: Any, *_: Any, **__: Any) -> None:
    """Without effect: calls with other shapes are recorded for themselves."""


def mark_static(t: Any, index: Any = None) -> None:
    """Without effect: shapes are static."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Without effect: the server decides where memory is."""


def optimize(backend: Any = "inductor", *_: Any, nopython: bool = False, dynamic: bool | None = None,
             disable: bool = False, **__: Any) -> Callable[[Any], Any]:  # fmt: skip
    """A decorator like ``torch.compile``; ``nopython`` is its ``fullgraph``."""
    return lambda model: model if disable else compile(model, fullgraph=nopython, dynamic=dynamic)


def optimize_assert(backend: Any = "inductor", *_: Any, **__: Any) -> Callable[[Any], Any]:
    """A decorator like ``torch.compile(fullgraph=True)``."""
    return optimize(backend, nopython=True)


def run(fn: Any = None) -> Any:
    """The function, unchanged: it runs as it is compiled."""
    return (lambda function: function) if fn is None else fn


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """The function, unchanged. It is never called: ``torch.compile`` ignores its backend."""
    return (lambda function: function) if compiler_fn is None else compiler_fn


patch_dynamo_config: Callable[..., Any] = vars(config)["patch"]

stand_ins.fill(
    __name__,
    ("bytecode_debugger", "explain", "export", "lookup_backend", "replay", "step_unsupported"),
    "torch.compile replays what was recorded; its result has explain() and stats()",
)
