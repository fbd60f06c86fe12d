"""Python's operators on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gradwire_protocol.dtypes import FLOATING
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError
from gradwire_protocol.promotion import ScalarKind
from gradwire_protocol.table import TABLE

from ..context.modes import MODES
from ..dispatch.dispatch import call, run
from ..dispatch.fast_path import NOT_APPLICABLE
from ..dispatch.overrides import left_to_others
from ..dispatch.signatures import key_of, known
from ..graph.forward_levels import OPEN
from ..graph.recorded_call import entry_of
from ..tensor.tensor import Tensor
from . import indexing
from .argument_aliases import tensor_of_number
from .methods import attach

_NUMBERS = (bool, int, float, complex)
PAIRS_KEPT: Final = 4096
"""Pairs of operands that an operator remembers."""


def _usable(other: Any) -> bool:
    if isinstance(other, Tensor) or type(other) in _NUMBERS or ScalarKind.of(other) is not None:
        return True
    shape = getattr(other, "shape", None)  # a NumPy array's of one number
    return isinstance(shape, tuple) and not shape and hasattr(other, "item")


def _left(method: Any, self: Tensor, other: Any) -> Any:
    """What the class of an operand that is no tensor makes of the operator; NotImplemented where it does not say."""
    return left_to_others(method, (self, other), {})


def _binary(name: str, op: str) -> None:
    entry = entry_of(TABLE[op])
    defaults = entry.defaults[2:]
    pairs: dict[Any, Any] = {}

    def method(self: Tensor, other: Tensor | complex) -> Tensor:
        key = MODES.key
        session = self._session
        if session.lock.ready == key and not OPEN:
            form = (self._form, other._form if isinstance(other, Tensor) else type(other))
            signature = pairs.get(form)
            if signature is not None:
                made = signature.record(signature, session, key, self, other)
                if made is not NOT_APPLICABLE:
                    return made
            elif (signature := known(key_of(entry, [self, other, *defaults]))) is not None:
                if len(pairs) >= PAIRS_KEPT:
                    pairs.clear()
                pairs[form] = signature
        if not _usable(other):
            return _left(method, self, other)
        return run(entry, [self, other, *defaults])

    method.__name__ = name
    attach(name, method)


def _reflected(name: str, op: str) -> None:
    """``number <op> tensor`` for an op that takes a number first."""
    entry = entry_of(TABLE[op])
    defaults = entry.defaults[2:]

    def method(self: Tensor, other: Tensor | complex) -> Tensor:
        if not _usable(other):
            return NotImplemented
        return run(entry, [other, self, *defaults])

    method.__name__ = name
    attach(name, method)


def _inplace(name: str, op: str) -> None:
    entry = entry_of(TABLE[op])
    defaults = entry.defaults[2:]

    def method(self: Tensor, other: Tensor | complex) -> Tensor:
        if not _usable(other):
            return NotImplemented
        run(entry, [self, other, *defaults])
        return self

    method.__name__ = name
    attach(name, method)


_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le",
    "gt": "gt", "ge": "ge",
}  # fmt: skip
for _name, _op in _BINARY.items():
    _binary(f"__{_name}__", _op)
    if f"{_op}_" in TABLE and _name not in ("eq", "ne", "lt", "le", "gt", "ge"):
        _inplace(f"__i{_name}__", f"{_op}_")
for _name, _op in {
    "radd": "add",
    "rmul": "mul",
    "rsub": "rsub",
    "rand": "bitwise_and",
    "ror": "bitwise_or",
    "rxor": "bitwise_xor",
}.items():
    _binary(f"__{_name}__", _op)
for _name, _op in {"rpow": "pow", "rmod": "remainder", "rfloordiv": "floor_divide", "rmatmul": "matmul"}.items():
    _reflected(f"__{_name}__", _op)


def _shifted(name: str, op: str) -> None:
    """``number <op> tensor`` for an op that takes tensors first."""

    def method(self: Tensor, other: Tensor | complex) -> Tensor:
        return call(op, tensor_of_number(other, self), self) if ScalarKind.of(other) is not None else NotImplemented

    method.__name__ = name
    attach(name, method)


_shifted("__rlshift__", "bitwise_left_shift")
_shifted("__rrshift__", "bitwise_right_shift")


def _on_tensors_only(name: str) -> None:
    """Refuse a number where the tensor goes, which only a call by the operator's name can bring there."""
    reflected: Callable[..., Any] = getattr(Tensor, name)

    def method(self: Any, other: Tensor | complex) -> Tensor:
        if not isinstance(self, Tensor):
            raise ArgumentTypeError(f"{name} is a method of tensors, not of {type(self).__name__}")
        return reflected(self, other)

    method.__name__ = name
    attach(name, method)


for _name in ("__radd__", "__rmul__", "__rand__", "__ror__", "__rxor__"):
    _on_tensors_only(_name)


def _rtruediv(self: Tensor, other: Tensor | complex) -> Tensor:
    return call("mul", self.reciprocal(), other) if _usable(other) else NotImplemented


attach("__rtruediv__", _rtruediv)
attach("__rdiv__", _rtruediv)


def _invert(self: Tensor) -> Tensor:
    if self.dtype.category >= FLOATING:
        raise ArgumentTypeError(f"~ inverts bits: it takes bool and integer tensors, not {self.dtype.name}")
    return call("bitwise_not", self)


def _negative(self: Tensor) -> Tensor:
    return call("neg", self)


def _positive(self: Tensor) -> Tensor:
    return self.positive()


def _absolute(self: Tensor) -> Tensor:
    return call("abs", self)


attach("__neg__", _negative)
attach("__pos__", _positive)
attach("__abs__", _absolute)
attach("__invert__", _invert)
attach("__getitem__", indexing.getitem)
attach("__setitem__", indexing.setitem)
attach("__delitem__", indexing.delitem)


def _contains(self: Tensor, value: Any) -> bool:
    if not _usable(value):
        raise ArgumentError(
            f"only a number or a tensor can be in a tensor, not {value!r:.60} of type {type(value).__name__}"
        )
    return bool(call("any", call("eq", self, value)).item())


attach("__contains__", _contains)


def _reversed(self: Tensor) -> Tensor:
    return call("flip", self, (0,)) if self.ndim else self


attach("__reversed__", _reversed)
