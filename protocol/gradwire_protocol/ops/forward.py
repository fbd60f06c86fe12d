"""Forward-mode differentiation: levels, and tensors that carry a tangent at one.

A *dual* tensor carries, beside its values, their derivative along some direction: its tangent. Every op whose operand
is dual gives a dual result. Levels keep the directions of nested derivatives apart; a tangent of one level may itself
be dual at the levels below it, which were entered before.
"""

from __future__ import annotations

from ..errors import ArgumentError, ShapeError
from ..meta import Inference, Meta, new, nothing
from ..table import Position, Tensor, op


@op(control=True, results=0, exposed=())
def enter_dual_level(level: Position) -> Inference:
    """Begin a level. Its number is the client's choice, never used before in the session: a level with a higher number
    is inside of one with a lower."""
    return nothing()


@op(control=True, results=0, exposed=())
def exit_dual_level(level: Position) -> Inference:
    """End a level: its tangents are gone."""
    return nothing()


@op(control=True, exposed=())
def make_dual(self: Tensor, tangent: Tensor, level: Position) -> Inference:
    """A view of ``self`` whose tangent at the level is ``tangent``, of the same shape."""
    check_tangent(self, tangent)
    return new(self.shape, self.dtype, self.device, stride=self.stride)


def check_tangent(primal: Meta, tangent: Meta) -> None:
    """Check that a tangent fits the tensor it is the derivative of.

    Raises:
        ShapeError: for another shape.
        ArgumentError: where a dtype is not floating point or complex, a tangent is complex and its tensor is not, or
            the devices differ.
    """
    for what, described in (("primal", primal), ("tangent", tangent)):
        if not (described.dtype.is_floating_point or described.dtype.is_complex):
            raise ArgumentError(f"make_dual: the {what} is {described.dtype.name}, not floating point or complex")
    if primal.known and tangent.known and primal.shape != tangent.shape:
        raise ShapeError(f"make_dual: the tangent has shape {list(tangent.shape)}, the primal {list(primal.shape)}")
    if tangent.dtype.is_complex and not primal.dtype.is_complex:
        raise ArgumentError(
            f"make_dual: a {tangent.dtype.name} tangent does not fit a {primal.dtype.name} primal: the derivative of "
            "a real tensor is real"
        )
    if primal.device != tangent.device:
        raise ArgumentError(f"make_dual: the primal is on {primal.device}, the tangent on {tangent.device}")


@op(control=True, exposed=())
def primal_of(self: Tensor, level: Position) -> Inference:
    """A view of ``self`` that has no tangent at the level."""
    return new(self.shape, self.dtype, self.device, stride=self.stride)


@op(control=True, exposed=())
def tangent_of(self: Tensor, level: Position) -> Inference:
    """The tangent of ``self`` at the level; zeros where it has none."""
    return new(self.shape, self.dtype, self.device, stride=self.stride)
