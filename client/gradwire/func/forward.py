"""Derivatives along a direction: ``jvp`` and ``linearize``. They only record; nothing waits for the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from gradwire_protocol.errors import ArgumentError

from .._core.context.modes import enable_grad, is_grad_enabled
from .._core.context.pytree import tree_flatten, tree_map, tree_unflatten
from .._core.dispatch import dual_tensors
from .._core.dispatch.transform_levels import ENDED, TransformLevel, alias, depends_outside, released
from .._core.graph import forward_levels
from .._core.surface.creation_like import zeros_like
from .._core.tensor.tensor import Tensor
from ..autograd.forward_ad import check_numbers
from .reverse import Aux, Output, gradients, results_of, split_aux, tensors_of

__all__ = ["jvp", "linearize"]


@overload
def jvp(
    func: Callable[..., Output], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
    has_aux: Literal[False] = False,
) -> tuple[Output, Output]: ...  # fmt: skip
@overload
def jvp(
    func: Callable[..., tuple[Output, Aux]], primals: tuple[Any, ...], tangents: tuple[Any, ...], *,
    strict: bool = False, has_aux: Literal[True],
) -> tuple[Output, Output, Aux]: ...  # fmt: skip
@overload
def jvp(
    func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
    has_aux: bool,
) -> tuple[Any, ...]: ...  # fmt: skip


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of ``func`` at ``primals`` and its derivative along ``tangents``.

    Args:
        func: takes the primals, returns tensors or a structure of them; with ``has_aux`` a pair of these and of tensors
            to pass on.
        primals: the arguments, as a tuple of tensors or structures of them.
        tangents: the direction, with the structure and the shapes of ``primals``.
        strict: refuse an output that does not depend on the primals, rather than answering zeros.

    Returns:
        ``(output, derivative)`` with the structure that ``func`` returned, or ``(output, derivative, aux)``.

    Raises:
        ArgumentError: when primals are no tuple or tangents have another structure, for arguments and outputs that are
            no tensors, and in strict mode.
        ArgumentValueError: for primals or tangents of integers.
        ShapeError: for tangents of other shapes.
    """
    if not isinstance(primals, tuple):
        raise ArgumentError(f"jvp: primals is the tuple of the function's arguments, not {type(primals).__name__}")
    leaves, spec = tree_flatten(primals)
    directions, structure = tree_flatten(tangents)
    if structure != spec:
        raise ArgumentError(f"jvp: the tangents have the structure {structure!r}, the primals {spec!r}")
    if not leaves:
        raise ArgumentError("jvp: there is no tensor among the primals")
    for what, values in (("primals", leaves), ("tangents", directions)):
        for value in values:
            if not isinstance(value, Tensor):
                raise ArgumentError(f"jvp: {what} must be made of tensors, they have {type(value).__name__}")
    recording = is_grad_enabled()
    with forward_levels.ForwardLevel() as level, TransformLevel() as scope:
        inputs = [dual(p, t, level) for p, t in zip(leaves, directions, strict=True)]
        scope.first = inputs[0]
        scope.admit(inputs)
        output, aux = split_aux("jvp", func(*tree_unflatten(inputs, spec)), has_aux)
        outputs, out_spec = results_of("jvp", output)
        values, slopes = [], []
        for i, result in enumerate(outputs):
            slope = dual_tensors.tangent_of(result, level)
            if slope is None and strict:
                raise ArgumentError(f"jvp: output {i} does not depend on the primals, which strict=True forbids")
            values.append(result if slope is None else dual_tensors.primal_of(result, level))
            slopes.append(zeros_like(result).detach() if slope is None else slope)
        if has_aux:
            tensors_of("jvp: aux", aux)
            aux = tree_map(
                lambda t: dual_tensors.primal_of(t, level) if level in forward_levels.duals_of(t) else t, aux
            )
    found = (
        tree_unflatten([released(t, recording) for t in values], out_spec),
        tree_unflatten([released(t, recording) for t in slopes], out_spec),
    )
    return (*found, tree_map(lambda t: released(t, recording), aux)) if has_aux else found


def dual(primal: Any, tangent: Any, level: forward_levels.ForwardLevel) -> Any:
    """A dual tensor of a transform's level.

    Raises:
        ArgumentValueError: for integers.
    """
    check_numbers(primal, tangent)
    return dual_tensors.make_dual(primal, tangent, level)


def linearize(func: Callable[..., Output], *primals: Any) -> tuple[Output, Callable[..., Output]]:
    """The value of ``func`` at ``primals`` and the linear function that approximates it there.

    The function runs once; each call of the linear function costs about as much as a gradient.

    Args:
        func: takes the primals, returns tensors or a structure of them.
        primals: tensors, or structures of them.

    Returns:
        ``(output, jvp_fn)``; ``jvp_fn(*tangents)`` takes tangents with the structure, shapes and dtypes of the primals
        and returns the derivative along them, with the structure of the output.

    Raises:
        ArgumentError: for outputs that are no tensors, and for tangents that do not fit.
    """
    recording = is_grad_enabled()
    leaves, spec = tree_flatten(primals)
    scope = TransformLevel()
    with scope, enable_grad():
        inputs = [alias(t, scope) for t in leaves]
        outputs, out_spec = results_of("linearize", func(*tree_unflatten(inputs, spec)))
        seeds = []
        for output in outputs:
            seed = zeros_like(output).detach()
            if output._form.dtype.carries_gradient:
                seed.requires_grad_()
                seed._scope = ENDED
            seeds.append(seed)
        slopes = gradients(outputs, inputs, seeds, True, True)
    outside = depends_outside(outputs)
    live = [i for i, seed in enumerate(seeds) if seed.requires_grad]

    def jvp_fn(*tangents: Any) -> Any:
        vectors, structure = tree_flatten(tangents)
        if structure != spec:
            raise ArgumentError(f"linearize: the tangents have the structure {structure!r}, the primals {spec!r}")
        for i, (vector, primal) in enumerate(zip(vectors, inputs, strict=True)):
            if not isinstance(vector, Tensor):
                raise ArgumentError(f"linearize: tangent {i} is {type(vector).__name__}, not a tensor")
            if tuple(vector.shape) != tuple(primal.shape) or vector.dtype != primal.dtype:
                raise ArgumentError(
                    f"linearize: tangent {i} is {vector.dtype} {list(vector.shape)}, its primal {primal.dtype} "
                    f"{list(primal.shape)}"
                )
        wanted = is_grad_enabled() and (outside or any(v.requires_grad for v in vectors))
        derivatives = iter(gradients(slopes, [seeds[i] for i in live], vectors, wanted, True))
        found = [next(derivatives) if i in live else zeros_like(o).detach() for i, o in enumerate(outputs)]
        return tree_unflatten(found, out_spec)

    return tree_unflatten([released(t, recording) for t in outputs], out_spec), jvp_fn
