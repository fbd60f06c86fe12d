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
                target, made = moved[names[i]], fetched[names[i]]
                if target.shape != made.shape:
                    target.resize_(made.shape)
                ours(target).copy_(upload(made))
        if not op._schema.returns:
            return None
        if written:
            return moved[names[written[0]]] if len(written) == 1 else tuple(moved[names[i]] for i in written)
        return _sent(results)

    return call


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
        return theirs(upload(value))
    if isinstance(value, (list, tuple)):
        return tuple(_sent(one) for one in value)
    return value


def refusing(op: Any) -> Callable[..., Any]:
    """A view that this device does not have cannot be computed elsewhere."""

    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{op} makes a view that tensors of gradwire do not have")

    return call
