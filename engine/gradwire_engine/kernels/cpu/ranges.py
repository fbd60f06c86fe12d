"""The ranges of a kernel, divided among threads without the interpreter's lock. Imports Numba.

A *board* is one array of int64 that the threads of a process share. It has a few *slots*; who runs a kernel opens one,
and threads that :func:`serve` join it. Each takes part after part of the range: the caller from the front, the others
from the back, so that what one kernel leaves in a core's cache is mostly there for the next. Nobody waits for a thread
that has not joined. The caller needs no thread at all, and where all slots are taken it works alone.

Everything on the board is read and written by atomic instructions in one order for all (sequentially consistent). Two
pairs rely on it: who joins is counted before it looks whether the slot is open, and a slot is closed before the count
is read; who sleeps is counted before it looks for news, and news are written before the count is read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from ...runtime.arrays import Array
from .emitter import I32, I64, Context, apart

_declared: Any = cgutils.get_or_insert_function
_room: Any = cgutils.alloca_once
_CLOCK: Final = getattr(time, "CLOCK_MONOTONIC", 1)
_BYTES: Final = ir.IntType(8).as_pointer()
_PART: Final = ir.FunctionType(I32, [_BYTES, I64, I64])
"""A kernel on a range, with its other arguments in memory; not 0 if it failed."""

LINE: Final = 16
"""Places that no two threads should write to at once are this far apart: two cache lines, of which processors fetch
pairs."""

NEWS, ASLEEP, MUTEX, CONDITION = 0, LINE, 2 * LINE, 3 * LINE
"""How often a slot was opened, how many threads sleep, and what they sleep on."""

SLOTS: Final = 8
_FIRST: Final = 4 * LINE
_SLOT: Final = 2 * LINE
BOARD_SIZE: Final = _FIRST + SLOTS * _SLOT

# Of a slot. The last three are written while threads work.
_STATE, _FUNCTION, _ARGUMENTS, _COUNT, _STEP, _MOST = range(6)
_INSIDE, _LEFT, _FAILED = LINE, LINE + 1, LINE + 2

_FREE, _CLOSED, _OPEN = range(3)

_END_BITS: Final = 32
"""``_LEFT`` holds the parts that are left: the first, and above these bits the one behind the last."""

SPINS: Final = 2_000
"""How often a thread looks for the others' end before it offers its processor to them: they may wait for one."""


# Instructions


def _place(context: Context, builder: ir.IRBuilder, kind: types.Type, array: ir.Value, index: ir.Value) -> ir.Value:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


@intrinsic
def _loaded(typing, board, index):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.load_atomic(_place(context, builder, signature.args[0], *args), "seq_cst", 8)

    return types.int64(board, types.int64), emit


@intrinsic
def _stored(typing, board, index, value):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        builder.store_atomic(args[2], _place(context, builder, signature.args[0], *args[:2]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(board, types.int64, types.int64), emit


@intrinsic
def _increased(typing, board, index, by):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        place = _place(context, builder, signature.args[0], *args[:2])
        return builder.atomic_rmw("add", place, args[2], "seq_cst")

    return types.int64(board, types.int64, types.int64), emit


@intrinsic
def _exchanged(typing, board, index, known, value):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        place = _place(context, builder, signature.args[0], *args[:2])
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst"), 1)

    return types.boolean(board, types.int64, types.int64, types.int64), emit


@intrinsic
def _nothing_done(typing):  # type: ignore[no-untyped-def]
    """An instruction that the compiler keeps in a waiting loop."""

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], True)
        return context.get_dummy_value()

    return types.void(), emit


@intrinsic
def _clock_ns(typing):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kind = ir.FunctionType(I32, [I32, ir.ArrayType(I64, 2).as_pointer()])
        told = _declared(builder.module, kind, "clock_gettime")
        spec = _room(builder, ir.ArrayType(I64, 2))  # seconds and nanoseconds, each of 64 bits
        builder.call(told, [I32(_CLOCK), spec])
        parts = builder.load(spec)
        seconds = builder.mul(builder.extract_value(parts, 0), I64(1_000_000_000))
        return builder.add(seconds, builder.extract_value(parts, 1))

    return types.int64(), emit


def _of_c_library(name: str, *given: bool) -> Any:
    """A function of the C library that takes places on the board, where ``given``, and null pointers."""

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        indices = iter(args[1:])
        places = [
            builder.bitcast(_place(context, builder, signature.args[0], args[0], next(indices)), _BYTES)
            if each else ir.Constant(_BYTES, None)
            for each in given
        ]  # fmt: skip
        builder.call(_declared(builder.module, ir.FunctionType(I32, [_BYTES] * len(given)), name), places)
        return context.get_dummy_value()

    if sum(given) == 2:

        @intrinsic
        def of_two(typing, board, first, second):  # type: ignore[no-untyped-def]
            return types.void(board, types.int64, types.int64), emit

        return of_two

    @intrinsic
    def of_one(typing, board, index):  # type: ignore[no-untyped-def]
        return types.void(board, types.int64), emit

    return of_one


@intrinsic
def _yielded(typing):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        builder.call(_declared(builder.module, ir.FunctionType(I32, []), "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), emit


@intrinsic
def _called(typing, function, arguments, start, stop):  # type: ignore[no-untyped-def]

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        function = builder.inttoptr(args[0], _PART.as_pointer())
        return builder.call(function, [builder.inttoptr(args[1], _BYTES), *args[2:]])

    return types.int32(types.int64, types.int64, types.int64, types.int64), emit


@intrinsic
def _kept_here(typing, arguments):  # type: ignore[no-untyped-def]
    """The address of a tuple that is kept until the calling function returns."""

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        room = _room(builder, args[0].type)
        builder.store(args[0], room)
        return builder.ptrtoint(room, I64)

    return types.int64(arguments), emit


@intrinsic
def _part_of(typing, kernel, arguments):  # type: ignore[no-untyped-def]
    """The address of a function like :data:`_PART` that calls a kernel with arguments of these types."""
    called = kernel.get_call_type(typing, (*arguments.types, types.int64, types.int64), {})

    def emit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        compiled = kernel.dispatcher.overloads[called.args]
        context.active_code_library.add_linking_library(compiled.library)
        function = ir.Function(builder.module, _PART, f"{compiled.fndesc.llvm_func_name}.part")
        function.linkage = "internal"
        inside = ir.IRBuilder(function.append_basic_block())
        place, start, stop = function.args
        tuple_ = inside.load(inside.bitcast(place, args[1].type.as_pointer()))
        values = [inside.extract_value(tuple_, i) for i in range(len(arguments))]
        status, _ = context.call_internal_no_propagate(inside, compiled.fndesc, called, [*values, start, stop])
        inside.ret(inside.zext(status.is_error, I32))
        return builder.ptrtoint(function, I64)

    return types.int64(kernel, arguments), emit


_load: Any = _loaded
_store: Any = _stored
_increase: Any = _increased
_exchange: Any = _exchanged
_now: Any = _clock_ns
_pass: Any = _nothing_done
_yield: Any = _yielded
_call: Any = _called
kept_here: Any = _kept_here
part_of: Any = _part_of
_init_mutex = _of_c_library("pthread_mutex_init", True, False)
_init_condition = _of_c_library("pthread_cond_init", True, False)
_lock = _of_c_library("pthread_mutex_lock", True)
_unlock = _of_c_library("pthread_mutex_unlock", True)
_sleep = _of_c_library("pthread_cond_wait", True, True)
_wake = _of_c_library("pthread_cond_signal", True)
_wake_all = _of_c_library("pthread_cond_broadcast", True)


# Work


@apart
def _take(board: Array, slot: int, front: bool) -> int:
    """A part that is nobody's yet; -1 if there is none."""
    while True:
        left = _load(board, slot + _LEFT)
        first, behind = left & ((1 << _END_BITS) - 1), left >> _END_BITS
        if first >= behind:
            return -1
        if _exchange(board, slot + _LEFT, left, left + 1 if front else left - (1 << _END_BITS)):
            return first if front else behind - 1


@apart
def _work(board: Array, slot: int, front: bool) -> None:
    function, arguments = _load(board, slot + _FUNCTION), _load(board, slot + _ARGUMENTS)
    count, step = _load(board, slot + _COUNT), _load(board, slot + _STEP)
    while True:
        part = _take(board, slot, front)
        if part < 0:
            return
        start = part * step
        if _call(function, arguments, start, min(start + step, count)) != 0:
            _store(board, slot + _FAILED, 1)


@apart
def run(board: Array, function: int, arguments: int, count: int, step: int, most: int, wakes: bool) -> bool:
    """Work on a range in parts of ``step``, together with up to ``most - 1`` other threads; whether that failed.

    Args:
        wakes: whether to wake threads for it that sleep.
    """
    slot = -1
    for s in range(SLOTS):
        if _exchange(board, _FIRST + s * _SLOT + _STATE, _FREE, _CLOSED):
            slot = _FIRST + s * _SLOT
            break
    if slot < 0:
        return bool(_call(function, arguments, 0, count) != 0)
    _store(board, slot + _FUNCTION, function)
    _store(board, slot + _ARGUMENTS, arguments)
    _store(board, slot + _COUNT, count)
    _store(board, slot + _STEP, step)
    _store(board, slot + _MOST, most - 1)
    _store(board, slot + _LEFT, ((count + step - 1) // step) << _END_BITS)
    _store(board, slot + _FAILED, 0)
    _store(board, slot + _STATE, _OPEN)
    _increase(board, NEWS, 1)
    asleep = min(_load(board, ASLEEP), most - 1) if wakes else 0
    if asleep > 0:
        _lock(board, MUTEX)
        for _ in range(asleep):
            _wake(board, CONDITION)
        _unlock(board, MUTEX)
    _work(board, slot, True)
    _store(board, slot + _STATE, _CLOSED)
    spins = 0
    while _load(board, slot + _INSIDE) != 0:
        spins += 1
        if spins > SPINS:
            _yield()
        else:
            _pass()
    failed = _load(board, slot + _FAILED) != 0
    _store(board, slot + _STATE, _FREE)
    return bool(failed)


# Threads


def prepare(board: Array) -> None:
    """Make a board of zeros ready for threads that sleep."""
    _init_mutex(board, MUTEX)
    _init_condition(board, CONDITION)


def serve(board: Array, awake_ns: int) -> None:
    """Work on what others begin. Where there was nothing to do for so long, this thread sleeps."""
    while True:
        news = _load(board, NEWS)
        if news < 0:
            return
        for s in range(SLOTS):
            slot = _FIRST + s * _SLOT
            left = _load(board, slot + _LEFT)
            if _load(board, slot + _STATE) != _OPEN or left & ((1 << _END_BITS) - 1) >= left >> _END_BITS:
                continue
            before = _increase(board, slot + _INSIDE, 1)
            if _load(board, slot + _STATE) == _OPEN and before < _load(board, slot + _MOST):
                _work(board, slot, False)
            _increase(board, slot + _INSIDE, -1)
        until = _now() + awake_ns
        while _load(board, NEWS) == news:
            if _now() <= until:
                continue
            _increase(board, ASLEEP, 1)
            _lock(board, MUTEX)
            while _load(board, NEWS) == news:
                _sleep(board, CONDITION, MUTEX)
            _unlock(board, MUTEX)
            _increase(board, ASLEEP, -1)


def dismiss(board: Array) -> None:
    """Let all threads return from :func:`serve`."""
    _store(board, NEWS, -1)
    _lock(board, MUTEX)
    _wake_all(board, CONDITION)
    _unlock(board, MUTEX)
