"""Operations that PyTorch composes of many others, and that gradwire has as one with a derivative of its own.

They are taken before PyTorch's tape would see their parts: its node calls gradwire's backward of what was recorded, so
nothing is computed twice. PyTorch composes what is differentiated twice or forward, what its transforms go through, and
what gradwire's function does not do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.utils._pytree import tree_flatten, tree_unflatten

import gradwire as gw

from .dispatch import given, returned
from .memory import ours, theirs
from .registration import name_devices

Suits = Callable[..., bool]
_hooks_on_what_is_saved: Final[Any] = torch._C._autograd._top_saved_tensors_default_hooks

TAPED: Final[dict[str, tuple[Callable[..., Any], Suits]]] = {}
"""By the name of an operation: gradwire's function with the same arguments, and whether it takes some of these."""


def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Attention; what dropout leaves is drawn again in backward."""
    return gw.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    )


def _suits_attention(*args: Any, **kwargs: Any) -> bool:
    """With dropout it is what PyTorch calls flash attention, which a program may turn off."""
    dropout_p = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
    flash = torch.backends.cuda.flash_sdp_enabled()
    return (dropout_p == 0.0 or (dropout_p < 1.0 and flash)) and all(t.is_floating_point() for t in args[:3])


TAPED["scaled_dot_product_attention"] = attention, _suits_attention
TAPED["rms_norm"] = gw.nn.functional.rms_norm, lambda *_, **__: True


def _recurrent(name: str) -> None:
    function = getattr(gw, name)

    def packed(data: Any, batch_sizes: torch.Tensor, *rest: Any) -> Any:
        names = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
        return function(data=data, batch_sizes=batch_sizes, **dict(zip(names, rest, strict=True)))

    TAPED[f"{name}.input"] = function, lambda *_, **__: True
    TAPED[f"{name}.data"] = packed, lambda *_, **__: True


for _name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    _recurrent(_name)


def _ours(value: Any) -> Any:
    """An argument for a function of gradwire's; the sizes of batches, which are on the CPU, stay there."""
    there = isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.ndim and value.dtype is torch.int64
    return value if there else given(value)


class _Node(torch.autograd.Function):
    """The node of one operation on PyTorch's tape; the operation is one on gradwire's.

    gradwire's results hang on a tensor that is saved for backward: PyTorch frees them when it frees what is saved, and
    where a part of the graph is computed again, they are those of the second time.
    """

    @staticmethod
    def forward(ctx: Any, op: Any, function: Callable[..., Any], form: Any, *flat: Any) -> Any:
        """Record the operation with fresh leaves for what is differentiated."""
        leaves, values = {}, []
        for i, value in enumerate(flat):
            made = _ours(value)
            if ctx.needs_input_grad[3 + i]:
                made = leaves[i] = made.detach().requires_grad_()
            values.append(made)
        args, kwargs = tree_unflatten(values, form)
        with gw.enable_grad():
            found = function(*args, **kwargs)
        results = (found,) if isinstance(found, gw.Tensor) else tuple(found)
        taped = torch.empty(0)
        taped.of_gradwire = leaves, results  # type: ignore[attr-defined]
        ctx.op, ctx.form = op, form
        ctx.others = [None if isinstance(value, torch.Tensor) else value for value in flat]
        ctx.save_for_backward(*[value if isinstance(value, torch.Tensor) else None for value in flat], taped)
        ctx.set_materialize_grads(False)
        outs = tuple(theirs(one.detach()) for one in results)
        return outs[0] if isinstance(found, gw.Tensor) else outs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """gradwire's backward. PyTorch composes one that is differentiated again, or whose saved tensors a hook has
        replaced with others."""
        *kept, taped = ctx.saved_tensors  # also checks that nothing was changed since
        found = getattr(taped, "of_gradwire", None)
        if torch.is_grad_enabled() or found is None:
            return (None, None, None, *_composed(ctx, kept, grads))
        leaves, results = found
        pairs = [(r, ours(g)) for r, g in zip(results, grads, strict=True) if g is not None]
        asked = gw.autograd.grad(
            [r for r, _ in pairs], list(leaves.values()), [g for _, g in pairs], retain_graph=True, allow_unused=True
        )
        by = dict(zip(leaves, asked, strict=True))
        made, vectors = [], set()
        for i in range(len(kept)):
            one = by.get(i)
            if one is not None and one.ndim == 1:
                if one.shape in vectors:  # the biases of a recurrent layer have one gradient, which each may change
                    one = one.clone()
                vectors.add(one.shape)
            made.append(None if one is None else theirs(one))
        return None, None, None, *made


def _composed(ctx: Any, kept: Any, grads: Any) -> list[Any]:
    """The gradients by PyTorch's own composition of the operation.

    Raises:
        RuntimeError: after dropout, since the composition would drop others.
    """
    again = torch.is_grad_enabled()
    wanted = [i for i in range(len(kept)) if ctx.needs_input_grad[3 + i]]
    flat = [o if k is None else k for k, o in zip(kept, ctx.others, strict=True)]
    with torch.enable_grad():
        if not again:
            flat = [v.detach().requires_grad_(i in wanted) if isinstance(v, torch.Tensor) else v
                    for i, v in enumerate(flat)]  # fmt: skip
        args, kwargs = tree_unflatten(flat, ctx.form)
        if _drops(ctx.op, args, kwargs):
            raise RuntimeError(f"{ctx.op} with dropout is differentiated once, and with the tensors that it saved")
        made = ctx.op.decompose(*args, **kwargs)
        results = (made,) if isinstance(made, torch.Tensor) else made
        pairs = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None and r.requires_grad]
        found = torch.autograd.grad(
            [r for r, _ in pairs], [flat[i] for i in wanted], [g for _, g in pairs], create_graph=again,
            allow_unused=True,
        )  # fmt: skip
    by = dict(zip(wanted, found, strict=True))
    return [by.get(i) for i in range(len(flat))]


def _drops(op: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operation draws what it drops."""
    values = dict(zip([a.name for a in op._schema.arguments], args, strict=False)) | kwargs
    return bool(values.get("dropout_p", values.get("dropout", 0.0)) and values.get("train", True))


_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)


def _transformed(flat: list[Any]) -> bool:
    """Whether something between the program and the device looks at the operations one by one: a transform, forward
    differentiation, a mode, or a class of tensors."""
    return (
        peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch._C._len_torch_dispatch_stack() > 0
        or any(isinstance(value, torch.Tensor) and type(value) not in _PLAIN for value in flat)
    )


def _run(op: Any, function: Callable[..., Any], suits: Suits, *args: Any, **kwargs: Any) -> Any:
    try:
        return _recorded(op, function, suits, args, kwargs)
    except RuntimeError as refused:
        name_devices(refused)
        raise


def _recorded(op: Any, function: Callable[..., Any], suits: Suits, args: Any, kwargs: Any) -> Any:
    flat, form = tree_flatten((args, kwargs))
    if _transformed(flat) or not suits(*args, **kwargs):
        return op.decompose(*args, **kwargs)
    if torch.is_grad_enabled() and any(isinstance(v, torch.Tensor) and v.requires_grad for v in flat):
        if _hooks_on_what_is_saved(False) is not None and _drops(op, args, kwargs):
            return op.decompose(*args, **kwargs)
        return _Node.apply(op, function, form, *flat)  # type: ignore[no-untyped-call]
    args, kwargs = tree_unflatten([_ours(value) for value in flat], form)
    return returned(function(*args, **kwargs))


def install(library: Any) -> None:
    """Register these operations, with and without a tape."""
    for name, (function, suits) in TAPED.items():
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        for key in ("AutogradPrivateUse1", "PrivateUse1"):
            library.impl(name, partial(_run, op, function, suits), key)


__all__ = ["install"]
