"""What a module saves and loads: the state dict, a flat mapping from dotted names to tensors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, Unsupported

from ..creation import tensor
from ..dispatch import call
from ..hooks import RemovableHandle
from ..modes import no_grad
from ..tensor import Tensor
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """What :meth:`Module.load_state_dict` did not find, and what it found no place for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"

    def __str__(self) -> str:
        return repr(self)


class Stateful:
    """The half of :class:`Module` that saves and loads it."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The parameters and persistent buffers by dotted name, sharing memory with the module.

        Args:
            destination: a mapping to add them to.
            prefix: what to put before each name.
            keep_vars: hand out the parameters themselves rather than detached aliases.
        """
        destination = OrderedDict() if destination is None else destination
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return destination

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add this module's own entries. A subclass may add more, or others."""
        for name, value in self._persistent().items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else call("detach", value)
        if _has_extra(self):
            destination[prefix + EXTRA] = self.get_extra_state()

    def _persistent(self) -> dict[str, Any]:
        own = dict(self._parameters)
        own.update({n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set})
        return own

    def get_extra_state(self) -> Any:
        """State beyond tensors. A subclass that defines this gets it saved, and back in :meth:`set_extra_state`."""
        raise Unsupported(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: Any) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        raise Unsupported(f"{type(self).__name__} has no extra state")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy values by dotted name into the parameters and buffers. NumPy arrays are taken as well as tensors.

        Args:
            strict: refuse names that are missing or superfluous.
            assign: keep the given tensors themselves, with their dtype and device, instead of copying from them.

        Raises:
            ArgumentError: listing everything that does not fit. What does fit has been loaded nevertheless.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentTypeError(f"a state dict is a mapping from names to tensors, not {type(state_dict).__name__}")
        state = dict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        problems: list[str] = []
        _load_into(
            cast("Module", self), state, "", {"assign_to_params_buffers": assign}, strict, missing, unexpected, problems
        )
        if strict:
            if unexpected:
                problems.append(f"unexpected names: {', '.join(map(repr, unexpected))}")
            if missing:
                problems.append(f"missing names: {', '.join(map(repr, missing))}")
        if problems:
            listed = "".join(f"\n  {p}" for p in problems)
            raise ArgumentError(f"the state dict does not fit {type(self).__name__}:{listed}")
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own entries, and add what does not fit to the three lists. A subclass may do otherwise."""
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        own = {name: member for name, member in self._persistent().items() if member is not None}
        for name, current in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            value = state_dict[key]
            if isinstance(value, (np.ndarray, np.generic)):
                value = tensor(np.asarray(value), device=current.device)
            if not isinstance(value, Tensor):
                error_msgs.append(f"{key} is {type(value).__name__}, not a tensor")
            elif tuple(value.shape) != tuple(current.shape):
                error_msgs.append(f"{key} has shape {list(value.shape)}, the module's has {list(current.shape)}")
            elif assign:
                setattr(self, name, _assignable(value, current))
            else:
                with no_grad():
                    call("copy_", current, value)
        extra = prefix + EXTRA
        if _has_extra(self):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            else:
                missing_keys.append(extra)
        for key in state_dict:
            if key.startswith(prefix):
                head = key[len(prefix) :].split(".", 1)
                known = head[0] in self._modules if len(head) > 1 else head[0] in own
                if not known and not (key == extra and _has_extra(self)):
                    unexpected_keys.append(key)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Not available."""
        raise Unsupported("hooks on loading are not supported by gradwire: override load_state_dict instead")


def _has_extra(module: Stateful) -> bool:
    return type(module).get_extra_state is not Stateful.get_extra_state


def _assignable(value: Tensor, current: Tensor) -> Tensor:
    if isinstance(current, Parameter) and not isinstance(value, Parameter):
        made: Tensor = Parameter(value, requires_grad=current.requires_grad)
        return made
    return value


def _load_into(
    module: Module,
    state: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    problems: list[str],
) -> None:
    module._load_from_state_dict(state, prefix, metadata, strict, missing, unexpected, problems)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {key: value for key, value in state.items() if key.startswith(below)}
            _load_into(child, part, below, metadata, strict, missing, unexpected, problems)
