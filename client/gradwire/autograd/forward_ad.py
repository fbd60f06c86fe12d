"""``gradwire.autograd.forward_ad``: derivatives along a direction, computed beside the values.

A dual tensor carries a tangent; every result computed from it does, too::

    with fwAD.dual_level():
        y = f(fwAD.make_dual(x, direction))
        slope = fwAD.unpack_dual(y).tangent
"""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from .._core.context.modes import _Mode
from .._core.dispatch import dual_tensors
from .._core.graph import forward_levels
from .._core.tensor.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Current(threading.local):
    level: forward_levels.ForwardLevel | None = None


_CURRENT: Final = _Current()


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` returns: the values, and the tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin forward mode in this thread, until :func:`exit_dual_level`. Returns the level's number, 0.

    Raises:
        ArgumentError: inside of another level. ``gradwire.func.jvp`` nests.
    """
    if _CURRENT.level is not None:
        raise ArgumentError(
            "enter_dual_level: a level is open, and levels of forward_ad do not nest: use gradwire.func.jvp"
        )
    _CURRENT.level = forward_levels.ForwardLevel().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End forward mode in this thread. All tangents are gone.

    Raises:
        ArgumentError: when no level is open, or it is not this one.
    """
    if _CURRENT.level is None:
        raise ArgumentError("exit_dual_level: no level is open")
    if level not in (None, 0):
        raise ArgumentError(f"exit_dual_level: the open level is 0, not {level}")
    _CURRENT.level.__exit__()
    _CURRENT.level = None


class dual_level(_Mode):
    """Forward mode for the extent of a ``with``, or of a function when used as a decorator."""

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(0, 0)

    def __enter__(self) -> Any:
        return enter_dual_level()

    def __exit__(self, *_: Any) -> None:
        exit_dual_level()

    def clone(self) -> dual_level:
        made: dual_level = dual_level()
        return made


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor: a view of ``tensor`` whose tangent is ``tangent``, a tensor of the same shape.

    Raises:
        ArgumentError: outside of a level, for a tensor or a tangent that is dual already, a real tensor with a complex
            tangent, or another level than 0.
        ShapeError: for a tangent of another shape.
        ArgumentValueError: where either is not floating point or complex.
        ArgumentTypeError: where either is not a tensor.
    """
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(f"make_dual: {name} must be a tensor, not {type(value).__name__}")
    current = _CURRENT.level
    if current is None:
        raise ArgumentError("make_dual: no level is open: use it inside `with dual_level():`")
    check_numbers(tensor, tangent)
    if level not in (None, 0):
        raise ArgumentError(f"make_dual: the open level is 0, not {level}")
    if current in forward_levels.duals_of(tensor):
        raise ArgumentError("make_dual: the tensor has a tangent already: unpack_dual it first")
    if current in forward_levels.duals_of(tangent):
        raise ArgumentError("make_dual: the tangent has a tangent itself: unpack_dual it first")
    return dual_tensors.make_dual(tensor, tangent, current)


def check_numbers(tensor: Tensor, tangent: Tensor) -> None:
    """Check that a tensor and its tangent are floating point or complex.

    Raises:
        ArgumentValueError: where one is not.
    """
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not value._form.dtype.carries_gradient:
            raise ArgumentValueError(f"make_dual: {name} is {value.dtype}, not floating point or complex")


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The values of a dual tensor and its tangent; None for a tensor that has none, and outside of a level.

    Raises:
        ArgumentTypeError: for what is not a tensor.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"unpack_dual: expected a tensor, not {type(tensor).__name__}")
    current = _CURRENT.level
    if current is None or current not in forward_levels.duals_of(tensor):
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(dual_tensors.primal_of(tensor, current), dual_tensors.tangent_of(tensor, current))
