"""What a module saves and loads: the state dict, a flat mapping from dotted names to tensors."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import ref

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError

from ..context.hook_handles import HookTable, RemovableHandle
from ..context.modes import no_grad
from ..dispatch.dispatch import call
from ..tensor.tensor import Tensor
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

    _version: int = 1
    """What the module's state dict says in its metadata; a class that changes its names counts it up."""

    # Tables that most modules never need are made when a hook is registered.
    _state_dict_pre_hooks: HookTable = HookTable()
    _state_dict_hooks: HookTable = HookTable()
    _load_state_dict_pre_hooks: HookTable = HookTable()
    _load_state_dict_post_hooks: HookTable = HookTable()

    def _hooked_state(self, table: str, hook: Any) -> RemovableHandle:
        if table not in self.__dict__:
            object.__setattr__(self, table, HookTable())
        found: HookTable = self.__dict__[table]
        return found.register(hook)

    def state_dict(
        self, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The parameters and persistent buffers by dotted name, sharing memory with the module.

        Args:
            destination: a mapping to add them to.
            prefix: what to put before each name.
            keep_vars: hand out the parameters themselves rather than detached aliases.
        """
        if destination is None:
            made: Any = OrderedDict()
            made._metadata = OrderedDict()
            destination = made
        metadata: dict[str, Any] = {"version": self._version}
        told = getattr(destination, "_metadata", None)
        if told is not None:
            told[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook, may_replace in self._state_dict_hooks.values():
            replacement = hook(self, destination, prefix, metadata)
            if replacement is not None and not may_replace:
                raise ArgumentError("a hook after state_dict changes the dict it is given; it returns None")
            destination = destination if replacement is None else replacement
        assert destination is not None
        return destination

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the module's part of a state dict is made."""
        return self._hooked_state("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when the module's part, and those of all modules
        below it, are in the state dict, which the hook may change."""
        return self._hooked_state("_state_dict_hooks", (hook, False))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """:meth:`register_state_dict_post_hook` of a hook that may also return another state dict."""
        return self._hooked_state("_state_dict_hooks", (hook, True))

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add this module's own entries. A subclass may add more, or others."""
        for name, value in self._persistent().items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else call("detach", value)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _persistent(self) -> dict[str, Any]:
        own = dict(self._parameters)
        own.update({n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set})
        return own

    def get_extra_state(self) -> Any:
        """State beyond tensors. A subclass that defines this gets it saved, and back in :meth:`set_extra_state`."""
        raise ArgumentError(f"{type(self).__name__} has no extra state: its class defines no get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        raise ArgumentError(f"{type(self).__name__} takes no extra state: its class defines no set_extra_state")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy values by dotted name into the parameters and buffers.

        Args:
            strict: refuse names that are missing or superfluous.
            assign: keep the given tensors themselves, with their dtype and device, instead of copying from them.

        Raises:
            ArgumentError: listing everything that does not fit. What does fit has been loaded nevertheless.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentTypeError(f"a state dict is a mapping from names to tensors, not {type(state_dict).__name__}")
        metadata = getattr(state_dict, "_metadata", None) or {}
        state = dict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        problems: list[str] = []
        module = cast("Module", self)
        _load_into(module, state, "", metadata, assign, strict, missing, unexpected, problems)
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
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        own = {name: member for name, member in self._persistent().items() if member is not None}
        for name, current in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            value = state_dict[key]
            if not isinstance(value, Tensor):
                error_msgs.append(f"{key} is {type(value).__name__}, not a tensor")
            elif tuple(value.shape) != tuple(current.shape):
                error_msgs.append(f"{key} has shape {list(value.shape)}, the module's has {list(current.shape)}")
            elif assign:
                setattr(self, name, _assignable(value, current))
            elif current.is_meta and not value.is_meta:
                warnings.warn(
                    f"{key} is on the meta device and stays without values: load with assign=True, or call to_empty() "
                    "before",
                    UserWarning,
                    stacklevel=2,
                )
            else:
                with no_grad():
                    call("copy_", current, value)
        extra = prefix + EXTRA
        takes_extra = type(self).set_extra_state is not Stateful.set_extra_state
        if takes_extra:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            else:
                missing_keys.append(extra)
        for key in state_dict:
            if key.startswith(prefix):
                head = key[len(prefix) :].split(".", 1)
                known = head[0] in self._modules if len(head) > 1 else head[0] in own
                if not known and not (key == extra and takes_extra):
                    unexpected_keys.append(key)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` when the module, and all below it, were loaded.

        The hook may change the two lists of names that are missing and superfluous, before ``strict`` looks at them.
        """
        return self._hooked_state("_load_state_dict_post_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before the module's own entries are loaded; the hook may change all of them."""
        return self._hooked_state("_load_state_dict_pre_hooks", _with_module(hook, self))

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Any:
        """:meth:`register_load_state_dict_pre_hook` of a hook that does not take the module, unless it says so."""
        return self._hooked_state("_load_state_dict_pre_hooks", _with_module(hook, self) if with_module else hook)


def _with_module(hook: Callable[..., Any], module: Any) -> Callable[..., Any]:
    """A hook with its module as the first argument, which it does not keep alive."""
    owner = ref(module)

    def hooked(*args: Any) -> Any:
        return hook(owner(), *args)

    return hooked


def _assignable(value: Tensor, current: Tensor) -> Tensor:
    if isinstance(current, Parameter) and not isinstance(value, Parameter):
        made: Tensor = Parameter(value, requires_grad=current.requires_grad)
        return made
    return value


def _load_into(
    module: Module,
    state: dict[str, Any],
    prefix: str,
    metadata: Mapping[str, Any],
    assign: bool,
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    problems: list[str],
) -> None:
    own = {**metadata.get(prefix[:-1], {}), "assign_to_params_buffers": assign}
    module._load_from_state_dict(state, prefix, own, strict, missing, unexpected, problems)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {key: value for key, value in state.items() if key.startswith(below)}
            _load_into(child, part, below, metadata, assign, strict, missing, unexpected, problems)
    keys = _IncompatibleKeys(missing, unexpected)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError("a hook after load_state_dict changes the lists it is given; it returns None")
