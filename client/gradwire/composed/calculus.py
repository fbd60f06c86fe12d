"""Integrals and derivatives of sampled functions: the trapezoid rule and finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, Unsupported
from gradwire_protocol.shapes import canonical_dim

from ..dispatch import call
from ..methods import offer
from ..tensor import Tensor

_NUMBERS = (int, float, complex)


def _part(x: Tensor, dim: int, start: int, end: int | None = None) -> Any:
    return call("slice", x, dim, start, end, 1)


def _widths(name: str, y: Tensor, x: Tensor, dim: int) -> Any:
    """The distances of neighbouring points, in a shape that broadcasts with ``y`` less one element along ``dim``."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise ShapeError(f"{name}: {x.shape[0]} points x for {y.shape[dim]} values along dimension {dim}")
        x = call("view", x, tuple(x.shape[0] if d == dim else 1 for d in range(y.ndim)))
    elif x.ndim < y.ndim:
        x = call("view", x, (1,) * (y.ndim - x.ndim) + tuple(x.shape))
    at = dim - y.ndim + x.ndim
    return call("sub", _part(x, at, 1), _part(x, at, 0, -1))


def _operands(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> int:
    if x is not None and dx is not None:
        raise ArgumentTypeError(f"{name} takes points x or one distance dx, not both")
    if y.dtype is dtypes.bool_ or (isinstance(x, Tensor) and x.dtype is dtypes.bool_):
        raise DTypeError(f"{name} is not defined on bools")
    if isinstance(dx, bool):
        raise DTypeError(f"{name}: the distance dx is a number, not {dx}")
    return canonical_dim(dim, y.ndim)


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integral along a dimension by the trapezoid rule: of values at points ``x``, or at a distance ``dx`` (1).

    Raises:
        ShapeError: when there is not one point for each value.
        DTypeError: for bools.
    """
    dim = _operands("trapezoid", y, x, dx, dim)
    if y.shape[dim] == 0:
        return call("zeros", tuple(n for d, n in enumerate(y.shape) if d != dim), dtype=y.dtype, device=y._meta.device)
    if x is None:
        ends = call("add", call("select", y, dim, 0), call("select", y, dim, -1))
        return call("mul", call("sub", call("sum", y, (dim,)), call("mul", ends, 0.5)), 1 if dx is None else dx)
    heights = call("add", _part(y, dim, 1), _part(y, dim, 0, -1))
    return call("div", call("sum", call("mul", _widths("trapezoid", y, x, dim), heights), (dim,)), 2.0)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integrals from the first point to each further one, by the trapezoid rule: see :func:`trapezoid`."""
    dim = _operands("cumulative_trapezoid", y, x, dx, dim)
    heights = call("add", _part(y, dim, 1), _part(y, dim, 0, -1))
    if x is None:
        return call("mul", call("cumsum", heights, dim), 0.5 * (1 if dx is None else dx))
    widths = _widths("cumulative_trapezoid", y, x, dim)
    return call("div", call("cumsum", call("mul", widths, heights), dim), 2.0)


def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Any:
    """:func:`trapezoid`, by its older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


def _differences(f: Tensor, h: Any, dim: int, edge_order: int) -> Any:
    """The slope along a dimension whose points are ``h`` apart."""
    centre = call("div", call("div", call("sub", _part(f, dim, 2), _part(f, dim, 0, -2)), h), 2)
    if edge_order == 1:
        first = call("div", call("sub", _part(f, dim, 1, 2), _part(f, dim, 0, 1)), h)
        last = call("div", call("sub", _part(f, dim, -1), _part(f, dim, -2, -1)), h)
    else:
        first = _edge((_part(f, dim, 0, 1), _part(f, dim, 1, 2), _part(f, dim, 2, 3)), (-1.5, 2, -0.5), h)
        last = _edge((_part(f, dim, -1), _part(f, dim, -2, -1), _part(f, dim, -3, -2)), (1.5, -2, 0.5), h)
    return call("cat", [first, centre, last], dim)


def _edge(points: Sequence[Any], weights: Sequence[Any], h: Any) -> Any:
    terms = [call("mul", p, w) for p, w in zip(points, weights, strict=True)]
    return call("div", call("add", call("add", terms[0], terms[1]), terms[2]), h)


def _uneven(f: Tensor, at: Tensor, dim: int, edge_order: int) -> Any:
    """The slope along a dimension whose points are at the given coordinates.

    Each is the slope of the parabola through three neighbours [Fornberg, 1988].
    """
    shape = tuple(-1 if d == dim else 1 for d in range(f.ndim))
    steps = call("view", call("sub", _part(at, 0, 1), _part(at, 0, 0, -1)), shape)
    before, after = _part(steps, dim, 0, -1), _part(steps, dim, 1)
    span = before + after
    left, middle, right = _part(f, dim, 0, -2), _part(f, dim, 1, -1), _part(f, dim, 2)
    centre = right * (before / (after * span)) + middle * ((after - before) / (before * after))
    centre = centre - left * (after / (before * span))
    if edge_order == 1:
        first = (_part(f, dim, 1, 2) - _part(f, dim, 0, 1)) / _part(steps, dim, 0, 1)
        last = (_part(f, dim, -1) - _part(f, dim, -2, -1)) / _part(steps, dim, -1)
    else:
        one, two = _part(steps, dim, 0, 1), _part(steps, dim, 1, 2)
        first = _parabola_end(_part(f, dim, 0, 1), _part(f, dim, 1, 2), _part(f, dim, 2, 3), one, two)
        one, two = _part(steps, dim, -1), _part(steps, dim, -2, -1)
        last = -_parabola_end(_part(f, dim, -1), _part(f, dim, -2, -1), _part(f, dim, -3, -2), one, two)
    return call("cat", [first, centre, last], dim)


def _parabola_end(end: Any, near: Any, far: Any, one: Any, two: Any) -> Any:
    """The slope at the end of a parabola through three points, of which the first two are ``one`` apart."""
    both = one + two
    return near * (both / (one * two)) - end * ((both + one) / (one * both)) - far * (one / (two * both))


def _spacings(spacing: Any, dims: list[int], given: bool) -> list[Any]:
    """One number, or one tensor of coordinates, for each dimension."""
    if spacing is None:
        return [1] * len(dims)
    if isinstance(spacing, Tensor) and spacing.ndim == 0:
        spacing = spacing.item()
    if isinstance(spacing, _NUMBERS):
        return [spacing] * len(dims)
    found = [spacing] if isinstance(spacing, Tensor) else list(spacing)
    if len(found) != len(dims):
        what = f"{len(dims)} dimensions" if given else f"a tensor of {len(dims)} dimensions"
        raise ArgumentError(f"gradient: {len(found)} spacings for {what}: give a number, or one for each")
    return found


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """The slope along each dimension (or those in ``dim``) by differences of second order, one tensor for each.

    ``spacing`` is the distance of the points (1), one distance for each dimension, or tensors of coordinates. At the
    ends the differences are of order ``edge_order``, 1 or 2.

    Raises:
        ArgumentError: when the spacings, the dimensions or the order do not fit, or there are too few points.
    """
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order}")
    if input.dtype in (dtypes.uint8, dtypes.bool_):
        raise Unsupported(f"gradient is not defined for {input.dtype.name} tensors: cast to a float")
    if dim is None:
        dims = list(range(input.ndim))
    else:
        dims = [canonical_dim(d, input.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    if len(set(dims)) < len(dims):
        raise ArgumentError(f"gradient: dimensions {list(dim)} name one dimension twice")
    steps = _spacings(spacing, dims, dim is not None)
    for d, step in zip(dims, steps, strict=True):
        extent = input.shape[d]
        if extent < edge_order + 1:
            raise ArgumentError(f"gradient: dimension {d} has {extent} points, at least {edge_order + 1} are needed")
        if isinstance(step, Tensor) and tuple(step.shape) != (extent,):
            raise ArgumentError(
                f"gradient: the coordinates along dimension {d} are {extent} numbers, not shape {list(step.shape)}"
            )
    return tuple(
        _uneven(input, step, d, edge_order) if isinstance(step, Tensor) else _differences(input, step, d, edge_order)
        for d, step in zip(dims, steps, strict=True)
    )


for _function in (trapezoid, cumulative_trapezoid, trapz, gradient):
    offer(_function, method=False)
