"""Optimizers: a whole step for a whole parameter list is one op. Gradients are read from each parameter's ``grad``.

Every step takes ``skip``, a tensor of one element: where it is not zero, nothing happens. So a client that scales its
loss need not learn whether a gradient overflowed before it records the step.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError, DTypeError
from ..meta import Inference, Meta, new, nothing
from ..table import Float, Tensor, op


def check_states(name: str, params: Sequence[Meta], *states: Sequence[Meta | None]) -> None:
    for param in params:
        if not param.dtype.carries_gradient:
            raise DTypeError(f"{name}: a parameter of dtype {param.dtype.name} cannot be optimized")
    for state in states:
        if len(state) != len(params):
            raise ArgumentError(f"{name}: {len(params)} parameters come with a state of {len(state)} tensors")
        for param, entry in zip(params, state, strict=True):
            if entry is not None and (entry.shape != param.shape or entry.dtype is not param.dtype):
                raise ArgumentError(f"{name}: state {entry!r} does not match parameter {param!r}")


@op(control=True, results=0, exposed=())
def sgd_step(
    params: list[Tensor],
    momentum_buffers: list[Tensor | None],
    lr: Float,
    momentum: Float = 0.0,
    dampening: Float = 0.0,
    weight_decay: Float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
    first: tuple[bool, ...] = (),
    skip: Tensor | None = None,
) -> Inference:
    """One step of stochastic gradient descent (Sutskever et al. 2013 for momentum, as PyTorch computes it).

    Parameters without a gradient are left alone. ``first`` tells per parameter whether its momentum buffer is still
    empty; it is then set to the gradient.
    """
    check_states("sgd_step", params, momentum_buffers)
    if first and len(first) != len(params):
        raise ArgumentError(f"sgd_step: first has {len(first)} entries for {len(params)} parameters")
    return nothing()


@op(control=True, results=0, exposed=())
def adam_step(
    params: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor | None],
    lr: Float,
    beta1: Float = 0.9,
    beta2: Float = 0.999,
    eps: Float = 1e-8,
    weight_decay: Float = 0.0,
    step: Float = 1,
    amsgrad: bool = False,
    maximize: bool = False,
    decoupled_weight_decay: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of Adam (Kingma and Ba 2015), or of AdamW (Loshchilov and Hutter 2019) with decoupled weight decay.

    ``step`` counts from 1. With ``amsgrad`` the largest second moment so far is used (Reddi et al. 2018).
    """
    check_states("adam_step", params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs)
    return nothing()


@op(control=True, results=0, exposed=())
def rmsprop_step(
    params: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor | None],
    momentum_buffers: list[Tensor | None],
    lr: Float,
    alpha: Float = 0.99,
    eps: Float = 1e-8,
    weight_decay: Float = 0.0,
    momentum: Float = 0.0,
    centered: bool = False,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of RMSprop (Hinton's lecture 6e; centered as in Graves 2013)."""
    check_states("rmsprop_step", params, square_avgs, grad_avgs, momentum_buffers)
    return nothing()


@op(control=True, results=0, exposed=())
def adagrad_step(
    params: list[Tensor],
    state_sums: list[Tensor],
    lr: Float,
    lr_decay: Float = 0.0,
    weight_decay: Float = 0.0,
    eps: Float = 1e-10,
    step: Float = 1,
    maximize: bool = False,
    skip: Tensor | None = None,
) -> Inference:
    """One step of Adagrad (Duchi et al. 2011). ``step`` counts from 1."""
    check_states("adagrad_step", params, state_sums)
    return nothing()


@op(control=True, results=0, exposed=())
def zero_grad(params: list[Tensor], set_to_none: bool = True) -> Inference:
    """Remove the gradients of these tensors, or fill them with zeros."""
    return nothing()


@op(control=True, after_backward=True, exposed=())
def clip_grad_norm_(params: list[Tensor], max_norm: Float, norm_type: Float = 2.0) -> Inference:
    """Scale the gradients of these tensors so that their joint norm is at most ``max_norm``; returns what it was."""
    if not params:
        raise ArgumentError("clip_grad_norm_ needs at least one tensor")
    return new((), params[0].dtype.to_real(), params[0].device)
