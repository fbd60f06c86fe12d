"""The attributes of modules as PyTorch's classes have them, and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from gradwire_protocol.errors import ArgumentTypeError

from ..context.hook_handles import HookTable
from ..modules.module import Module
from .naming import functions, layers

_HOOKS: Final = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
)  # fmt: skip
_CALLED: Final = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks")
_OF_STATE: Final = (
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


def _of_convolution(module: Any) -> dict[str, Any]:
    sides = list(module._surround())
    return {
        "transposed": module.transposed,
        "_reversed_padding_repeated_twice": sides if isinstance(module.padding, str) else tuple(sides),
    }


def _of_recurrent(module: Any) -> dict[str, Any]:
    names = module._flat_weights_names
    return {"_flat_weights_names": names, "_flat_weights": [getattr(module, name) for name in names]}


def _of_encoder_layer(module: Any) -> dict[str, Any]:
    known = functions()
    kinds = {known["torch.nn.functional relu"]: 1, known["torch.nn.functional gelu"]: 2}
    activation = module.activation
    named = {"ReLU": 1, "GELU": 2}.get(type(activation).__name__, 0) if isinstance(activation, Module) else 0
    return {"activation_relu_or_gelu": named or kinds.get(activation, 0)}


_MORE: Final[dict[str, Callable[[Any], dict[str, Any]]]] = {
    "torch.nn.modules.conv _ConvNd": _of_convolution,
    "torch.nn.modules.rnn RNNBase": _of_recurrent,
    "torch.nn.modules.activation ReLU6": lambda module: {"min_val": 0.0, "max_val": 6.0},
    "torch.nn.modules.transformer TransformerEncoderLayer": _of_encoder_layer,
    "torch.nn.modules.padding ZeroPad1d": lambda module: {"value": 0.0},
    "torch.nn.modules.padding ZeroPad2d": lambda module: {"value": 0.0},
    "torch.nn.modules.padding ZeroPad3d": lambda module: {"value": 0.0},
}
"""What PyTorch's classes keep and gradwire's compute."""

_DERIVED: Final = frozenset({
    "transposed", "_reversed_padding_repeated_twice", "_flat_weights_names", "_flat_weights", "_flat_weight_refs",
    "activation_relu_or_gelu",
})  # fmt: skip


def as_theirs(module: Module, state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a module for PyTorch's class.

    Args:
        state: those that it would be pickled with.

    Raises:
        ArgumentTypeError: for what cannot stand in a file: hooks of state dicts.
    """
    kept = [name for name in _OF_STATE if getattr(module, name)]
    if kept:
        raise ArgumentTypeError(
            f"a {type(module).__name__} has hooks of its state dict ({kept[0]}): save a state_dict()"
        )
    found = {name: value for name, value in state.items() if name != "_hooked" and name not in _OF_STATE}
    for name in _HOOKS:
        if name in found:
            found[name] = OrderedDict(found[name])
    found |= {name: OrderedDict() for name in _OF_STATE}
    known = layers()
    for name, more in _MORE.items():
        if isinstance(module, known[name]):
            found |= more(module)
    return found


def as_ours(kind: type[Module], state: dict[str, Any]) -> dict[str, Any]:
    """The attributes of PyTorch's class for gradwire's."""
    found = {name: value for name, value in state.items() if not (name in _OF_STATE and not value)}
    for name in _HOOKS:
        if isinstance(found.get(name), dict):
            found[name] = HookTable(found[name])
    found["_hooked"] = any(found.get(name) for name in _CALLED)
    known = layers()
    if issubclass(kind, (known["torch.nn.modules.conv _ConvNd"], known["torch.nn.modules.rnn RNNBase"])) or issubclass(
        kind, known["torch.nn.modules.transformer TransformerEncoderLayer"]
    ):
        found = {name: value for name, value in found.items() if name not in _DERIVED}
    if issubclass(kind, known["torch.nn.modules.transformer TransformerEncoder"]):
        found["use_nested_tensor"] = False  # there are no nested tensors, here padding is computed
    return found
