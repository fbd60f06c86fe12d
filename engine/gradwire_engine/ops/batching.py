"""What the ops around ``vmap`` do. The rules of all others are in :mod:`gradwire_engine.batching`."""

from __future__ import annotations

from ..batching.controls import batch, unbatch
from ..registry import control

control("batch")(batch)
control("unbatch")(unbatch)
