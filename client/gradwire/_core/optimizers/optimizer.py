"""``Optimizer``: parameters in groups with options, and what is remembered of each parameter between steps."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, TypeAlias, TypeVar, overload

import numpy as np

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, Unsupported

from ..context.hook_handles import HookTable, RemovableHandle
from ..context.modes import MODES, enable_grad, no_grad
from ..dispatch.dispatch import call
from ..modules.parameter import clear_gradients
from ..session.batched_read import fetch
from ..session.kept_objects import KEEPERS, Keeper, copied
from ..session.profile_ranges import record_function
from ..session.profile_recorder import current
from ..surface.creation import tensor
from ..surface.creation_like import zeros_like
from ..tensor.tensor import NO_GRAD, Tensor
from .differentiable import STEPS, Step, step_recorded

Closure = Callable[[], Any]
Loss = TypeVar("Loss")
Params: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
"""What an optimizer is made for: parameters, with their names or not, or groups of them with options."""
Rate: TypeAlias = float | Tensor


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
"""The default of an option that every group must name."""


class Optimizer:
    """The base of all optimizers.

    A step is one record per parameter group, whatever the number of parameters. A subclass defines ``_update``. With
    ``differentiable=True``, where an optimizer takes it, a step is recorded for backward instead; its parameters are no
    leaves then.

    Args:
        params: tensors, or pairs of a name and a tensor, or one dictionary per group with ``"params"`` and options.
        defaults: the options of groups that do not say otherwise.

    Attributes:
        param_groups: one dictionary per group: its parameters under ``"params"``, and its options.
        state: by parameter, what is remembered between steps.
    """

    counts: ClassVar[dict[str, Any]] = {}
    """What of a parameter's state is a Python number, by name, and of which type. PyTorch keeps tensors there."""

    _skip: Any = None
    """A tensor that is not 0 where the step being recorded is not to be taken; see :class:`gradwire.amp.GradScaler`."""

    _stepping = _has_stepped = False  # also where a subclass does without our initialisation

    _unsettled: Any = None
    """Takes in whether the last step was skipped, once the server has told."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _with_hooks(vars(cls)["step"])  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise ArgumentTypeError("params is an iterable of tensors or of dictionaries, not one tensor")
        self.defaults: dict[str, Any] = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._make_hooks()
        groups: list[Any] = list(params)
        if not groups:
            raise ArgumentValueError("an optimizer needs at least one parameter, the list is empty")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)
        # What made the parameters is no part of the first step, which is then like the others.
        with_shape = [p for group in self.param_groups for p in group["params"] if p._has_shape]
        for session in {p._session for p in with_shape}:
            session.builder.frame_ends()

    def _make_hooks(self) -> None:
        self._stepping = self._has_stepped = False
        self._pre_hooks, self._post_hooks = HookTable(), HookTable()
        self._before_saving, self._after_saving = HookTable(), HookTable()
        self._before_loading, self._after_loading = HookTable(), HookTable()

    def _settle(self) -> None:
        """Forget what a step that the server skipped has left in ``state``."""
        settle, self._unsettled = self._unsettled, None
        if settle is not None:
            settle()

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_pre_hooks" not in self.__dict__:
            self._make_hooks()
        self.defaults.setdefault("differentiable", False)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(f"a parameter group is a dictionary, not {type(param_group).__name__}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, (set, frozenset)):
            raise ArgumentTypeError("parameters are kept in order: give them as a list, not as a set")
        entries = [given] if isinstance(given, Tensor) else list(given)
        named = [isinstance(entry, tuple) for entry in entries]
        if any(named) and not all(named):
            raise ArgumentValueError("either all parameters of a group have names, or none does")
        if any(named):
            group["param_names"] = [name for name, _ in entries]
            entries = [param for _, param in entries]
        for param in entries:
            if not isinstance(param, Tensor):
                raise ArgumentTypeError(f"an optimizer works on tensors, not on {type(param).__name__}")
            if not (not param._has_shape or param.is_leaf or param.retains_grad or self.defaults.get("differentiable")):
                raise ArgumentValueError("an optimizer works on leaves, this tensor was computed")
        if len(set(entries)) != len(entries):
            warnings.warn("a parameter is listed twice in a group: it takes two steps at once", stacklevel=3)
        if set(entries) & {p for other in self.param_groups for p in other["params"]}:
            raise ArgumentValueError("a parameter is in another group already")
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ArgumentValueError("either all groups name their parameters, or none does")
        group["params"] = entries
        for name, default in self.defaults.items():
            if group.setdefault(name, default) is required:
                raise ArgumentValueError(f"the group has no {name!r}, which has no default")
        self.param_groups.append(group)

    # Steps

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...

    def step(self, closure: Callable[[], Loss] | None = None) -> Loss | None:
        """Change all parameters that have a gradient. Does not wait for the server.

        Args:
            closure: computes the loss anew, gradients included; its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        sessions = set()
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad_state != NO_GRAD]
            if params and group.get("differentiable"):
                step_recorded(self._recorded(), group, params, self.state)
                sessions.add(params[0]._session)
            elif params:
                self._update(group, params)
                self._touch(params)
                sessions.add(params[0]._session)
        for session in sessions:
            session.builder.frame_ends()
        return loss

    def _recorded(self) -> Step:
        """The step that backward goes through, of the nearest class that has one."""
        for cls in type(self).__mro__:
            if cls.__name__ in STEPS:
                return STEPS[cls.__name__]
        raise Unsupported(f"{type(self).__name__} has no step with differentiable=True")

    def _update(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Record the step of one group. ``params`` are those of its parameters that have a gradient."""
        raise NotImplementedError(f"{type(self).__name__} defines no step")

    def _kept(self, params: list[Tensor], name: str) -> list[Any]:
        """What is remembered of each parameter under ``name``: a tensor like it, of zeros at first."""
        found = []
        for param in params:
            state = self.state[param]
            if state.get(name) is None:
                state[name] = zeros_like(param)
            found.append(state[name])
        return found

    @staticmethod
    def _touch(*written: list[Any]) -> None:
        """Note that tensors were written to."""
        for tensors in written:
            for one in tensors:
                if one is not None:
                    one._bump()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or make them zero, in one record."""
        params = [p for group in self.param_groups for p in group["params"]]
        if current() is None:  # a name that no profile asks for need not be made
            clear_gradients(params, set_to_none)
            return
        with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            clear_gradients(params, set_to_none)

    # State

    def state_dict(self) -> dict[str, Any]:
        """What is remembered, and the groups' options, with parameters replaced by their numbers."""
        self._settle()
        for hook in list(self._before_saving.values()):
            hook(self)
        numbers: dict[Any, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers.setdefault(p, len(numbers)) for p in group["params"]]
            groups.append(packed)
        state = {
            numbers.get(key, key): dict(kept) if isinstance(kept, Mapping) else kept for key, kept in self.state.items()
        }
        found: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in list(self._after_saving.values()):
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave, for parameters in the same order. Tensors are copied.

        Raises:
            ArgumentValueError: when the groups or their sizes are others.
        """
        self._unsettled = None
        given = dict(state_dict)
        for hook in list(self._before_loading.values()):
            changed = hook(self, given)
            given = given if changed is None else changed
        saved = given["param_groups"]
        sizes, own = [len(g["params"]) for g in saved], [len(g["params"]) for g in self.param_groups]
        if sizes != own:
            raise ArgumentValueError(f"the saved state has groups of {sizes} parameters, this optimizer of {own}")
        params = [p for group in self.param_groups for p in group["params"]]
        by_number = dict(zip([n for g in saved for n in g["params"]], params, strict=True))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        with no_grad():
            for number, kept in self._counts_read(given["state"]).items():
                param = by_number.get(number)
                if param is None:
                    state[number] = kept
                else:
                    state[param] = {name: self._restored(name, value, param) for name, value in kept.items()}
        groups = []
        for group, packed in zip(self.param_groups, saved, strict=True):
            fresh = {k: v if isinstance(v, Tensor) else deepcopy(v) for k, v in packed.items() if k != "params"}
            fresh["params"] = group["params"]
            if "param_names" in group:
                fresh.setdefault("param_names", group["param_names"])
            groups.append(fresh)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._after_loading.values()):
            hook(self)

    def _counts_read(self, state: Mapping[Any, Any]) -> dict[Any, Any]:
        """The remembered values with counts that are tensors, as PyTorch's are, as numbers: one round trip for all."""
        places = [
            (number, name)
            for number, kept in state.items()
            if isinstance(kept, Mapping)
            for name, value in kept.items()
            if name in self.counts and isinstance(value, Tensor)
        ]
        found = {number: dict(kept) if isinstance(kept, Mapping) else kept for number, kept in state.items()}
        for (number, name), value in zip(places, fetch(*(state[n][name] for n, name in places)), strict=True):
            found[number][name] = value
        return found

    def _restored(self, name: Any, value: Any, param: Tensor) -> Any:
        """A remembered value: a count as a number, a tensor in the parameter's dtype and place."""
        if name in self.counts and value is not None:
            return self.counts[name](value)
        if isinstance(value, (np.ndarray, np.generic)):
            value = tensor(np.asarray(value))
        if isinstance(value, Tensor):
            floating = param.is_floating_point() and name != "step"
            place = (param.dtype if floating else value.dtype, param._form.device)
            return call("to", value, *place, True) if name != "step" else call("clone", value)
        if isinstance(value, dict):
            return {k: self._restored(k, v, param) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._restored(None, v, param) for v in value)
        return value

    # Hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; ``args`` begin with the optimizer. It may return
        others, as ``(args, kwargs)``."""
        return self._pre_hooks.register(hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._post_hooks.register(hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before each :meth:`state_dict`."""
        return self._before_saving.register(hook, first=prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after each :meth:`state_dict`. It may return another one."""
        return self._after_saving.register(hook, first=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before a state is loaded. What it returns, if anything, is loaded."""
        return self._before_loading.register(hook, first=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state was loaded."""
        return self._after_loading.register(hook, first=prepend)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _take_state(optimizer: Optimizer) -> dict[str, Any]:
    """What a checkpoint keeps of an optimizer: what it remembers, and its groups with their options."""
    optimizer._settle()
    return {
        "state": copied(optimizer.state), "param_groups": copied(optimizer.param_groups),
        "has_stepped": optimizer._has_stepped,
    }  # fmt: skip


def _put_state(optimizer: Optimizer, kept: dict[str, Any]) -> None:
    """Put back what :func:`_take_state` gave. The dictionaries stay the same objects, since schedules know them."""
    optimizer._unsettled = None
    optimizer._has_stepped = kept["has_stepped"]
    optimizer.state.clear()
    optimizer.state.update(copied(kept["state"]))
    groups = copied(kept["param_groups"])
    del optimizer.param_groups[len(groups) :]
    for group, before in zip(optimizer.param_groups, groups, strict=True):
        group.clear()
        group.update(before)


KEEPERS[Optimizer] = Keeper(_take_state, _put_state)

_pre_hooks_of_all, _post_hooks_of_all = HookTable(), HookTable()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of any optimizer."""
    return _pre_hooks_of_all.register(hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of any optimizer."""
    return _post_hooks_of_all.register(hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A ``step`` around which the hooks run: once, also where it calls that of its base class."""

    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:
            return step(self, *args, **kwargs)
        if "_pre_hooks" not in self.__dict__:  # a subclass that wraps another optimizer, and initialises nothing
            self._make_hooks()
        self._settle()
        args = (self, *args)  # as hooks of PyTorch's optimizers see them
        for hook in [*_pre_hooks_of_all.values(), *self._pre_hooks.values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise ArgumentError(f"a step pre-hook returns None or (args, kwargs), not {changed!r:.80}")
                args, kwargs = changed
        self._stepping = self._has_stepped = True
        capture = MODES.capture
        if capture is not None:
            capture.stepping(self, MODES.flags)
        try:
            if current() is None:
                result = step(*args, **kwargs)
            else:
                with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                    result = step(*args, **kwargs)
        finally:
            self._stepping = False
        if capture is not None:
            capture.stepped()
        for hook in [*self._post_hooks.values(), *_post_hooks_of_all.values()]:
            hook(self, args, kwargs)
        return result

    return hooked


Optimizer.step = _with_hooks(Optimizer.step)  # type: ignore[method-assign]
