"""Gradients of functions: ``grad``, ``grad_and_value`` and ``vjp``. They only record; nothing waits for the server."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, overload

from gradwire_protocol.errors import ArgumentError, GraphError

from .. import autograd
from .._core.context.modes import enable_grad, is_grad_enabled
from .._core.context.pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from .._core.dispatch.transform_levels import TransformLevel, alias, anchored, depends_outside, passed, released
from .._core.surface.creation_like import zeros_like
from .._core.tensor.tensor import Tensor

__all__ = ["grad", "grad_and_value", "vjp"]

Function = Callable[..., Any]
Given = ParamSpec("Given")
Output = TypeVar("Output")
Aux = TypeVar("Aux")
Argnums = int | tuple[int, ...]


def positions_of(argnums: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of the arguments to differentiate for, counted from the front.

    Raises:
        ArgumentError: for positions that do not exist or are given twice, and for none.
    """
    several = isinstance(argnums, tuple)
    given: tuple[Any, ...] = argnums if several else (argnums,)
    if not all(isinstance(n, int) for n in given):
        raise ArgumentError(f"argnums is an int or a tuple of them, not {argnums!r}")
    if not given:
        raise ArgumentError("argnums is empty: name at least one argument")
    for n in given:
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"argnums has {n}, but the function was called with {len(args)} positional arguments")
    found = tuple(n % len(args) for n in given)
    if len(set(found)) < len(found):
        raise ArgumentError(f"argnums {argnums!r} names an argument twice")
    return found


def chosen(args: tuple[Any, ...], argnums: Any) -> Any:
    """The arguments to differentiate: a tuple, or the single one of an int."""
    found = tuple(args[n] for n in positions_of(argnums, args))
    return found if isinstance(argnums, tuple) else found[0]


def replaced(args: tuple[Any, ...], argnums: Any, values: Any) -> tuple[Any, ...]:
    """The arguments with replacements for the chosen ones; the others as a differentiated function gets them."""
    found = positions_of(argnums, args)
    changed = [arg if n in found else tree_map(passed, arg) for n, arg in enumerate(args)]
    for n, value in zip(positions_of(argnums, args), values if isinstance(argnums, tuple) else (values,), strict=True):
        changed[n] = value
    return tuple(changed)


def split_aux(name: str, output: Any, has_aux: bool) -> tuple[Any, Any]:
    """What a function returned, as its output and the rest that is passed on.

    Raises:
        ArgumentError: where ``has_aux`` and it is not a pair.
    """
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise ArgumentError(f"{name}: with has_aux=True the function returns (output, aux), not {output!r:.80}")
    return output


def tensors_of(name: str, output: Any) -> tuple[list[Any], TreeSpec]:
    """The tensors a function returned.

    Raises:
        ArgumentError: when it returned something else.
    """
    leaves, spec = tree_flatten(output)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ArgumentError(f"{name}: the function must return tensors, it returned {type(leaf).__name__}")
    return leaves, spec


def results_of(name: str, output: Any) -> tuple[list[Any], TreeSpec]:
    """The tensors a function returned, of which there is at least one.

    Raises:
        ArgumentError: when it returned something else, or nothing.
    """
    leaves, spec = tensors_of(name, output)
    if not leaves:
        raise ArgumentError(f"{name}: the function must return at least one tensor, it returned {output!r}")
    return leaves, spec


def released_aux(aux: Any, recording: bool) -> Any:
    """What a function passed on besides its output, as it leaves the transform."""
    for leaf in tree_flatten(aux)[0]:
        if not isinstance(leaf, Tensor):
            raise ArgumentError(f"aux must be made of tensors, it has {type(leaf).__name__}")
    return tree_map(lambda t: released(t, recording), aux)


def gradients(
    outputs: list[Any], inputs: list[Any], vectors: list[Any], create_graph: bool, retain_graph: bool | None = None
) -> list[Any]:
    """One gradient per input; zeros where the outputs do not depend on it."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if not pairs or not inputs:
        return [zeros_like(t).detach() for t in inputs]
    found = autograd.grad(
        [anchored(o) for o, _ in pairs], inputs, [v for _, v in pairs], retain_graph=retain_graph,
        create_graph=create_graph, allow_unused=True, materialize_grads=True,
    )  # fmt: skip
    return [released(g, create_graph) for g in found]


def grad(func: Callable[Given, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[Given, Any]:
    """A function that computes the gradient of ``func``.

    Args:
        func: returns a real tensor without dimensions; with ``has_aux`` a pair of it and of tensors to pass on.
        argnums: the positional arguments to differentiate for, tensors or structures of them.

    Returns:
        A function of the same arguments. It returns the gradient, with the structure of the argument (a tuple for a
        tuple of ``argnums``), and with ``has_aux`` a pair of it and of what was passed on. Its results can be
        differentiated for whatever they depend on outside, by a transform around this one or by ``backward``.

    Raises (when it is called):
        ArgumentError: for an output that is no scalar, and for ``argnums`` that do not fit the arguments.
        ArgumentValueError: for an argument that has something else than tensors.
        DTypeError: for an argument of integers.
    """

    @functools.wraps(func, updated=())
    def gradient(*args: Given.args, **kwargs: Given.kwargs) -> Any:
        found, (_, aux) = _grad_and_output("grad", func, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return gradient


def grad_and_value(func: Callable[Given, Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[Given, Any]:
    """A function that computes the gradient of ``func`` and its value: ``(gradient, value)``, or
    ``(gradient, (value, aux))`` with ``has_aux``. See :func:`grad`."""

    @functools.wraps(func, updated=())
    def gradient_and_value(*args: Given.args, **kwargs: Given.kwargs) -> Any:
        found, (value, aux) = _grad_and_output("grad_and_value", func, argnums, has_aux, args, kwargs)
        return (found, (value, aux)) if has_aux else (found, value)

    return gradient_and_value


def _grad_and_output(
    name: str, func: Function, argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, Any]]:
    recording = is_grad_enabled()
    leaves, spec = tree_flatten(chosen(args, argnums))
    scope = TransformLevel()
    with scope, enable_grad():
        inputs = [alias(t, scope) for t in leaves]
        result = func(*replaced(args, argnums, tree_unflatten(inputs, spec)), **tree_map(passed, kwargs))
        output, aux = split_aux(name, result, has_aux)
        if not isinstance(output, Tensor):
            raise ArgumentError(f"{name}: the function must return a tensor, it returned {type(output).__name__}")
        if output.ndim:
            raise ArgumentError(
                f"{name}: the function must return a tensor without dimensions, it returned shape "
                f"{list(output.shape)}: use vjp or jacrev"
            )
        if output.is_complex():
            raise GraphError(f"{name}: the function must return a real number, it returned {output.dtype}")
    create_graph = recording and depends_outside([output])
    found = gradients([output], inputs, [None], create_graph, retain_graph=True if has_aux or create_graph else None)
    return tree_unflatten(found, spec), (released(output, recording), released_aux(aux, recording) if has_aux else None)


@overload
def vjp(
    func: Callable[..., Output], *primals: Any, has_aux: Literal[False] = False
) -> tuple[Output, Callable[..., tuple[Any, ...]]]: ...
@overload
def vjp(
    func: Callable[..., tuple[Output, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[Output, Callable[..., tuple[Any, ...]], Aux]: ...
@overload
def vjp(func: Function, *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``func`` and the function that multiplies vectors with its Jacobian.

    Args:
        func: takes the primals, returns tensors or a structure of them; with ``has_aux`` a pair of these and of tensors
            to pass on.
        primals: tensors, or structures of them.

    Returns:
        ``(output, vjp_fn)``, or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangents)`` takes a structure like the output and
        returns a tuple with one entry per primal; it may be called any number of times.

    Raises:
        ArgumentError: for outputs that are no tensors, and for cotangents of another structure.
        ArgumentValueError: for primals that are no tensors.
    """
    recording = is_grad_enabled()
    leaves, spec = tree_flatten(primals)
    scope = TransformLevel()
    with scope, enable_grad():
        inputs = [alias(t, scope) for t in leaves]
        output, aux = split_aux("vjp", func(*tree_unflatten(inputs, spec)), has_aux)
        outputs, out_spec = results_of("vjp", output)
    outside = depends_outside(outputs)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple[Any, ...]:
        vectors, structure = tree_flatten(cotangents)
        if structure != out_spec:
            raise ArgumentError(f"vjp: the cotangents have the structure {structure!r}, the outputs {out_spec!r}")
        wanted = is_grad_enabled() if create_graph is None else create_graph
        attached = outside or any(isinstance(v, Tensor) and v.requires_grad for v in vectors)
        found = gradients(outputs, inputs, vectors, wanted and attached, retain_graph or (wanted and attached))
        result: tuple[Any, ...] = tree_unflatten(found, spec)
        return result

    result = tree_unflatten([released(t, recording) for t in outputs], out_spec)
    return (result, vjp_fn, released_aux(aux, recording)) if has_aux else (result, vjp_fn)
