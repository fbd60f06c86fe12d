"""Derivatives compared with finite differences: ``gradcheck`` and ``gradgradcheck``.

Every perturbed evaluation and every gradient is recorded first; one round trip then reads them all.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradwire_protocol import dtypes

from .._core.backward.backward import grad
from .._core.context.modes import no_grad
from .._core.dispatch.transform_levels import anchored
from .._core.tensor.tensor import Tensor
from .functional import upload_like
from .gradcheck_modes import Batched, ForwardMode, GradcheckError, compare_slopes, undefined_gradients

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Array = np.ndarray[Any, Any]


@dataclass
class _Limits:
    """What is checked, and what counts as equal."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    dtypes: bool
    backward: bool
    forward: bool
    batched: bool
    batched_forward: bool


def _tupled(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _differentiable(outputs: Any) -> tuple[Any, ...]:
    return tuple(o for o in _tupled(outputs) if o.requires_grad)


def _checked_inputs(inputs: tuple[Any, ...]) -> list[int]:
    """The positions of the inputs to differentiate for."""
    found = []
    for i, tensor in enumerate(inputs):
        if not isinstance(tensor, Tensor) or not tensor.requires_grad:
            continue
        if tensor.dtype not in (dtypes.float64, dtypes.complex128):
            warnings.warn(
                f"gradcheck: input {i} is {tensor.dtype}; finite differences are too coarse in less than double "
                "precision and the check will likely fail",
                UserWarning,
                stacklevel=4,
            )
        if any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape, strict=True)):
            raise RuntimeError(
                f"gradcheck: input {i} of shape {list(tensor.shape)} has a stride of 0, so that its elements cannot be "
                "perturbed one by one: call .contiguous() on it"
            )
        found.append(i)
    if not found:
        raise ValueError("gradcheck: no input requires grad, so there is nothing to check")
    return found


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of ``func`` with central differences, for every input that requires grad.

    Complex inputs are perturbed along both axes and compared with the conjugate Wirtinger derivative; of a complex
    output the real and the imaginary part are checked. Outputs without a gradient are left out; if none has one, the
    function must be constant.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad should be float64 or complex128. They are written to in
            place, unnoticed by autograd, and then restored.
        eps: the size of a perturbation.
        atol, rtol: tolerances, as of ``allclose``, with the numerical value as the reference.
        raise_exception: raise on a mismatch rather than return False.
        nondet_tol: how far two runs of backward may differ.
        check_undefined_grad: check that outputs may lack a gradient while others have one.
        check_grad_dtypes: check that gradients have their inputs' dtypes.
        check_batched_grad: check that gradients under ``vmap`` are those computed one by one.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: compare derivatives of forward mode, too.
        check_backward_ad: compare those of backward.
        fast_mode: compare one random projection instead of whole Jacobians; complex functions are compared whole.
        masked: accepted for compatibility; it concerns sparse tensors, which do not exist here.

    Returns:
        Whether all gradients agree.

    Raises:
        GradcheckError: for a mismatch, naming the output, the input and the largest deviation.
        ValueError: when no input requires grad.
        RuntimeError: for an input that is expanded.
        AssertionError: for options that exclude each other, or an output whose shape depends on the values.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("gradcheck: check_forward_ad and check_backward_ad are both off: nothing to check")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("gradcheck: check_batched_grad needs check_backward_ad")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("gradcheck: check_batched_forward_grad needs check_forward_ad")
    limits = _Limits(
        eps, atol, rtol, nondet_tol, check_grad_dtypes, check_backward_ad, check_forward_ad, check_batched_grad,
        check_batched_forward_grad,
    )  # fmt: skip
    try:
        _check(func, _tupled(inputs), limits, check_undefined_grad, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Callable[..., Any], inputs: tuple[Any, ...], limits: _Limits, undefined: bool, fast: bool) -> None:
    positions = _checked_inputs(inputs)
    sources = [inputs[i] for i in positions]
    outputs = _tupled(func(*inputs))
    live = [k for k, o in enumerate(outputs) if o.requires_grad] if limits.backward else []
    numbers = [k for k, o in enumerate(outputs) if o.is_floating_point() or o.is_complex()]
    fast = fast and not any(t.is_complex() for t in (*sources, *outputs))
    directions = [_probes(t, fast) for t in sources]
    recorded = _Recorded(sources[0])

    # Analytical: per output and seed, the gradients of all inputs, twice.
    seeds = [_probes(outputs[k], fast) for k in live]
    for k, table in zip(live, seeds, strict=True):
        recorded.gradients(outputs[k], sources, table)
    zero_count = recorded.zero_gradients([outputs[k] for k in live], sources, undefined)
    forward = ForwardMode(func, inputs, positions, directions, undefined) if limits.forward else None
    batched = Batched()
    for k in live if limits.batched else []:
        batched.backward(outputs[k], k, sources)
    for position in positions if limits.batched_forward else []:
        batched.forward(func, inputs, position)
    recorded.add([*(forward.wanted if forward else []), *batched.wanted])
    # Numerical: per input and direction, the outputs on either side. Last, since it writes to the inputs.
    for source, table in zip(sources, directions, strict=True):
        recorded.perturbed(func, inputs, outputs, source, table * limits.eps)

    values = recorded.read()
    analytical = [
        [[[next(values) for _ in sources] for _ in range(2)] for _ in table] for table in seeds
    ]  # [output][seed][run][input]
    zeros = [next(values) for _ in range(zero_count)]
    slopes = forward.take(values) if forward else []  # [input][direction][output among the numbers]
    batched.compare(values)
    numerical = [
        [[next(values) for _ in outputs] for _ in range(2 * len(table))] for table in directions
    ]  # [input][evaluation][output]

    for j, (position, source) in enumerate(zip(positions, sources, strict=True)):
        steps = [
            [(_wide(b) - _wide(a)).reshape(-1) / (2 * limits.eps) for a, b in zip(low, high, strict=True)]
            for low, high in zip(numerical[j][::2], numerical[j][1::2], strict=True)
        ]  # [direction][output]
        if limits.backward and not live and any(np.any(part != 0) for step in steps for part in step):
            raise GradcheckError(
                f"no output has a gradient, yet the function is not constant: its finite differences for input "
                f"{position} are not zero"
            )
        for n, k in enumerate(numbers if forward and steps else []):
            atol = limits.atol * (float(directions[j].sum()) if fast else 1.0)
            where = f"output {k} with respect to input {position}"
            compare_slopes([s[k] for s in steps], [s[n] for s in slopes[j]], where, atol, limits.rtol)
        for n, k in enumerate(live if steps else []):  # an input without elements has none to compare
            rows = [_agreeing(runs[0][j], runs[1][j], source, (k, position), limits) for runs in analytical[n]]
            _compare(
                np.array([step[k] for step in steps]).reshape(len(steps), -1), np.array(rows), directions[j], seeds[n],
                source, outputs[k], (k, position), limits, fast,
            )  # fmt: skip
    for value in zeros:
        if np.any(value != 0):
            raise GradcheckError(
                "backward was not multiplied by the output's gradient: zeros, or gradients that are undefined, gave "
                "something else"
            )
    if recorded.failure is not None:
        warnings.warn(
            "gradcheck: backward fails without a gradient; check_undefined_grad=False leaves this check out",
            UserWarning,
            stacklevel=4,
        )
        raise recorded.failure


def _probes(tensor: Any, fast: bool) -> Array:
    """Vectors to go along or to multiply with, of shape (count, *tensor.shape): the axes, and for complex tensors the
    imaginary axes after them; in fast mode one random unit vector without negative entries."""
    count, shape = tensor.numel(), tuple(tensor.shape)
    if fast and count:
        vector = np.random.default_rng().random(count) + 1e-3
        return np.asarray(vector / np.linalg.norm(vector)).reshape(1, *shape)
    axes = np.eye(count)
    if tensor.is_complex():
        axes = np.concatenate([axes, 1j * axes])
    return np.asarray(axes.reshape(len(axes), *shape))


class _Recorded:
    """Tensors to read, in order."""

    def __init__(self, first: Any) -> None:
        self._session = first._session
        self._wanted: list[Any] = []
        self.failure: Exception | None = None

    def perturbed(
        self, func: Callable[..., Any], inputs: tuple[Any, ...], outputs: tuple[Any, ...], source: Any, steps: Array
    ) -> None:
        """The outputs at ``source - step`` and at ``source + step``, for each step.

        The input itself is written to, since a function may also hold it without taking it.
        """
        if not len(steps):
            return
        with no_grad():
            memory = source.data
            original = memory.clone()
            table = upload_like(source, steps)
        try:
            for i in range(len(steps)):
                for side in (original - table[i], original + table[i]):
                    memory.copy_(side)
                    self._outputs(_tupled(func(*inputs)), outputs, i)
        finally:
            memory.copy_(original)

    def _outputs(self, found: tuple[Any, ...], expected: tuple[Any, ...], i: int) -> None:
        for k, (have, want) in enumerate(zip(found, expected, strict=True)):
            if have.shape != want.shape or have.dtype != want.dtype:
                raise AssertionError(
                    f"gradcheck: output {k} is {have.dtype} {list(have.shape)} when element {i} of an input is "
                    f"perturbed, and {want.dtype} {list(want.shape)} otherwise"
                )
            self._wanted.append(have.detach().clone())

    def gradients(self, output: Any, sources: list[Any], seeds: Array) -> None:
        """The gradients for each seed, twice."""
        if not len(seeds):
            return
        root, table = anchored(output), upload_like(output, seeds)
        for i in range(len(seeds)):
            for _ in range(2):
                self._gradients([root], sources, [table[i]])

    def zero_gradients(self, outputs: list[Any], sources: list[Any], undefined: bool) -> int:
        """The gradients where the outputs' are zero, or undefined. Returns how many."""
        before = len(self._wanted)
        if outputs:
            vectors = [upload_like(o, np.zeros(tuple(o.shape))) for o in outputs]
            self._gradients([anchored(o) for o in outputs], sources, vectors)
            if undefined:
                found, self.failure = undefined_gradients(outputs, sources, vectors)
                self._wanted += found
        return len(self._wanted) - before

    def _gradients(self, roots: list[Any], sources: list[Any], vectors: list[Any]) -> None:
        self._wanted += grad(roots, sources, vectors, retain_graph=True, allow_unused=True, materialize_grads=True)

    def add(self, tensors: list[Any]) -> None:
        """More to read."""
        self._wanted += tensors

    def read(self) -> Any:
        """An iterator over the values. The one round trip."""
        return iter(self._session.read(self._wanted) if self._wanted else [])


def _wide(value: Array) -> Array:
    """Numbers that can be subtracted and divided: bools and integers too."""
    return np.asarray(value if value.dtype.kind in "fc" else value.astype(np.float64))


def _agreeing(one: Array, two: Array, source: Any, names: tuple[int, int], limits: _Limits) -> Array:
    """A gradient that was computed twice, flat, after the checks of dtype, shape and repeatability."""
    where = f"the gradient of output {names[0]} for input {names[1]}"
    if limits.dtypes and one.dtype.name != source.dtype.name:
        raise GradcheckError(f"{where} is {one.dtype.name}, the input {source.dtype.name}: a dtype mismatch")
    if one.shape != tuple(source.shape):
        raise GradcheckError(f"{where} has shape {list(one.shape)}, the input {list(source.shape)}")
    if one.size and not np.array_equal(one, two, equal_nan=True):
        deviation = np.max(np.abs(one - two))
        if not deviation <= limits.nondet_tol:
            raise GradcheckError(
                f"{where} is not reentrant: two runs differ by {deviation:.3g}, nondet_tol is {limits.nondet_tol:g}"
            )
    return one.reshape(-1)


def _compare(
    steps: Array, rows: Array, directions: Array, seeds: Array, source: Any, output: Any, names: tuple[int, int],
    limits: _Limits, fast: bool,
) -> None:  # fmt: skip
    """Compare differences (direction, output element) with gradients (seed, input element)."""
    count = source.numel()
    if not count or not output.numel():
        return
    atol = limits.atol
    if fast:
        numerical = steps @ seeds.reshape(1, -1).T
        analytical = directions.reshape(1, -1) @ rows.T
        atol *= float(directions.sum() * seeds.sum())
    else:
        parts = np.concatenate([steps.real, steps.imag], axis=1) if output.is_complex() else steps
        numerical = parts[:count] + 1j * parts[count:] if source.is_complex() else parts
        analytical = rows.T
    deviation = np.abs(analytical - numerical)
    near = np.isclose(analytical, numerical, rtol=limits.rtol, atol=atol)
    if near.all():
        return
    worst = np.unravel_index(int(np.argmax(np.where(near, -1.0, np.nan_to_num(deviation, nan=np.inf)))), near.shape)
    part = ""
    if output.is_complex() and not fast:
        part = f" (its {'imaginary' if worst[1] >= output.numel() else 'real'} part)"
    raise GradcheckError(
        f"Jacobian mismatch for output {names[0]} with respect to input {names[1]}: {int((~near).sum())} of "
        f"{near.size} entries differ, the largest deviation is {deviation[worst]:.6g}, at element "
        f"{int(worst[1]) % max(output.numel(), 1)} of the output{part} and element {int(worst[0])} of the input"
        f"{' (of a random projection)' if fast else ''}, where numerical is {numerical[worst]:.6g} and analytical "
        f"{analytical[worst]:.6g} (atol {atol:g}, rtol {limits.rtol:g})\n"
        f"numerical:\n{numerical}\nanalytical:\n{analytical}"
    )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives with central differences of the first: :func:`gradcheck` of the function's gradient,
    for the inputs and for the gradients of the outputs.

    Args:
        grad_outputs: a tensor per output that has a gradient; random ones that require grad by default.
        gen_non_contig_grad_outputs: let the random ones be non-contiguous.
        check_fwd_over_rev: differentiate the gradient by forward mode.
        check_rev_over_rev: differentiate it by backward.

    The other arguments, the result and the errors are those of :func:`gradcheck`.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("gradgradcheck: check_fwd_over_rev and check_rev_over_rev are both off")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("gradgradcheck: check_undefined_grad needs check_rev_over_rev")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("gradgradcheck: check_batched_grad needs check_rev_over_rev")
    tensors = _tupled(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*tensors))
        vectors: tuple[Any, ...] = tuple(_random_like(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        vectors = _tupled(grad_outputs)

    wanted = {i for i, t in enumerate((*tensors, *vectors)) if isinstance(t, Tensor) and t.requires_grad}

    def gradient(*given: Any) -> tuple[Any, ...]:
        split = len(given) - len(vectors)
        # Forward mode calls this with detached inputs.
        arguments = tuple(t.requires_grad_() if i in wanted else t for i, t in enumerate(given))
        sources = [t for i, t in enumerate(arguments[:split]) if i in wanted]
        roots: Sequence[Any] = _differentiable(func(*arguments[:split]))
        found = grad(roots, sources, arguments[split:], create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient, tensors + vectors, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _random_like(output: Any, spread: bool) -> Any:
    """Numbers from [-1, 1) with the shape and dtype of an output, requiring grad."""
    generator = np.random.default_rng()
    shape = tuple(output.shape)
    if spread and shape:
        shape = (*shape, 2)
    array = generator.uniform(-1, 1, shape)
    if output.is_complex():
        array = array + 1j * generator.uniform(-1, 1, shape)
    made = upload_like(output, array)
    return (made.select(-1, 0) if spread and output.ndim else made).requires_grad_()
