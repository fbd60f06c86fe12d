"""Vector instructions for kernels that the compiler would not find by itself. Imports Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, cast

from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils

F = TypeVar("F", bound=Callable[..., Any])


def apart(function: F) -> F:
    """A function that kernels call, too large to be compiled into every place that does."""
    made: Any = njit(nogil=True, error_model="numpy")(function)
    return cast(F, made)


def _vector_bytes() -> int:
    features = binding.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16


VECTOR: Final = _vector_bytes()
"""Bytes of a vector register."""

MANY: Final = VECTOR == 64
"""Whether there are 32 vector registers, and not 16."""

I32: Final = ir.IntType(32)
I64: Final = ir.IntType(64)

Context: TypeAlias = Any
"""Numba's context of a target, whose methods have no types."""

loop_over: Any = cgutils.for_range
_declared: Any = cgutils.get_or_insert_function
_room: Any = cgutils.alloca_once


class VectorEmitter:
    """Instructions on vectors of one element type."""

    def __init__(self, context: Context, builder: ir.IRBuilder, element: types.Type) -> None:
        self.context = context
        self.builder = builder
        self.element = context.get_value_type(element)
        self.bits = 64 if isinstance(self.element, ir.DoubleType) else 32
        self.lanes = VECTOR * 8 // self.bits
        self.vector = self.vectors_of(self.lanes)

    def vectors_of(self, lanes: int) -> ir.VectorType:
        return ir.VectorType(self.element, lanes)

    def start(self, kind: types.Array, array: ir.Value, at: ir.Value) -> ir.Value:
        """A pointer to an element of an array."""
        data = self.context.make_array(kind)(self.context, self.builder, array).data
        return self.builder.gep(data, [at])

    def at(self, pointer: ir.Value, index: ir.Value | int) -> ir.Value:
        return self.builder.gep(pointer, [I64(index) if isinstance(index, int) else index])

    def load(self, pointer: ir.Value) -> ir.Value:
        return self.builder.load(self._as(pointer, self.vector), align=self.bits // 8)

    def store(self, value: ir.Value, pointer: ir.Value) -> None:
        self.builder.store(value, self._as(pointer, value.type), align=self.bits // 8)

    def _as(self, pointer: ir.Value, kind: ir.Type) -> ir.Value:
        return self.builder.bitcast(pointer, kind.as_pointer())

    def splat(self, value: ir.Value) -> ir.Value:
        """A vector with a number in all lanes."""
        return self._spread(value, self.vector)

    def _spread(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        nothing = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(nothing, value, I32(0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(I32, kind.count), None))

    def shuffled(self, a: ir.Value, b: ir.Value, lanes: list[int]) -> ir.Value:
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))

    def fused(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """``a * b + c``"""
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fmuladd.v{self.lanes}f{self.bits}"
        return self.builder.call(_declared(self.builder.module, kind, name), [a, b, c])

    def total(self, vector: ir.Value) -> ir.Value:
        """The sum of all lanes, always of halves."""
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (self.shuffled(vector, vector, list(range(s, s + lanes))) for s in (0, lanes))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, I32(0))

    def accumulators(self, *shape: int) -> Any:
        """Nested lists of places for a vector, which become registers."""
        if not shape:
            return _room(self.builder, self.vector)
        return [self.accumulators(*shape[1:]) for _ in range(shape[0])]

    def lanes_below(self, count: ir.Value) -> ir.Value:
        kind = ir.VectorType(I32, self.lanes)
        limit = self._spread(self.builder.trunc(count, I32), kind)
        return self.builder.icmp_signed("<", ir.Constant(kind, list(range(self.lanes))), limit)

    def load_some(self, pointer: ir.Value, mask: ir.Value) -> ir.Value:
        """A vector of which only some lanes are in memory; the others are 0."""
        kind = [self.vector.as_pointer(), I32, mask.type, self.vector]
        given = [self._as(pointer, self.vector), I32(self.bits // 8), mask, ir.Constant(self.vector, None)]
        return self._masked("load", self.vector, kind, given)

    def store_some(self, value: ir.Value, pointer: ir.Value, mask: ir.Value) -> None:
        kind = [self.vector, self.vector.as_pointer(), I32, mask.type]
        self._masked("store", ir.VoidType(), kind, [value, self._as(pointer, self.vector), I32(self.bits // 8), mask])

    def _masked(self, what: str, result: ir.Type, kinds: list[ir.Type], given: list[ir.Value]) -> ir.Value:
        name = f"llvm.masked.{what}.v{self.lanes}f{self.bits}.p0v{self.lanes}f{self.bits}"
        kind = ir.FunctionType(result, kinds)
        return self.builder.call(_declared(self.builder.module, kind, name), given)
