"""Waiting awake for another thread, without the interpreter's lock. Falling asleep takes longer than a short kernel."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ....runtime.arrays import Array
from ..emitter import Context
from ..native import Element
from ..threads import wait_awake_by

_declared: Any = cgutils.get_or_insert_function
_room: Any = cgutils.alloca_once
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_CLOCK: Final = getattr(time, "CLOCK_MONOTONIC", None)


@intrinsic
def _loaded(typing, board):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(data, "acquire", 8)

    return types.int64(board), emit


@intrinsic
def _clock_ns(typing):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(_I32, [_I32, ir.ArrayType(_I64, 2).as_pointer()])
        told = _declared(builder.module, kind, "clock_gettime")
        spec = _room(builder, ir.ArrayType(_I64, 2))  # seconds and nanoseconds, each of 64 bits
        builder.call(told, [_I32(_CLOCK), spec])
        parts = builder.load(spec)
        seconds = builder.mul(builder.extract_value(parts, 0), _I64(1_000_000_000))
        return builder.add(seconds, builder.extract_value(parts, 1))

    return types.int64(), emit


@intrinsic
def _stored(typing, board, value):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.store_atomic(args[1], data, "release", 8)
        return context.get_dummy_value()

    return types.void(board, types.int64), emit


_load: Any = _loaded
_store: Any = _stored
_now: Any = _clock_ns

_NOWHERE: Final = np.zeros(1, np.int64)
_BOARD: Final = types.Array(types.int64, 1, "C")


@njit([types.boolean(_BOARD, types.int64, types.int64, types.int64, _BOARD)], cache=True, nogil=True)
def _changed(board: Element, known: int, patience_ns: int, pause_ns: int, done: Element) -> bool:
    _store(done, 1)
    now = _now()
    until = now + patience_ns
    while _load(board) == known:
        now = _now()
        if now > until:
            return False
    until = now + pause_ns
    while now < until:
        now = _now()
    return True


def changed(board: Array, known: int, patience_ns: int, pause_ns: int = 0, done: Any = None) -> bool:
    """Whether ``board[0]`` (int64) has another value than ``known``, at once or within so many nanoseconds.

    To ask for the interpreter's lock while another thread has it is to fall asleep. So this one waits without it:

    Args:
        pause_ns: for so long after the change, until whoever made it has let the lock go.
        done: a board on which 1 is written first, when this thread has let it go.
    """
    return bool(_changed(board, known, patience_ns, pause_ns, _NOWHERE if done is None else done))


wait_awake_by(changed)
