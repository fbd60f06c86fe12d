"""Jacobians, Hessians and their products with vectors, of functions of proxies.

All of them only record: nothing waits for the server until a result is read, so that a product is one round trip.
``strict=True`` is the exception, since only the server knows whether a gradient depends on an input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, GraphError
from gradwire_protocol.meta import meta

from .._core.backward.backward import grad
from .._core.context.modes import enable_grad, is_grad_enabled, set_grad_enabled
from .._core.dispatch.dispatch import call
from .._core.dispatch.transform_levels import anchored
from .._core.graph.forward_levels import duals_of
from .._core.surface.creation_like import ones_like, zeros_like
from .._core.tensor.tensor import Tensor
from .forward_jacobian import forward_jacobian

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]
Tensors = tuple[Any, ...]
Several: TypeAlias = tuple[Tensor, ...]
Inputs = TypeVar("Inputs", Tensor, tuple[Tensor, ...])
Outputs = TypeVar("Outputs")


# Arguments and results


def _tupled(value: Any, what: str, name: str) -> tuple[bool, Tensors]:
    """Whether ``value`` is a tuple, and it as a tuple of tensors."""
    several = isinstance(value, tuple)
    items = value if several else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            where = f"entry {i} of it" if several else "it"
            raise ArgumentTypeError(
                f"{name}: {what} must be a tensor or a tuple of tensors, {where} is {type(item).__name__}"
            )
    return several, items


def _single(results: Tensors, several: bool) -> Any:
    return results if several else results[0]


def _fresh(tensors: Tensors, create_graph: bool, requires_grad: bool) -> Tensors:
    """Tensors of our own, so that a derivative is for the arguments and not for what the function captured."""
    return tuple(
        t.view(t.shape) if create_graph and t.requires_grad
        else t.view(t.shape).requires_grad_() if requires_grad and duals_of(t)  # detach() would take the tangent
        else t.detach().requires_grad_(requires_grad)
        for t in tensors
    )  # fmt: skip


def _finished(tensors: Tensors, create_graph: bool) -> Tensors:
    return tensors if create_graph else tuple(t.detach() for t in tensors)


def _vector(v: Any, name: str, like: Tensors, several: bool, create_graph: bool, what: str) -> Tensors:
    """The vector of a product, checked against the tensors it is multiplied with; ones where it may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            shapes = ", ".join(str(list(t.shape)) for t in like)
            raise ArgumentError(
                f"{name}: v can be left out only where {what} is one tensor of one element, here of {shapes}"
            )
        return (ones_like(like[0]).detach(),)
    _, found = _tupled(v, "v", name)
    found = _fresh(found, create_graph, False)
    if len(found) != len(like):
        raise ArgumentError(f"{name}: v holds {len(found)} tensors, {what} is {len(like)}")
    for i, (have, want) in enumerate(zip(found, like, strict=True)):
        if tuple(have.shape) != tuple(want.shape):
            where = f"entry {i} of v" if several else "v"
            raise ArgumentError(f"{name}: {where} has shape {list(have.shape)}, {what} has {list(want.shape)}")
    return found


def _scalar(outputs: Any, name: str) -> Any:
    """The one output of one element that a second derivative is taken of."""
    several, found = _tupled(outputs, "what the function returns", name)
    if several:
        raise ArgumentError(f"{name}: the function must return one tensor, it returned a tuple of {len(found)}")
    if found[0].numel() != 1:
        raise ArgumentError(f"{name}: the function must return one element, its result has {list(found[0].shape)}")
    return found[0]


# Gradients


def upload_like(tensor: Any, array: np.ndarray[Any, Any]) -> Any:
    """The values of an array as a tensor with the dtype, device and session of another."""
    session, described = tensor._session, tensor._form
    number = session.upload(array, described.dtype, described.device)
    return Tensor._make(session, number, meta(array.shape, described.dtype, described.device))


def _grads(
    outputs: Sequence[Any],
    inputs: Tensors,
    vectors: Sequence[Any] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> list[Any]:
    """One gradient per input. None where there is none: in strict mode as the server sees it, else as known here."""
    given = [None] * len(outputs) if vectors is None else list(vectors)
    chosen = [(o, v) for o, v in zip(outputs, given, strict=True) if o is not None and o.requires_grad]
    if not chosen:
        return [None] * len(inputs)
    for output, vector in chosen:
        if vector is None and output.is_complex():
            raise GraphError(f"a gradient can be left out only for a real tensor, this one is {output.dtype}")
    roots = [anchored(o) for o, _ in chosen]
    return _grads_of(roots, inputs, [v for _, v in chosen], create_graph, strict)


def _grads_of(roots: list[Any], inputs: Tensors, vectors: list[Any], create_graph: bool, strict: bool) -> list[Any]:
    found = list(
        grad(
            roots, inputs, vectors, retain_graph=True, create_graph=create_graph, allow_unused=True,
            materialize_grads=not strict,
        )
    )  # fmt: skip
    if not strict:
        return found
    there = [g for g in found if g is not None]
    values = iter(there[0]._session.read(there) if there else [])
    return [None if g is None or next(values) is None else g for g in found]


def _required(tensors: Sequence[Any]) -> list[bool]:
    """Whether each tensor requires grad, as the server knows it. Costs a round trip."""
    if not all(t.requires_grad for t in tensors):
        return [False if not t.requires_grad else _required([t])[0] for t in tensors]
    session = tensors[0]._session
    session.synchronize()
    rows = session.rows([t._id for t in tensors])
    return [t._id not in rows or bool(rows[t._id]["requires_grad"]) for t in tensors]


def _demand(tensors: Sequence[Any], strict: bool, complaint: str) -> None:
    """In strict mode, refuse a tensor that is missing or does not require grad. ``{i}`` in the text is its number."""
    if not strict:
        return
    present = [t for t in tensors if t is not None]
    required = iter(_required(present) if present else [])
    for i, tensor in enumerate(tensors):
        if tensor is None or not next(required):
            raise GraphError(f"strict mode: {complaint.format(i=i)}")


def _filled(grads: Sequence[Any], like: Tensors, strict: bool, create_graph: bool, what: str, of: str) -> Tensors:
    """Zeros in place of gradients that are missing, which strict mode refuses."""
    if strict:
        for i, found in enumerate(grads):
            if found is None:
                raise GraphError(f"strict mode: {what} does not depend on {of.format(i=i)}")
        if create_graph:
            _demand(grads, True, f"the derivative of {what} does not depend on {of}")
    return tuple(zeros_like(t).detach() if g is None else g for g, t in zip(grads, like, strict=True))


_OUTPUT = "output {i} of the function does not require grad"
_JACOBIAN = "the first derivative for input {i} does not depend on the inputs"
_HESSIAN = "the second derivative for input {i} does not depend on the inputs"


# Products


def vjp(
    func: Callable[..., Outputs],
    inputs: Inputs,
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Outputs, Inputs]:
    """The outputs of ``func`` and the product of a vector with its Jacobian.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors, floating point or complex.
        v: like the outputs, in structure and shapes; may be left out for one output of one element.
        create_graph: let both results be differentiable.
        strict: refuse an input that the outputs do not depend on, instead of answering zeros. Waits for the server.

    Returns:
        What ``func`` returned, and gradients with the structure, shapes and dtypes of ``inputs``.

    Raises:
        ArgumentTypeError: when inputs, outputs or v are not tensors.
        ArgumentError: when v does not fit the outputs.
        GraphError: in strict mode.
    """
    with enable_grad():
        several, sources = _tupled(inputs, "inputs", "vjp")
        sources = _fresh(sources, create_graph, True)
        several_out, outputs = _tupled(func(*sources), "what the function returns", "vjp")
        _demand(outputs, strict, _OUTPUT)
        vectors = _vector(v, "vjp", outputs, several_out, create_graph, "the output")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grads(outputs, sources, vectors, create_graph, strict)
        result = _filled(grads, sources, strict, create_graph, "the output", "input {i}")
        return (
            _single(_finished(outputs, create_graph), several_out),
            _single(_finished(result, create_graph), several),
        )


def jvp(
    func: Callable[..., Outputs],
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Outputs, Outputs]:
    """The outputs of ``func`` and the product of its Jacobian with a vector.

    Found by differentiating the vector-Jacobian product, which is linear in its vector, once more.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors, floating point or complex.
        v: like ``inputs``, in structure and shapes; may be left out for one input of one element.
        create_graph: let both results be differentiable.
        strict: refuse outputs that do not depend on the inputs, instead of answering zeros. Waits for the server.

    Returns:
        What ``func`` returned, and a product with the structure and shapes of it.

    Raises:
        ArgumentTypeError: when inputs, outputs or v are not tensors.
        ArgumentError: when v does not fit the inputs.
        GraphError: in strict mode.
    """
    with enable_grad():
        several, sources = _tupled(inputs, "inputs", "jvp")
        sources = _fresh(sources, create_graph, True)
        vectors = _vector(v, "jvp", sources, several, create_graph, "the input")
        several_out, outputs = _tupled(func(*sources), "what the function returns", "jvp")
        _demand(outputs, strict, _OUTPUT)
        dual = tuple(zeros_like(o).detach().requires_grad_() for o in outputs)
        first = _grads(outputs, sources, dual, True, strict)
        _demand(first, strict, "the gradient for input {i} does not depend on the inputs of the function")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grads(first, dual, vectors, create_graph, strict)
        result = _filled(grads, outputs, strict, create_graph, "the gradient", "the vector of output {i}")
        return (
            _single(_finished(outputs, create_graph), several_out),
            _single(_finished(result, create_graph), several_out),
        )


def _first_gradients(
    name: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[bool, Any, Any, Any, Any]:
    """What both products with a Hessian begin with: whether several inputs were given, the inputs, the vectors, the
    function's value, and its recorded gradients."""
    several, sources = _tupled(inputs, "inputs", name)
    sources = _fresh(sources, create_graph, True)
    vectors = _vector(v, name, sources, several, create_graph, "the input")
    output = func(*sources)
    _demand(_tupled(output, "what the function returns", name)[1], strict, _OUTPUT)
    output = _scalar(output, name)
    first = _grads((output,), sources, None, True, strict)
    _demand(first, strict, _JACOBIAN)
    return several, sources, vectors, output, first


def vhp(
    func: Callable[..., Tensor],
    inputs: Inputs,
    v: Inputs | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Inputs]:
    """The value of ``func`` and the product of a vector with its Hessian. One round trip when it is read.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors, floating point or complex.
        v: like ``inputs``, in structure and shapes; may be left out for one input of one element.
        create_graph: let both results be differentiable.
        strict: refuse a derivative that does not depend on an input, instead of answering zeros. Waits for the server.

    Returns:
        What ``func`` returned, and a product with the structure, shapes and dtypes of ``inputs``.

    Raises:
        ArgumentTypeError: when inputs, output or v are not tensors.
        ArgumentError: when v does not fit the inputs, or the output is not one element.
        GraphError: in strict mode.
    """
    with enable_grad():
        several, sources, vectors, output, first = _first_gradients("vhp", func, inputs, v, create_graph, strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grads(first, sources, vectors, create_graph, strict)
        result = _filled(grads, sources, strict, create_graph, "the first derivative", "input {i}")
        return _finished((output,), create_graph)[0], _single(_finished(result, create_graph), several)


def hvp(
    func: Callable[..., Tensor],
    inputs: Inputs,
    v: Inputs | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Inputs]:
    """The value of ``func`` and the product of its Hessian with a vector. One round trip when it is read.

    One differentiation more than :func:`vhp`, which gives the same where the Hessian is symmetric.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors, floating point or complex.
        v: like ``inputs``, in structure and shapes; may be left out for one input of one element.
        create_graph: let both results be differentiable.
        strict: refuse a derivative that does not depend on an input, instead of answering zeros. Waits for the server.

    Returns:
        What ``func`` returned, and a product with the structure, shapes and dtypes of ``inputs``.

    Raises:
        ArgumentTypeError: when inputs, output or v are not tensors.
        ArgumentError: when v does not fit the inputs, or the output is not one element.
        GraphError: in strict mode.
    """
    with enable_grad():
        several, sources, vectors, output, first = _first_gradients("hvp", func, inputs, v, create_graph, strict)
        dual = tuple(zeros_like(t).detach().requires_grad_() for t in sources)
        second = _grads(first, sources, dual, True, strict)
        _demand(second, strict, _HESSIAN)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grads(second, dual, vectors, create_graph, strict)
        result = _filled(grads, sources, strict, create_graph, "the second derivative", "the vector of input {i}")
        return _finished((output,), create_graph)[0], _single(_finished(result, create_graph), several)


# Matrices


def _check_strategy(name: str, option: str, strategy: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(f"{name}: {option} is 'reverse-mode' or 'forward-mode', not {strategy!r}")


@overload
def jacobian(
    func: Callable[..., Tensor], inputs: Tensor, create_graph: bool = ..., strict: bool = ..., vectorize: bool = ...,
    strategy: str = ...,
) -> Tensor: ...  # fmt: skip
@overload
def jacobian(
    func: Callable[..., Tensor], inputs: Several, create_graph: bool = ..., strict: bool = ..., vectorize: bool = ...,
    strategy: str = ...,
) -> Several: ...  # fmt: skip
@overload
def jacobian(
    func: Callable[..., Several], inputs: Tensor, create_graph: bool = ..., strict: bool = ..., vectorize: bool = ...,
    strategy: str = ...,
) -> Several: ...  # fmt: skip
@overload
def jacobian(
    func: Callable[..., Several], inputs: Several, create_graph: bool = ..., strict: bool = ..., vectorize: bool = ...,
    strategy: str = ...,
) -> tuple[Several, ...]: ...  # fmt: skip


def jacobian(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of ``func`` at ``inputs``, a row for each element of each output.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor, or a tuple of tensors, floating point or complex.
        create_graph: let the result be differentiable.
        strict: refuse an output that does not depend on an input, instead of answering zeros. Waits for the server
            once per row.
        vectorize: find all rows by one backward, mapped over them, instead of one after another. As in PyTorch it
            excludes ``strict`` and admits complex outputs.
        strategy: ``"reverse-mode"``, or ``"forward-mode"`` for a column at a time; this needs ``vectorize`` and
            excludes ``create_graph`` and ``strict``.

    Returns:
        For one output and one input a tensor of shape ``output.shape + input.shape`` with the input's dtype; a tuple of
        them over the inputs, over the outputs, or nested with the outputs outside, where there are tuples of those.

    Raises:
        ArgumentTypeError: when inputs or outputs are not tensors.
        GraphError: in strict mode, and for a complex output without ``vectorize``.
        ArgumentError: for ``strict`` with ``vectorize``.
        NotImplementedError: for ``strategy="forward-mode"`` with ``create_graph`` or without ``vectorize``.
    """
    _check_strategy("jacobian", "strategy", strategy)
    if strategy == "forward-mode":
        several, sources = _tupled(inputs, "inputs", "jacobian")
        return forward_jacobian(func, sources, several, create_graph, strict, vectorize)
    with enable_grad():
        several, sources = _tupled(inputs, "inputs", "jacobian")
        sources = _fresh(sources, create_graph, True)
        several_out, outputs = _tupled(func(*sources), "what the function returns", "jacobian")
        _demand(outputs, strict, _OUTPUT)
        if strict and vectorize:
            raise ArgumentError("jacobian: strict=True and vectorize=True exclude each other")
        rows = []
        for i, output in enumerate(outputs):
            if output.is_complex() and not vectorize:
                raise GraphError(f"jacobian: output {i} is {output.dtype}: pass vectorize=True for complex outputs")
            row = (_rows_at_once if vectorize else _rows)(i, output, sources, create_graph, strict)
            rows.append(_single(_finished(row, create_graph), several))
    return _single(tuple(rows), several_out)


def _rows_at_once(i: int, output: Any, sources: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of one output for every input, by one backward that is mapped over the rows."""
    count = output.numel()
    shape = tuple(output.shape)
    found: Sequence[Any] = [None] * len(sources)
    if output.requires_grad and count:
        flat = anchored(output.reshape(-1))
        seeds = call("eye", count, None, output.dtype, output._form.device)
        found = grad(
            [flat], sources, [seeds], retain_graph=True, create_graph=create_graph, allow_unused=True,
            is_grads_batched=True,
        )  # fmt: skip
    return tuple(
        call("zeros", (*shape, *t.shape), t.dtype, t._form.device) if g is None else g.reshape(shape + tuple(t.shape))
        for g, t in zip(found, sources, strict=True)
    )


def _rows(i: int, output: Any, sources: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of one output for every input."""
    count = output.numel()
    shape = tuple(output.shape)
    if not output.requires_grad or count == 0:
        return tuple(zeros_like(t).detach().expand(shape + tuple(t.shape)).clone() for t in sources)
    flat = anchored(output.reshape(-1))
    columns: list[list[Any]] = [[] for _ in sources]
    for seed in upload_like(output, np.eye(count)).unbind(0):
        found = _grads_of([flat], sources, [seed], create_graph, strict)
        filled = _filled(found, sources, strict, create_graph, f"output {i}", "input {i}")
        for column, entry in zip(columns, filled, strict=True):
            column.append(entry)
    return tuple(
        call("stack", column, 0).reshape(shape + tuple(t.shape)) for column, t in zip(columns, sources, strict=True)
    )


@overload
def hessian(
    func: Callable[..., Tensor], inputs: Tensor, create_graph: bool = ..., strict: bool = ..., vectorize: bool = ...,
    outer_jacobian_strategy: str = ...,
) -> Tensor: ...  # fmt: skip
@overload
def hessian(
    func: Callable[..., Tensor], inputs: Several, create_graph: bool = ..., strict: bool = ..., vectorize: bool = ...,
    outer_jacobian_strategy: str = ...,
) -> tuple[Several, ...]: ...  # fmt: skip


def hessian(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The matrix of second derivatives of a function with one value.

    Args:
        func: takes the inputs, returns a tensor of one element.
        inputs: a tensor, or a tuple of tensors, floating point or complex.
        create_graph: let the result be differentiable.
        strict: refuse a derivative that does not depend on an input, instead of answering zeros. Waits for the server.
        vectorize: find all rows by one backward, mapped over them.
        outer_jacobian_strategy: how the gradient is differentiated, see ``strategy`` of :func:`jacobian`.

    Returns:
        For one input a tensor of shape ``input.shape + input.shape``; for a tuple of inputs a tuple of tuples, entry
        ``[i][j]`` of shape ``inputs[i].shape + inputs[j].shape``.

    Raises:
        ArgumentTypeError: when inputs or output are not tensors.
        ArgumentError: when the output is not one tensor of one element, and for ``strict`` with ``vectorize``.
        GraphError: in strict mode.
        NotImplementedError: for ``outer_jacobian_strategy="forward-mode"`` with ``create_graph`` or without
            ``vectorize``.
    """
    several, sources = _tupled(inputs, "inputs", "hessian")
    _check_strategy("hessian", "outer_jacobian_strategy", outer_jacobian_strategy)
    if outer_jacobian_strategy == "forward-mode" and not vectorize:
        raise NotImplementedError("hessian: outer_jacobian_strategy='forward-mode' is for vectorize=True only")

    def value(*arguments: Any) -> Any:
        output = func(*arguments)
        _demand(_tupled(output, "what the function returns", "hessian")[1], strict, _OUTPUT)
        return _scalar(output, "hessian").reshape(())

    def first(*arguments: Any) -> Tensors:
        found: Tensors = jacobian(value, arguments, create_graph=True)
        _demand(found, strict, _JACOBIAN)
        return found

    result = jacobian(first, sources, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if several else result[0][0]
