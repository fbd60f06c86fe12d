"""Statistics: histograms, norms, covariance, normalisation, integrals and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol import dtypes
from gradwire_protocol.dtypes import BOOLEAN, INTEGRAL, DType, float32
from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, Unsupported
from gradwire_protocol.out import Out
from gradwire_protocol.shapes import canonical_dim

from ..context.modes import no_grad
from ..dispatch.dispatch import call
from ..surface.creation import empty
from ..surface.methods import named_result, offer, returning
from ..tensor.tensor import Tensor
from .matrices import matrix_norm

_function: Callable[..., Any]

_Histogram = named_result("histogram", "hist", "bin_edges")
_Histograms = named_result("histogramdd", "hist", "bin_edges")


@returning(_Histogram)
def histogram(
    input: Tensor,
    bins: Tensor | int,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """(hist, bin_edges): how many elements, or how much ``weight``, falls into each interval.

    ``bins`` is how many intervals of equal width there are, between the two numbers in ``range`` or the extremes of the
    elements; or a rising vector of edges. ``density`` makes the histogram one whose area is 1.

    Raises:
        Unsupported: for dtypes other than float32 and float64.
        ArgumentError, ShapeError, DTypeError: for bins, a range or weights that do not fit.
    """
    points = call("reshape", input, (-1, 1))
    if weight is not None:
        if weight.numel() != input.numel():
            raise ShapeError(f"histogram: weights have shape {list(weight.shape)}, the tensor {list(input.shape)}")
        weight = call("reshape", weight, (-1,))
    if isinstance(bins, Tensor):
        if range is not None:
            raise ArgumentTypeError("histogram: edges leave no choice of a range")
        return _Histogram(call("histogramdd_edges", points, [bins], weight, density), bins)
    return _Histogram(*call("histogramdd", points, (bins,), _bounds(range), weight, density))


def _bounds(given: Any) -> tuple[float, ...] | None:
    return None if given is None else tuple(float(v) for v in given)


@returning(_Histograms)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """(hist, bin_edges) of points whose coordinates are in the last dimension; ``bin_edges`` has one vector for each.

    ``bins`` is a number of intervals for all dimensions, one for each, or a sequence of vectors of edges; ``range`` has
    two bounds for each dimension. See :func:`histogram`.
    """
    if input.ndim < 2:
        raise ShapeError(f"histogramdd takes points with their coordinates in the last dimension, got {input.ndim}-D")
    if isinstance(bins, Sequence) and bins and isinstance(bins[0], Tensor):
        if range is not None and len(range) != 2 * len(bins):
            raise ShapeError(f"histogramdd: {len(bins)} dimensions need {2 * len(bins)} bounds, got {len(range)}")
        return _Histograms(call("histogramdd_edges", input, list(bins), weight, density), tuple(bins))
    counts = (bins,) * input.shape[-1] if isinstance(bins, int) else tuple(bins)
    hist, *edges = call("histogramdd", input, counts, _bounds(range), weight, density)
    return _Histograms(hist, tuple(edges))


offer(histogram, out=Out.EXACT)
offer(histogramdd, method=False)


def norm(
    input: Tensor,
    p: float | str = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """The vector norm of all elements or along dimensions; ``"fro"`` is the norm of order 2."""
    if p == "nuc":
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return call("norm", input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype)


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of the difference."""
    return call("norm", call("sub", input, other), p)


def frobenius_norm(input: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """The norm of order 2, of all elements or over the dimensions of matrices."""
    return call("norm", input, 2, dim, keepdim)


def nuclear_norm(input: Tensor, dim: int | Sequence[int] = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices."""
    return norm(input, "nuc", dim, keepdim)


def norm_except_dim(v: Tensor, pow: float = 2, dim: int = 0) -> Tensor:
    """The ``pow``-norms of a tensor over all dimensions but one, which stays; ``dim=-1`` leaves none, and gives a
    number."""
    if dim == -1:
        return call("norm", v, float(pow))
    others = tuple(d for d in range(v.ndim) if d != dim % v.ndim)
    return call("norm", v, float(pow), others, True) if others else call("abs", v)


offer(dist)
offer(norm, out=Out.PLAIN)
offer(frobenius_norm, method=False, out=Out.EXACT)
offer(nuclear_norm, method=False, out=Out.EXACT)
offer(norm_except_dim, method=False)


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariances of variables (rows) over observations (columns).

    ``fweights`` says how often each observation was made, ``aweights`` how much it counts.

    Raises:
        ArgumentError: for weights that do not fit the observations.
        DTypeError: for frequencies that are no integers, weights that are not floating point.
    """
    if input.ndim > 2:
        raise ArgumentError(f"cov takes a matrix or a vector, got shape {list(input.shape)}")
    if input.dtype.category == BOOLEAN:
        raise DTypeError("cov takes numbers, not bools")
    x = input.reshape(1, -1) if input.ndim < 2 else input
    count = x.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        if weights.ndim > 1 or weights.numel() != count:
            raise ArgumentError(
                f"cov: {name} has one element for each of {count} observations, its shape is {list(weights.shape)}"
            )
        if (weights.dtype.category == INTEGRAL) != (name == "fweights") or weights.is_complex():
            raise DTypeError(f"cov: {name} cannot be {weights.dtype.name}")
    fweights, aweights = (None if w is None else call("nonnegative", w) for w in (fweights, aweights))
    weights = fweights
    if aweights is not None:
        weights = aweights if fweights is None else fweights * aweights
    if weights is None:
        mean, total = x.sum(1, keepdim=True) / count, count
        freedom: Any = max(count - correction, 0)
    else:
        total = weights.sum()
        mean = (x * weights).sum(1, keepdim=True) / total
        if aweights is None:
            freedom = total - correction
        else:
            freedom = total - correction * (weights * aweights).sum() / total
        freedom = freedom.clamp(min=0)
    centred = x - mean
    right = centred if weights is None else centred * weights
    right = right.mT.conj() if right.is_complex() else right.mT
    found = (centred @ right.to(centred.dtype)) / freedom
    return found.squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of variables (rows) over observations (columns)."""
    if input.ndim > 2:
        raise ArgumentError(f"corrcoef takes a matrix or a vector, got shape {list(input.shape)}")
    found: Tensor = cov(input)
    if found.ndim == 0:
        return found / found
    deviations = (found.real if found.is_complex() else found).diagonal().sqrt()
    found = found / deviations.unsqueeze(-1) / deviations.unsqueeze(0)
    if found.is_complex():
        return call("complex", found.real.clamp(-1, 1), found.imag.clamp(-1, 1))
    return found.clamp(-1, 1)


offer(cov)
offer(corrcoef)


def _statistics(input: Tensor, dims: tuple[int, ...], keepdim: bool, eps: float) -> tuple[Any, Any]:
    """Mean and reciprocal deviation."""
    wide = call("to", input, _wide(input))
    variance, mean = call("var_mean", wide, dims, 0, keepdim)
    deviation = call("rsqrt", call("add", variance, eps))
    return call("to", mean, input.dtype), call("to", deviation, input.dtype)


def _wide(input: Tensor) -> Any:
    return float32 if input.dtype.is_low_precision else input.dtype


def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`gradwire.nn.functional.layer_norm`, and the mean and the reciprocal deviation that it divided by."""
    shape = tuple(normalized_shape)
    result = call("layer_norm", input, shape, weight, bias, eps)
    with no_grad():
        statistics = _statistics(input, tuple(range(input.ndim - len(shape), input.ndim)), True, eps)
    return (result, *statistics)


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`gradwire.nn.functional.group_norm`, and the mean and the reciprocal deviation of each group."""
    result = call("group_norm", input, group, weight, bias, eps)
    groups = call("reshape", input, (N, group, C // group * HxW))
    return (result, *_statistics(groups, (2,), False, eps))


def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """:func:`gradwire.nn.functional.batch_norm`, and in training the mean and the reciprocal deviation of each
    channel."""
    result = call("batch_norm", input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        return result, empty(0, dtype=input.dtype), empty(0, dtype=input.dtype)
    with no_grad():
        dims = (0, *range(2, input.ndim))
        return (result, *_statistics(input, dims, False, eps))


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: complex = 0) -> Tensor:
    """Surround with a border of ``value``: ``pad`` holds (before, after) for the last dimension, the one before, ..."""
    if isinstance(value, complex):
        if input.is_complex():
            parts = ((input.real, value.real), (input.imag, value.imag))
            return call("complex", *[call("pad", part, tuple(pad), "constant", fill) for part, fill in parts])
        if value.imag:
            raise DTypeError(f"constant_pad_nd: {value} does not fit into a {input.dtype.name} tensor")
        value = value.real
    return call("pad", input, tuple(pad), "constant", value)


for _function in (native_layer_norm, native_group_norm):
    offer(_function, method=False)
offer(native_batch_norm, method=False, out=Out.PLAIN)
offer(constant_pad_nd, method=False, out=Out.PLAIN)


_NUMBERS = (int, float, complex)


def _part(x: Tensor, dim: int, start: int, end: int | None = None) -> Tensor:
    return call("slice", x, dim, start, end, 1)


def _widths(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
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


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integral along a dimension by the trapezoid rule: of values at points ``x``, or at a distance ``dx`` (1).

    Raises:
        ShapeError: when there is not one point for each value.
        DTypeError: for bools.
    """
    dim = _operands("trapezoid", y, x, dx, dim)
    if y.shape[dim] == 0:
        return call("zeros", tuple(n for d, n in enumerate(y.shape) if d != dim), dtype=y.dtype, device=y._form.device)
    if x is None:
        ends = call("add", call("select", y, dim, 0), call("select", y, dim, -1))
        return call("mul", call("sub", call("sum", y, (dim,)), call("mul", ends, 0.5)), 1 if dx is None else dx)
    heights = call("add", _part(y, dim, 1), _part(y, dim, 0, -1))
    return call("div", call("sum", call("mul", _widths("trapezoid", y, x, dim), heights), (dim,)), 2.0)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """The integrals from the first point to each further one, by the trapezoid rule: see :func:`trapezoid`."""
    dim = _operands("cumulative_trapezoid", y, x, dx, dim)
    heights = call("add", _part(y, dim, 1), _part(y, dim, 0, -1))
    if x is None:
        return call("mul", call("cumsum", heights, dim), 0.5 * (1 if dx is None else dx))
    widths = _widths("cumulative_trapezoid", y, x, dim)
    return call("div", call("cumsum", call("mul", widths, heights), dim), 2.0)


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """:func:`trapezoid`, by its older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


def _differences(f: Tensor, h: Any, dim: int, edge_order: int) -> Tensor:
    """The slope along a dimension whose points are ``h`` apart."""
    centre = call("div", call("div", call("sub", _part(f, dim, 2), _part(f, dim, 0, -2)), h), 2)
    if edge_order == 1:
        first = call("div", call("sub", _part(f, dim, 1, 2), _part(f, dim, 0, 1)), h)
        last = call("div", call("sub", _part(f, dim, -1), _part(f, dim, -2, -1)), h)
    else:
        first = _edge((_part(f, dim, 0, 1), _part(f, dim, 1, 2), _part(f, dim, 2, 3)), (-1.5, 2, -0.5), h)
        last = _edge((_part(f, dim, -1), _part(f, dim, -2, -1), _part(f, dim, -3, -2)), (1.5, -2, 0.5), h)
    return call("cat", [first, centre, last], dim)


def _edge(points: Sequence[Any], weights: Sequence[Any], h: Any) -> Tensor:
    terms = [call("mul", p, w) for p, w in zip(points, weights, strict=True)]
    return call("div", call("add", call("add", terms[0], terms[1]), terms[2]), h)


def _uneven(f: Tensor, at: Tensor, dim: int, edge_order: int) -> Tensor:
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


def _parabola_end(end: Tensor, near: Tensor, far: Tensor, one: Tensor | float, two: Tensor | float) -> Tensor:
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


def gradient(
    input: Tensor,
    *,
    spacing: Tensor | float | Sequence[float] | Sequence[Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
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
    named = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [canonical_dim(d, input.ndim) for d in named]
    if len(set(dims)) < len(dims):
        raise ArgumentError(f"gradient: dimensions {named} name one dimension twice")
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
