"""How long a frame will take, as far as its past tells: a short one is run where it arrived, in the event loop.

Handing a frame to its session's thread and the reply back wakes two sleeping threads, which takes longer than a small
frame does. An event loop that runs a long frame answers nobody meanwhile. So a frame is taken for short if its
structure was short before, on operands that were as large, beside a graph that was about as large. That can be wrong
where sizes depend on values: such a structure has to be short many times again before it is believed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from gradwire_engine.session import Session
from gradwire_engine.tensor import Tensor
from gradwire_protocol.frames import Frame

SHORT_S: Final = 0.004
"""What a frame may take that is run in the event loop."""

BURST_S: Final = 0.02
"""What such frames may take together before the loop looks after others. Those that come then are a flood, and the
thread's."""

STRUCTURES_KEPT: Final = 256
OPERANDS_LOOKED_AT: Final = 64
"""A frame that mentions more tensors is not a small one."""

NUMBERS_LOOKED_AT: Final = 4096

UNHASHED_BYTES: Final = 64
"""Structures up to this length travel without a hash, and are their own."""

SMALL_NUMBER: Final = 4096
"""Numbers above may be sizes (``arange``)."""

ASLEEP: Final = 20
"""What takes this many times as long as a short frame may was not short, whatever it did in that time."""

DOUBT: Final = 8
DOUBT_AT_MOST: Final = 1 << 16


class _Past:
    """Runs of one structure.

    Attributes:
        took: seconds of the last run, as far as they were its own.
        reach: the largest size of operands at which it was short.
        nodes: and the most nodes of the session's graph.
        trials: short runs that it takes until it is believed.
        doubt: what ``trials`` becomes when it was wrong; doubles each time.
    """

    __slots__ = ("doubt", "nodes", "reach", "took", "trials")

    def __init__(self) -> None:
        self.took = float("inf")
        self.reach = self.nodes = 0
        self.trials = 1
        self.doubt = DOUBT


class Foresight:
    """What is known of the frames of one session. For one thread at a time.

    Args:
        short_s: what counts as short.
    """

    def __init__(self, short_s: float = SHORT_S) -> None:
        self.short_s = short_s
        self._pasts: OrderedDict[bytes, _Past] = OrderedDict()

    def short(self, frame: Frame, reach: int, nodes: int) -> bool:
        """Whether a frame will be short, with operands of this size (:func:`reach_of`) and this many nodes about."""
        past = self._pasts.get(_identity(frame))
        return (
            past is not None
            and 0 <= reach <= past.reach
            and not past.trials
            and past.took <= self.short_s
            and nodes <= past.nodes + (past.nodes >> 2)
        )

    def ran(self, frame: Frame, reach: int, nodes: int, worked: float, took: float, here: bool) -> None:
        """Learn from a frame.

        Args:
            worked: seconds of the processor that it took. Those that pass are others' as well, on a busy machine.
            took: seconds that passed.
            here: it was believed to be short.
        """
        key = _identity(frame)
        if not key or reach < 0:
            return
        past = self._pasts.get(key)
        if past is None:
            past = self._pasts[key] = _Past()
            if len(self._pasts) > STRUCTURES_KEPT:
                self._pasts.popitem(last=False)
        past.took = worked if took < ASLEEP * self.short_s else took
        if past.took <= self.short_s:
            past.trials = max(past.trials - 1, 0)
            past.reach, past.nodes = max(past.reach, reach), max(past.nodes, nodes)
        elif here:
            past.trials, past.reach, past.nodes = past.doubt, 0, 0
            past.doubt = min(2 * past.doubt, DOUBT_AT_MOST)


def reach_of(frame: Frame, brings: int, session: Session) -> int:
    """About how much a frame begins with: elements of its operands, ``brings`` bytes of payloads, and what numbers may
    ask for.

    Returns -1 for a frame that cannot be small.
    """
    if len(frame.external) > OPERANDS_LOOKED_AT or max(len(frame.scalars), len(frame.payloads)) > NUMBERS_LOOKED_AT:
        return -1
    found = brings
    ids = session.ids
    for tensor_id in frame.external:
        held = ids.get(tensor_id)
        if type(held) is Tensor:
            found += held.numel
    for number in frame.scalars:
        if type(number) in (int, float) and number > SMALL_NUMBER:
            found += int(min(number, 1e18))
    for payload in frame.payloads:
        if payload.upload is not None:
            return -1
    return found


def _identity(frame: Frame) -> bytes:
    if frame.hash:
        return frame.hash
    structure = bytes(frame.structure)
    return structure if len(structure) <= UNHASHED_BYTES else b""
