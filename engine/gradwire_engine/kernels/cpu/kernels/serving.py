"""What a thread does that works on other threads' ranges; see :mod:`..ranges`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit, types

from ....runtime.arrays import Array
from .. import ranges, threads

_BOARD: Final = types.Array(types.int64, 1, "C")

_of_board = [types.void(_BOARD)]
_prepare: Any = njit(_of_board, cache=True)(ranges.prepare)
_dismiss: Any = njit(_of_board, cache=True, nogil=True)(ranges.dismiss)
_serve: Any = njit([types.void(_BOARD, types.int64)], cache=True, nogil=True)(ranges.serve)


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
