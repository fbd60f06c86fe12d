"""What the ops around ``vmap`` do. The rules of all others are in :mod:`gradwire_engine.autograd.vmap`."""

from __future__ import annotations

from ..autograd.registry import control
from ..autograd.vmap.controls import batch, unbatch

control("batch")(batch)
control("unbatch")(unbatch)
