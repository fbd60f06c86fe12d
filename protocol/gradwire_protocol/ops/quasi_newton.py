"""What limited-memory BFGS needs: parameters as one vector, the direction of a step, and the numbers it decides by."""

from __future__ import annotations

from ..dtypes import DType, float64
from ..errors import ArgumentError, DTypeError, ShapeError
from ..meta import Inference, Meta, meta, new, nothing
from ..promotion import join
from ..table import Float, Tensor, op


def _length(params: tuple[Meta, ...]) -> int:
    return sum(p.numel * (2 if p.dtype.is_complex else 1) for p in params)


def _check_vector(name: str, vector: Meta) -> None:
    if vector.ndim != 1 or not vector.dtype.is_floating_point:
        raise ArgumentError(f"{name} works on vectors of floating point numbers, not on {vector!r}")


def _flat(name: str, params: tuple[Meta, ...]) -> Meta:
    if not params:
        raise ArgumentError(f"{name} needs at least one parameter")
    dtype: DType = params[0].dtype.to_real()
    for param in params:
        dtype = join(dtype, param.dtype.to_real())
    return meta((_length(params),), dtype, params[0].device)


@op(control=True, exposed=())
def flat_gradient(params: list[Tensor]) -> Inference:
    """The gradients of all parameters, one after the other, as one vector: zeros where there is none, complex numbers
    as pairs."""
    return Inference((_flat("flat_gradient", tuple(params)),))


@op(control=True, exposed=())
def flat_values(params: list[Tensor]) -> Inference:
    """The values of all parameters as one vector, in the order of :func:`flat_gradient`."""
    return Inference((_flat("flat_values", tuple(params)),))


@op(control=True, results=0, exposed=())
def move_params(params: list[Tensor], direction: Tensor, t: Float, origin: Tensor | None = None) -> Inference:
    """Add ``t * direction`` to the parameters, or to ``origin``, where they are then. Both are vectors as
    :func:`flat_values` gives them."""
    for param in params:
        if not param.dtype.carries_gradient:
            raise DTypeError(f"move_params: a parameter of dtype {param.dtype.name} cannot be optimized")
    for vector in (direction, origin):
        if vector is None:
            continue
        _check_vector("move_params", vector)
        if vector.shape != (_length(tuple(params)),):
            raise ShapeError(f"move_params: {_length(tuple(params))} numbers are moved, the vector is {vector!r}")
    return nothing()


@op(control=True, exposed=())
def gradient_facts(gradient: Tensor, direction: Tensor | None = None) -> Inference:
    """What a line search asks of a gradient, as four float64 numbers: its largest element by size, the sum of their
    sizes, its product with the direction (0 without one), and its product with itself."""
    _check_vector("gradient_facts", gradient)
    if direction is not None and (direction.shape != gradient.shape or direction.dtype is not gradient.dtype):
        raise ShapeError(f"gradient_facts: the direction {direction!r} does not match the gradient {gradient!r}")
    return new_facts(gradient, 4)


@op(control=True, results=6, exposed=())
def lbfgs_direction(
    gradient: Tensor,
    previous: Tensor,
    direction: Tensor,
    t: Float,
    old_dirs: list[Tensor],
    old_stps: list[Tensor],
    ro: list[Tensor],
    scale: Tensor,
    history_size: int = 100,
) -> Inference:
    """The next direction of limited-memory BFGS (Nocedal 1980), after a step of length ``t`` along the last one.

    Results: the direction; the change of the gradient ``y`` and the step ``s``; the inverse of their product; the
    scale of the first Hessian; and four float64 numbers: ``y`` times ``s``, the product of the gradient and the
    direction, the largest element of the direction, and 0. Where ``y`` times ``s`` is above 1e-10, ``y`` and ``s``
    have been taken into account, and the history is to be continued with them; the oldest entry falls out of a full
    one.
    """
    if not len(old_dirs) == len(old_stps) == len(ro):
        raise ArgumentError(f"lbfgs_direction: a history of {len(old_dirs)}, {len(old_stps)} and {len(ro)} entries")
    _check_vector("lbfgs_direction", gradient)
    for number in (scale, *ro):
        if number.numel != 1 or number.dtype is not gradient.dtype:
            raise ArgumentError(f"lbfgs_direction: scale and ro are one {gradient.dtype.name} each, not {number!r}")
    for vector in (previous, direction, *old_dirs, *old_stps):
        if vector.shape != gradient.shape or vector.dtype is not gradient.dtype:
            raise ShapeError(f"lbfgs_direction: {vector!r} does not match the gradient {gradient!r}")
    flat, one = meta(gradient.shape, gradient.dtype, gradient.device), meta((), gradient.dtype, gradient.device)
    return Inference((flat, flat, flat, one, one, *new_facts(gradient, 4).outs))


def new_facts(gradient: Meta, count: int) -> Inference:
    """A result of some float64 numbers, beside the gradient."""
    return new((count,), float64, gradient.device)
