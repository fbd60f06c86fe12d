"""Predicts which frames are short. The host runs a short frame in the event loop, without a thread switch.

A frame that runs in its session's thread wakes two sleeping threads, which takes longer than a small frame does. A long
frame in the event loop would block all other sessions. The prediction is "short" if the structure was short before, on
inputs of at least this size and beside a graph of about this size. It can be wrong when sizes depend on values. After a
wrong prediction, the structure must be short many times before it counts as short again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from gradwire_engine.autograd.tensor import Tensor
from gradwire_engine.session.session import Session
from gradwire_protocol.frames import Frame

SHORT_S: Final = 0.004
"""The longest time of a short frame."""

BURST_S: Final = 0.02
"""The longest total time of short frames in one iteration of the event loop. Further frames go to the thread."""

STRUCTURES_KEPT: Final = 256
MAX_OPERANDS: Final = 64
"""A frame with more operands is never short."""

MAX_NUMBERS: Final = 4096

UNHASHED_BYTES: Final = 64
"""Structures up to this length have no hash; their bytes are the key."""

SMALL_NUMBER: Final = 4096
"""Larger numbers may be sizes (``arange``)."""

MAX_STALL: Final = 20
"""A frame is not short if it takes more than this multiple of the limit, even if it used little CPU time."""

DOUBT: Final = 8
DOUBT_AT_MOST: Final = 1 << 16


class _History:
    """The past runs of one structure.

    Attributes:
        elapsed_s: the duration of the last run: CPU time, or wall time if that was very long.
        input_size: the largest input size at which a run was short.
        nodes: the largest size of the session's graph at which a run was short.
        trials: how many more short runs are needed to predict "short".
        doubt: the value of ``trials`` after a wrong prediction; doubles each time.
    """

    __slots__ = ("doubt", "nodes", "input_size", "elapsed_s", "trials")

    def __init__(self) -> None:
        self.elapsed_s = float("inf")
        self.input_size = self.nodes = 0
        self.trials = 1
        self.doubt = DOUBT


class DurationPredictor:
    """Predicts the frames of one session. Not thread-safe.

    Args:
        short_s: the longest time of a short frame.
    """

    def __init__(self, short_s: float = SHORT_S) -> None:
        self.short_s = short_s
        self._histories: OrderedDict[bytes, _History] = OrderedDict()

    def is_short(self, key: bytes, input_size: int, nodes: int) -> bool:
        """Whether a frame of this structure (:func:`key_of`) will be short with this input size
        (:func:`input_size_of`) and a graph of this size.
        """
        history = self._histories.get(key)
        return (
            history is not None
            and 0 <= input_size <= history.input_size
            and not history.trials
            and history.elapsed_s <= self.short_s
            and nodes <= history.nodes + (history.nodes >> 2)
        )

    def record(self, key: bytes, input_size: int, nodes: int, cpu_s: float, elapsed_s: float, in_loop: bool) -> None:
        """Learn from a run.

        Args:
            cpu_s: the CPU time of the run, which excludes other processes on a busy machine.
            elapsed_s: the wall time of the run.
            in_loop: whether the frame ran in the event loop, because the prediction was "short".
        """
        if not key or input_size < 0:
            return
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = _History()
            if len(self._histories) > STRUCTURES_KEPT:
                self._histories.popitem(last=False)
        history.elapsed_s = cpu_s if elapsed_s < MAX_STALL * self.short_s else elapsed_s
        if history.elapsed_s <= self.short_s:
            history.trials = max(history.trials - 1, 0)
            history.input_size, history.nodes = max(history.input_size, input_size), max(history.nodes, nodes)
        elif in_loop:
            history.trials, history.input_size, history.nodes = history.doubt, 0, 0
            history.doubt = min(2 * history.doubt, DOUBT_AT_MOST)


def input_size_of(frame: Frame, payload_bytes: int, session: Session) -> int:
    """The approximate input size of a frame: elements of its operands, bytes of its payloads, and numbers that may be
    sizes. Returns -1 for a frame that cannot be short.
    """
    if (
        len(frame.external) + len(frame.named) > MAX_OPERANDS
        or max(len(frame.scalars), len(frame.payloads)) > MAX_NUMBERS
    ):
        return -1
    found = payload_bytes
    ids = session.ids
    for tensor_id in frame.external:
        held = ids.get(tensor_id)
        if type(held) is Tensor:
            found += held.meta.numel
    for name in frame.named:
        if name in session.engine.names:
            found += session.engine.names[name].meta.numel
    for number in frame.scalars:
        if type(number) in (int, float) and number > SMALL_NUMBER:
            found += int(min(number, 1e18))
    for payload in frame.payloads:
        if payload.upload is not None:
            return -1
    return found


def key_of(frame: Frame) -> bytes:
    """The identity of a frame's structure; empty for a long one without a hash, which has no history."""
    if frame.hash:
        return frame.hash
    structure = bytes(frame.structure)
    return structure if len(structure) <= UNHASHED_BYTES else b""
