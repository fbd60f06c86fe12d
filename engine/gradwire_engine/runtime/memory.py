"""What a session's tensors occupy, and the limits that are checked before anything is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gradwire_protocol.bounds import MAX_DECODED_BYTES
from gradwire_protocol.errors import LimitExceeded
from gradwire_protocol.meta import Meta


@dataclass(frozen=True)
class Limits:
    """Bounds of one session. Sizes in bytes.

    Attributes:
        max_tensor_bytes: the largest single result.
        max_session_bytes: all storages of the session together.
        max_tensors: live tensor ids.
        max_graph_nodes: nodes of the live autograd graph.
        max_ops_per_frame: records in one frame.
        max_read_bytes: values of one reply together.
        max_op_work: multiply-adds, or steps of as much work, of one op (see :mod:`.work`); 0 for no limit.
        max_frame_seconds: time for the records of one frame (see :mod:`.deadline`); 0 for no limit.
        max_decoded_bytes: what a structure, or the values of a reply as nested lists, may take as objects.
        plans: whether frames that were seen before run as plans: 1 or 0.
    """

    max_tensor_bytes: int = 4 << 30
    max_session_bytes: int = 8 << 30
    max_tensors: int = 1_000_000
    max_graph_nodes: int = 2_000_000
    max_ops_per_frame: int = 200_000
    max_read_bytes: int = 4 << 30
    max_op_work: int = 20_000_000_000_000
    max_frame_seconds: int = 600
    max_decoded_bytes: int = MAX_DECODED_BYTES
    plans: int = 1


UNLIMITED: Final = Limits(
    max_tensor_bytes=1 << 62, max_session_bytes=1 << 62, max_graph_nodes=1 << 62, max_op_work=0, max_frame_seconds=0,
    max_decoded_bytes=1 << 62,
)  # fmt: skip
"""For what was allowed before and is done again."""


class MemoryAccount:
    """Counts the bytes of live storages and refuses what would pass a limit.

    Attributes:
        frame: how many frames were begun; a storage remembers it.
    """

    __slots__ = ("frame", "limits", "live", "nodes", "peak")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.live = 0
        self.peak = 0
        self.nodes = 0
        self.frame = 0

    def fits(self, nbytes: int) -> bool:
        """Whether a result of this size may be made; :meth:`check` says why not."""
        limits = self.limits
        return nbytes <= limits.max_tensor_bytes and self.live + nbytes <= limits.max_session_bytes

    def check(self, nbytes: int, what: str) -> None:
        """Check that a result of this size may be made.

        Raises:
            LimitExceeded: naming the size, the limit and its setting.
        """
        limits = self.limits
        if nbytes > limits.max_tensor_bytes:
            raise LimitExceeded(
                f"{what} needs {nbytes:,} bytes; the limit of a tensor is {limits.max_tensor_bytes:,} "
                "(GRADWIRE_MAX_TENSOR_BYTES)",
                setting="GRADWIRE_MAX_TENSOR_BYTES", limit=limits.max_tensor_bytes, value=nbytes,
            )  # fmt: skip
        if self.live + nbytes > limits.max_session_bytes:
            raise LimitExceeded(
                f"{what} needs {nbytes:,} bytes, but the session holds {self.live:,} of "
                f"{limits.max_session_bytes:,} (GRADWIRE_MAX_SESSION_BYTES); release tensors",
                setting="GRADWIRE_MAX_SESSION_BYTES", limit=limits.max_session_bytes, value=self.live + nbytes,
            )  # fmt: skip

    def check_op(self, name: str, outs: Sequence[Meta], scratch: int) -> None:
        """Check that all results of an op, and what its kernel needs beside them, fit together.

        Raises:
            LimitExceeded: naming what does not.
        """
        together = scratch
        for out in outs:
            self.check(out.nbytes, f"the result of {name}, {out!r},")
            together += max(out.nbytes, 0)
        if scratch:
            self.check(scratch, f"the working memory of {name}")
        if self.live + together > self.limits.max_session_bytes:
            raise LimitExceeded(
                f"{name} needs {together:,} bytes for its results and working memory, but the session holds "
                f"{self.live:,} of {self.limits.max_session_bytes:,} (GRADWIRE_MAX_SESSION_BYTES); release tensors",
                setting="GRADWIRE_MAX_SESSION_BYTES", limit=self.limits.max_session_bytes, value=self.live + together,
            )  # fmt: skip

    def check_nodes(self) -> None:
        if self.nodes > self.limits.max_graph_nodes:
            raise LimitExceeded(
                f"the autograd graph has {self.nodes:,} nodes, more than {self.limits.max_graph_nodes:,} "
                "(GRADWIRE_MAX_GRAPH_NODES); call backward or drop results that require grad",
                setting="GRADWIRE_MAX_GRAPH_NODES", limit=self.limits.max_graph_nodes, value=self.nodes,
            )  # fmt: skip

    def reset_peak(self) -> None:
        """Let the peak be what is held now."""
        self.peak = self.live

    def add(self, nbytes: int) -> None:
        self.live += nbytes
        if self.live > self.peak:
            self.peak = self.live
