"""What a thread does that works on other threads' ranges; see :mod:`..ranges`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from ....runtime.arrays import Array
from .. import ranges, threads
from ..later import now_or_later

_BOARD: Final = types.Array(types.int64, 1, "C")

_of_board: Final = types.void(_BOARD)
_prepare: Any = now_or_later(ranges.prepare, {None: _of_board}, None)
_dismiss: Any = now_or_later(ranges.dismiss, {None: _of_board}, None, nogil=True)
_serve: Any = now_or_later(ranges.serve, {None: types.void(_BOARD, types.int64)}, None, nogil=True)


def new_board() -> Array:
    """A board on which nothing is to do."""
    board = np.zeros(ranges.BOARD_SIZE, np.int64)
    _prepare(board)
    return board


def serve(board: Array, awake_ns: int) -> None:
    """Work on what is put on the board, without the interpreter's lock, until it is dismissed."""
    _serve(board, awake_ns)


def dismiss(board: Array) -> None:
    """Let all who serve the board return."""
    _dismiss(board)


threads.work_by(threads.BoardFunctions(new_board, serve, dismiss))
