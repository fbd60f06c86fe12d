"""The database's arguments for torch, converted for gradwire."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence

import gradwire
from gradwire_protocol import dtypes
from tests.op_db.bridge import Bridge, rebound


class Lacking(Exception):
    """Something of torch that gradwire does not have."""


def known_dtype(dtype: torch.dtype) -> Any:
    """gradwire's dtype of that name, None where it has no such tensors."""
    found = dtypes.BY_NAME.get(str(dtype).removeprefix("torch."))
    return found if found in dtypes.ALL else None


class Crossing:
    """Makes pairs of equal values, torch's and gradwire's. A tensor that occurs twice is one tensor on both sides."""

    def __init__(self) -> None:
        self.leaves: list[tuple[torch.Tensor, Any]] = []
        self._made: dict[int, tuple[Any, Any, Any]] = {}

    def pair(self, value: Any) -> tuple[Any, Any]:
        """A value of torch's as a fresh one of the same kind, and as gradwire's."""
        if id(value) not in self._made:
            theirs, ours = self._pair(value)
            self._made[id(value)] = (value, theirs, ours)  # holding the value keeps its id its own
        return self._made[id(value)][1:]

    def _pair(self, value: Any) -> tuple[Any, Any]:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, PackedSequence):
            return self._packed(value)
        if isinstance(value, torch.dtype):
            return value, known_dtype(value)
        if isinstance(value, torch.nn.Module):
            return value, _module(value)
        if isinstance(value, dict):
            pairs = {key: self.pair(one) for key, one in value.items()}
            return {key: t for key, (t, _) in pairs.items()}, {key: g for key, (_, g) in pairs.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            return value, _of_ours(type(value).__name__)(**self.pair(fields)[1])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            pairs = [self.pair(one) for one in value]
            return value, _of_ours(type(value).__name__)(*(g for _, g in pairs))
        if isinstance(value, (list, tuple)):
            members = [self.pair(one) for one in value]
            return type(value)(t for t, _ in members), type(value)(g for _, g in members)
        if isinstance(value, enum.Enum) or not callable(value):
            return value, value
        return value, _function(value)

    def _tensor(self, value: torch.Tensor) -> tuple[torch.Tensor, Any]:
        theirs = value.detach().requires_grad_(value.requires_grad)
        ours = moved(value).requires_grad_(value.requires_grad)
        if value.requires_grad:
            self.leaves.append((theirs, ours))
        return theirs, ours

    def _packed(self, value: PackedSequence) -> tuple[PackedSequence, Any]:
        members = [self.pair(member) for member in value]
        kind = _of_ours("PackedSequence", gradwire.nn.utils.rnn if hasattr(gradwire.nn.utils, "rnn") else None)
        return PackedSequence(*(t for t, _ in members)), kind(*(g for _, g in members))


def moved(value: torch.Tensor) -> Any:
    """A tensor's values as a tensor of gradwire, laid out alike."""
    if known_dtype(value.dtype) is None:
        raise Lacking(f"gradwire has no {value.dtype}")
    return Bridge(gradwire).made(value.detach())


def plain(value: Any) -> np.ndarray:
    """A tensor of either library as a NumPy array; bfloat16 as float32."""
    value = value.detach()
    if str(value.dtype).endswith("bfloat16"):
        value = value.float()
    return np.asarray(value.numpy() if isinstance(value, gradwire.Tensor) else value.resolve_conj().numpy())


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors in a result, in order; None where a tuple has None."""
    if isinstance(value, (torch.Tensor, gradwire.Tensor)) or value is None:
        yield value
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from tensors_in(member)


def _of_ours(name: str, where: Any = gradwire.nn) -> Any:
    found = getattr(where, name, None)
    if found is None:
        raise Lacking(f"gradwire has no {name}")
    return found


def _function(value: Callable[..., Any]) -> Any:
    found = rebound(value, gradwire)
    if found is value and (value.__module__ or "").startswith("torch"):
        raise Lacking(f"gradwire has no function {value.__name__}")
    return found


def _module(value: torch.nn.Module) -> Any:
    """A module that is an argument of another's constructor, with the same weights."""
    made = _of_ours(type(value).__name__)(**_CONSTRUCTED[type(value).__name__](value))
    made.load_state_dict({name: moved(entry) for name, entry in value.state_dict().items()}, assign=True)
    return made


def _encoder_layer(layer: Any) -> dict[str, Any]:
    return {
        "d_model": layer.self_attn.embed_dim, "nhead": layer.self_attn.num_heads,
        "dim_feedforward": layer.linear1.out_features, "dropout": layer.dropout.p,
        "activation": _function(layer.activation), "layer_norm_eps": layer.norm1.eps,
        "batch_first": layer.self_attn.batch_first, "norm_first": layer.norm_first,
        "bias": layer.linear1.bias is not None,
    }  # fmt: skip


_CONSTRUCTED: dict[str, Callable[[Any], dict[str, Any]]] = {"TransformerEncoderLayer": _encoder_layer}
