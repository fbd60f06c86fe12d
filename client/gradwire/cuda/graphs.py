"""``torch.cuda.graphs``: recordings of work on a GPU, which ``torch.compile`` makes here."""

from __future__ import annotations

from typing import Any

from gradwire_protocol.errors import ArgumentTypeError

from .._core.surface import stand_ins

__all__ = ["is_current_stream_capturing", "make_graphed_callables"]


def is_current_stream_capturing() -> bool:
    """False: gradwire has no user-visible CUDA graphs."""
    return False


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """The functions or modules themselves: the server makes graphs of work that repeats.

    Raises:
        ArgumentTypeError: for what cannot be called.
    """
    for one in callables if isinstance(callables, tuple) else (callables,):
        if not callable(one):
            raise ArgumentTypeError(f"make_graphed_callables takes functions and modules, not {one!r:.60}")
    return callables


stand_ins.fill(
    __name__, ("CUDAGraph", "graph", "graph_pool_handle"),
    "torch.compile replays what was recorded, and the server makes graphs of work that repeats",
)  # fmt: skip
