"""Optimizer steps: arithmetic on a parameter's memory, in PyTorch's order of operations.

On the CPU a step goes through its arrays in pieces that stay in the cache, so that a dozen passes cost about one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import float32
from gradwire_protocol.errors import GraphError

from ..autograd.engine_context import EngineContext
from ..autograd.functional import F
from ..autograd.registry import control, row
from ..autograd.tensor import Tensor
from ..runtime.arrays import Array, Namespace, native
from ..runtime.casting import cast

PIECE = 1 << 15
"""Elements worked on at a time."""


class Piece:
    """A stretch of one parameter with its gradient, its states, and memory to compute in.

    The gradient is not written to: what changes it does so in ``a`` or ``b``. ``c`` is free for anything.
    """

    __slots__ = ("a", "b", "c", "g", "p", "states", "xp")

    def __init__(self, xp: Namespace, p: Array, g: Array, states: list[Any], memory: list[Array]) -> None:
        self.xp = xp
        self.p = p
        self.g = g
        self.states = states
        self.a, self.b, self.c = memory

    def negate(self) -> None:
        """Turn the gradient around."""
        self.g = self.xp.negative(self.g, out=self.a)

    def decay(self, factor: float) -> None:
        """Add ``factor`` times the parameter to the gradient."""
        self.xp.multiply(self.p, factor, out=self.b)
        self.b += self.g
        self.g = self.b

    def add_to_p(self, x: Array, factor: float) -> None:
        """``p += factor * x``."""
        self.xp.multiply(x, factor, out=self.c)
        self.p += self.c

    @property
    def free(self) -> Any:
        """Memory that the gradient is not in: the gradient may be in ``a`` or ``b``, of which only one is taken."""
        return self.b if self.g is self.a else self.a

    def divide_to_p(self, x: Array, divisor: Array, factor: float) -> None:
        """``p += factor * x / divisor``; ``divisor`` is not ``c``."""
        self.xp.multiply(x, factor, out=self.c)
        self.c /= divisor
        self.p += self.c

    def add_square(self, target: Array, x: Array, factor: float) -> None:
        """``target += factor * x * x``."""
        self.xp.multiply(x, factor, out=self.c)
        self.c *= x
        target += self.c

    def blend(self, target: Array, x: Array, weight: float) -> None:
        """Move ``target`` towards ``x``: exactly to it for a weight of 1."""
        if weight < 0.5:
            self.xp.subtract(x, target, out=self.c)
            self.c *= weight
            target += self.c
        else:
            self.xp.subtract(x, target, out=self.c)
            self.c *= 1 - weight
            self.xp.subtract(x, self.c, out=target)


def working(tensor: Tensor) -> Array:
    """The array to compute on: complex as pairs of reals, half precision as float32."""
    array, dtype = tensor.array, tensor.meta.dtype
    if dtype is float32:  # as most are
        return array
    if dtype.is_complex:
        return array.reshape((*array.shape, 1)).view(native(dtype.to_real()))
    return cast(array, native(float32)) if dtype.is_low_precision else array


def pieces(
    params: list[Tensor], states: list[list[Any]], maximize: bool, skip: Tensor | None,
    whole: Callable[..., Any] | None = None,
) -> Iterator[tuple[int, Piece]]:  # fmt: skip
    """(position, piece) of all parameters that have a gradient.

    When a parameter is done, its changes are kept and counted in its version, and in those of its states. ``whole`` is
    given ``(position, parameter, gradient, states)`` as arrays of the host: it may do all of a parameter's step, or
    return ``NotImplemented``.

    Raises:
        GraphError: for a parameter that was computed.
    """
    for i, param in due(params, skip):
        xp = param.engine.backends[param.device].xp
        written = [param, *(state[i] for state in states)]
        arrays: list[Any] = [None if t is None else working(t) for t in written]
        p, g, kept = arrays[0], working(param.grad), arrays[1:]
        if whole is not None and xp is np and whole(i, p, g, kept) is not NotImplemented:
            keep(written, arrays)
            continue
        for piece in _cut(xp, p, g, kept):
            if maximize:
                piece.negate()
            yield i, piece
        keep(written, arrays)


def due(params: list[Tensor], skip: Tensor | None) -> Iterator[tuple[int, Any]]:
    """(position, parameter) of those that have a gradient; none when the step is to be skipped.

    Raises:
        GraphError: for a parameter that was computed.
    """
    if skip is not None and bool(skip.array.any()):
        return
    for i, param in enumerate(params):
        if param.grad is None:
            continue
        if not param.is_leaf:
            raise GraphError(f"parameter {i}, a {param.meta!r} tensor, is not a leaf; an optimizer updates only leaves")
        yield i, param


def stepped_at_once(
    name: str, params: list[Tensor], states: list[list[Any]], skip: Tensor | None, *numbers: Any
) -> bool:
    """Whether the parameters' GPU has changed them all, in a few launches; else nothing has changed.

    Raises:
        GraphError: for a parameter that was computed.
    """
    backend = params[0].engine.backends[params[0].device] if params else None
    if backend is None or backend.fused is None or skip is not None:
        return False
    chosen = list(due(params, None))
    tensors = [(param, param.grad, *(state[i] for state in states)) for i, param in chosen]
    if any(t is not None and t.device != backend.device for row in tensors for t in row):
        return False
    rows = [(i, tuple(None if t is None else t.array for t in row)) for (i, _), row in zip(chosen, tensors)]
    if backend.fused[name].run(backend.xp, rows, *numbers) is NotImplemented:
        return False
    for param, _, *kept in tensors:
        for tensor in (param, *kept):
            if tensor is not None:
                tensor.storage.version += 1
    return True


def keep(tensors: list[Tensor | None], arrays: list[Any]) -> None:
    """Count the change of these tensors, and write it back to those whose working array is a copy."""
    for tensor, array in zip(tensors, arrays, strict=True):
        if tensor is not None and array is not None:
            if array is not tensor.array and tensor.dtype.is_low_precision:
                tensor.array[...] = cast(array, tensor.array.dtype)
            tensor.storage.version += 1


def _cut(xp: Namespace, p: Array, g: Array, states: list[Array | None]) -> Iterator[Piece]:
    arrays = [p, g, *(s for s in states if s is not None)]
    if xp is not np or p.size <= PIECE or not all(x.flags.c_contiguous for x in arrays):
        yield Piece(xp, p, g, states, [xp.empty(p.shape, p.dtype) for _ in range(3)])
        return
    memory = [xp.empty(PIECE, p.dtype) for _ in range(3)]
    flat = [None if s is None else s.reshape(-1) for s in states]
    p, g = p.reshape(-1), g.reshape(-1)
    for start in range(0, p.size, PIECE):
        part = slice(start, start + PIECE)
        size = min(PIECE, p.size - start)
        yield Piece(xp, p[part], g[part], [None if s is None else s[part] for s in flat], [m[:size] for m in memory])


@control("sgd_step", writes="operands")
def sgd_step(
    engine: EngineContext, params: list[Tensor], momentum_buffers: list[Tensor | None], lr: float, momentum: float,
    dampening: float, weight_decay: float, nesterov: bool, maximize: bool, first: tuple[bool, ...],
    skip: Tensor | None,
) -> None:  # fmt: skip
    numbers = (lr, momentum, dampening, weight_decay, nesterov, maximize, first)
    if stepped_at_once("sgd_step", params, [momentum_buffers], skip, *numbers):
        return
    compiled = row("sgd_step").compiled if engine.compiled else None

    def whole(i: int, p: Any, g: Any, kept: list[Any]) -> Any:
        assert compiled is not None
        starts = bool(first) and first[i]
        return compiled(np, p, g, *kept, lr, momentum, dampening, weight_decay, nesterov, maximize, starts)

    for i, piece in pieces(params, [momentum_buffers], maximize, skip, None if compiled is None else whole):
        if weight_decay:
            piece.decay(weight_decay)
        (buffer,) = piece.states
        direction = piece.g
        if buffer is not None:
            if first and first[i]:
                buffer[...] = piece.g
            else:
                buffer *= momentum
                if dampening:
                    buffer += piece.xp.multiply(piece.g, 1 - dampening, out=piece.c)
                else:
                    buffer += piece.g
            direction = buffer
            if nesterov:
                piece.xp.multiply(buffer, momentum, out=piece.c)
                direction = piece.xp.add(piece.g, piece.c, out=piece.b)
        piece.add_to_p(direction, -lr)


@control("adam_step", writes="operands")
def adam_step(
    engine: EngineContext, params: list[Tensor], exp_avgs: list[Tensor], exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor | None], lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
    step: float, amsgrad: bool, maximize: bool, decoupled_weight_decay: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    step_size = lr / (1 - beta1**step)
    correction = (1 - beta2**step) ** 0.5
    states: list[list[Any]] = [exp_avgs, exp_avg_sqs, max_exp_avg_sqs]
    numbers = (lr, step_size, correction, beta1, beta2, eps, weight_decay, decoupled_weight_decay, amsgrad, maximize)
    if stepped_at_once("adam_step", params, states, skip, *numbers):
        return
    compiled = row("adam_step").compiled if engine.compiled else None

    def whole(_: int, p: Any, g: Any, kept: list[Any]) -> Any:
        assert compiled is not None
        decay = (weight_decay, decoupled_weight_decay)
        return compiled(np, p, g, *kept, lr, step_size, correction, beta1, beta2, eps, *decay, amsgrad, maximize)

    for _, piece in pieces(params, states, maximize, skip, None if compiled is None else whole):
        if weight_decay and decoupled_weight_decay:
            piece.p *= 1 - lr * weight_decay
        elif weight_decay:
            piece.decay(weight_decay)
        mean, square, largest = piece.states
        piece.blend(mean, piece.g, 1 - beta1)
        square *= beta2
        piece.add_square(square, piece.g, 1 - beta2)
        if amsgrad and largest is not None:
            piece.xp.maximum(largest, square, out=largest)
            square = largest
        scale = piece.xp.sqrt(square, out=piece.a)
        scale /= correction
        scale += eps
        piece.divide_to_p(mean, scale, -step_size)


@control("rmsprop_step", writes="operands")
def rmsprop_step(
    engine: Any, params: list[Tensor], square_avgs: list[Tensor], grad_avgs: list[Tensor | None],
    momentum_buffers: list[Tensor | None], lr: float, alpha: float, eps: float, weight_decay: float, momentum: float,
    centered: bool, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    for _, piece in pieces(params, [square_avgs, grad_avgs, momentum_buffers], maximize, skip):
        if weight_decay:
            piece.decay(weight_decay)
        square, mean, buffer = piece.states
        g = piece.g
        square *= alpha
        piece.add_square(square, g, 1 - alpha)
        scale = piece.free
        if centered and mean is not None:
            piece.blend(mean, g, 1 - alpha)
            scale[...] = square
            piece.add_square(scale, mean, -1)
            piece.xp.sqrt(scale, out=scale)
        else:
            piece.xp.sqrt(square, out=scale)
        scale += eps
        if momentum and buffer is not None:
            buffer *= momentum
            buffer += piece.xp.divide(g, scale, out=piece.c)
            piece.add_to_p(buffer, -lr)
        else:
            piece.divide_to_p(g, scale, -lr)


@control("adagrad_step", writes="operands")
def adagrad_step(
    engine: EngineContext, params: list[Tensor], state_sums: list[Tensor], lr: float, lr_decay: float,
    weight_decay: float, eps: float, step: float, maximize: bool, skip: Tensor | None,
) -> None:  # fmt: skip
    rate = lr / (1 + (step - 1) * lr_decay)
    for _, piece in pieces(params, [state_sums], maximize, skip):
        if weight_decay:
            piece.decay(weight_decay)
        (total,) = piece.states
        g = piece.g
        piece.add_square(total, g, 1)
        scale = piece.xp.sqrt(total, out=piece.free)
        scale += eps
        piece.divide_to_p(g, scale, -rate)


@control("zero_grad", planned=True, settles=True)
def zero_grad(engine: EngineContext, params: list[Tensor], set_to_none: bool) -> None:
    for param in params:
        gradient = param.grad
        if engine.undo is not None:
            engine.undo.note(param)
        if set_to_none or gradient is None:
            param.grad = None
        elif gradient.base is not None and gradient.requires_grad:
            param.grad = engine.call("zeros_like", gradient)
        else:
            gradient.grad_fn, gradient.slot, gradient.requires_grad_flag = None, 0, False
            engine.call("zero_", gradient)


def _scale(gradient: Array, factor: Array) -> None:
    gradient[...] *= factor.astype(gradient.dtype)


@control("clip_grad_norm_", writes="gradients", planned=True)
def clip_grad_norm_(engine: EngineContext, params: list[Tensor], max_norm: float, norm_type: float) -> Tensor:
    recording, engine.grad_enabled = engine.grad_enabled, False
    try:
        gradients = [p.grad for p in params if p.grad is not None]
        if not gradients:
            none: Tensor = engine.call("zeros", (), dtype=params[0].dtype.to_real(), device=params[0].device)
            return none
        norms = [F.norm(g, norm_type) for g in gradients]
        total: Tensor = norms[0] if len(norms) == 1 and norm_type else F.norm(F.stack(norms), norm_type)
        scale = F.clamp(max_norm / (total + 1e-6), max=1.0)
        for gradient in gradients:
            if scale.device == gradient.device:
                engine.on_arrays("scale", _scale, gradient.array, scale.array)
                gradient.storage.version += 1
            else:
                engine.call("mul_", gradient, F.to(scale, device=gradient.device))
        return total
    finally:
        engine.grad_enabled = recording
