"""What the server does not compute, computed on this machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from gradwire._core.context.call_sites import user_depth

from .memory import download, ours, theirs, upload


class ComputedHere(UserWarning):
    """An operation was computed on this machine's CPU: its tensors were fetched and its results sent."""


def computed_on_the_host(op: Any) -> Callable[..., Any]:
    """An operation by PyTorch's own kernels of the CPU."""
    name = op._schema.name.removeprefix("aten::")
    written = [i for i, a in enumerate(op._schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
    names = [a.name for a in op._schema.arguments]
    by_alias = {_alias(op._schema.arguments[i]): names[i] for i in written}

    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"{name} is not an operation of the server: its tensors are fetched, and it is computed here on the CPU",
            ComputedHere, stacklevel=user_depth(),
        )  # fmt: skip
        moved = {names[i]: value for i, value in enumerate(args)} | kwargs
        fetched = {k: _fetched(v) for k, v in moved.items()}
        results = _call(op, names, len(args), fetched)
        for i in written:
            if isinstance(moved.get(names[i]), torch.Tensor):
                target, now = moved[names[i]], fetched[names[i]]
                if target.shape != now.shape:
                    target.resize_(now.shape)
                ours(target).copy_(upload(now))
        returns = op._schema.returns
        if not returns:
            return None
        made = [
            moved[by_alias[_alias(to)]] if _alias(to) in by_alias else _sent(one)
            for to, one in zip(returns, results if len(returns) > 1 else [results], strict=True)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    return call


def _alias(of: Any) -> str | None:
    """What a schema calls the memory of an argument or a result; None for memory of its own."""
    return None if of.alias_info is None else min(of.alias_info.before_set, default=None)


def _call(op: Any, names: list[str], count: int, values: dict[str, Any]) -> Any:
    return op(*[values[name] for name in names[:count]], **{k: v for k, v in values.items() if k not in names[:count]})


def _fetched(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return download(ours(value)).clone() if value.device.type == "gradwire" else value  # it may be resized
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if isinstance(value, (list, tuple)):
        return type(value)(_fetched(one) for one in value)
    return value


def _sent(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_nested or value.is_quantized:
            kind = "nested" if value.is_nested else "quantized" if value.is_quantized else "sparse"
            raise NotImplementedError(f"tensors of gradwire are not {kind}")
        return theirs(upload(value))
    if isinstance(value, (list, tuple)):
        return tuple(_sent(one) for one in value)
    return value


def refusing(op: Any) -> Callable[..., Any]:
    """A view that this device does not have cannot be computed elsewhere."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{op} makes a view that tensors of gradwire do not have")

    return call
