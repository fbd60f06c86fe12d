"""``Optimizer``: parameters in groups with options, and what is remembered of each parameter between steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from gradwire_protocol.errors import ArgumentTypeError, ArgumentValueError, Unsupported

from ..creation import tensor, zeros_like
from ..dispatch import call
from ..hooks import HookTable, RemovableHandle
from ..modes import enable_grad, no_grad
from ..nn.parameter import clear_gradients
from ..tensor import NO_GRAD, Tensor

Closure = Callable[[], Any]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
"""The default of an option that every group must name."""


class Optimizer:
    """The base of all optimizers.

    A step is one record per parameter group, whatever the number of parameters. A subclass defines ``_update``.

    Args:
        params: tensors, or pairs of a name and a tensor, or one dictionary per group with ``"params"`` and options.
        defaults: the options of groups that do not say otherwise.

    Attributes:
        param_groups: one dictionary per group: its parameters under ``"params"``, and its options.
        state: by parameter, what is remembered between steps.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise ArgumentTypeError("params is an iterable of tensors or of dictionaries, not one tensor")
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks, self._post_hooks = HookTable(), HookTable()
        groups = list(params)
        if not groups:
            raise ArgumentValueError("an optimizer needs at least one parameter, the list is empty")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise ArgumentTypeError(f"a parameter group is a dictionary, not {type(param_group).__name__}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, (set, frozenset)):
            raise ArgumentTypeError("parameters are kept in order: give them as a list, not as a set")
        entries = [given] if isinstance(given, Tensor) else list(given)
        if entries and all(isinstance(entry, tuple) for entry in entries):
            group["param_names"] = [name for name, _ in entries]
            entries = [param for _, param in entries]
        for param in entries:
            if not isinstance(param, Tensor):
                raise ArgumentTypeError(f"an optimizer works on tensors, not on {type(param).__name__}")
            if not (param.is_leaf or param.retains_grad):
                raise ArgumentValueError("an optimizer works on leaves, this tensor was computed")
        if len(set(entries)) != len(entries):
            raise ArgumentValueError("a parameter is listed twice in a group")
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

    def step(self, closure: Closure | None = None) -> Any:
        """Change all parameters that have a gradient. Does not wait for the server.

        Args:
            closure: computes the loss anew, gradients included; its result is returned.
        """
        for hook in list(self._pre_hooks.values()):
            hook(self, (closure,), {})
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        sessions = set()
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad_state != NO_GRAD]
            if params:
                self._update(group, params)
                self._touch(params)
                sessions.add(params[0]._session)
        for session in sessions:
            session.flush()
        for hook in list(self._post_hooks.values()):
            hook(self, (closure,), {})
        return loss

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        """Record the step of one group. ``params`` are those of its parameters that have a gradient."""
        raise NotImplementedError(f"{type(self).__name__} defines no step")

    def _kept(self, params: list[Any], name: str, fill: float = 0.0) -> list[Any]:
        """What is remembered of each parameter under ``name``: a tensor like it, filled with one value at first."""
        found = []
        for param in params:
            state = self.state[param]
            if state.get(name) is None:
                made = zeros_like(param)
                if fill:
                    call("fill_", made, fill)
                state[name] = made
            found.append(state[name])
        return found

    def _counted(self, params: list[Any]) -> list[int]:
        """How many steps each parameter has taken, this one included."""
        counts = []
        for param in params:
            state = self.state[param]
            state["step"] = int(state.get("step", 0)) + 1
            counts.append(state["step"])
        return counts

    def _by_step(self, params: list[Any]) -> list[tuple[int, list[Any]]]:
        """The parameters by the number of steps they have taken, which differs where some lacked a gradient once."""
        found: dict[int, list[Any]] = {}
        for param, count in zip(params, self._counted(params), strict=True):
            found.setdefault(count, []).append(param)
        return list(found.items())

    @staticmethod
    def _touch(*written: list[Any]) -> None:
        """Note that tensors were written to."""
        for tensors in written:
            for one in tensors:
                if one is not None:
                    one._bump()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or make them zero, in one record."""
        clear_gradients((p for group in self.param_groups for p in group["params"]), set_to_none)

    # State

    def state_dict(self) -> dict[str, Any]:
        """What is remembered, and the groups' options, with parameters replaced by their numbers."""
        numbers: dict[Any, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers.setdefault(p, len(numbers)) for p in group["params"]]
            groups.append(packed)
        state = {numbers.get(key, key): dict(kept) for key, kept in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take back what :meth:`state_dict` gave, for parameters in the same order. Tensors are copied.

        Raises:
            ArgumentValueError: when the groups or their sizes are others.
        """
        saved = state_dict["param_groups"]
        sizes, own = [len(g["params"]) for g in saved], [len(g["params"]) for g in self.param_groups]
        if sizes != own:
            raise ArgumentValueError(f"the saved state has groups of {sizes} parameters, this optimizer of {own}")
        params = [p for group in self.param_groups for p in group["params"]]
        by_number = dict(zip([n for g in saved for n in g["params"]], params, strict=True))
        self.state.clear()
        with no_grad():
            for number, kept in state_dict["state"].items():
                param = by_number.get(number)
                self.state[number if param is None else param] = {
                    name: _restored(name, value, param) for name, value in kept.items()
                }
        for group, packed in zip(self.param_groups, saved, strict=True):
            for name, value in packed.items():
                if name != "params":
                    group[name] = value if isinstance(value, Tensor) else deepcopy(value)

    # Hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step."""
        return self._pre_hooks.register(hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._post_hooks.register(hook)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _restored(name: str, value: Any, param: Tensor | None) -> Any:
    """One remembered value: numbers as they are, a count as an int, a tensor in the parameter's dtype and place."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.item() if name == "step" else tensor(np.asarray(value))
    if name == "step":
        return int(value)
    if isinstance(value, Tensor) and param is not None:
        keep = value.dtype if not value.is_floating_point() else param.dtype
        return call("to", value, keep, param._meta.device, True)
    return value


def check_ranges(**options: tuple[float, float, float]) -> None:
    """Check options given as (value, lower bound, upper bound); the upper one is excluded.

    Raises:
        ArgumentValueError: naming the option, its value and the range.
    """
    for name, (value, low, high) in options.items():
        if not isinstance(value, Tensor) and not low <= value < high:
            limit = f"at least {low}" if high == float("inf") else f"in [{low}, {high})"
            raise ArgumentValueError(f"{name} must be {limit}, not {value}")


def refuse_flags(**flags: Any) -> None:
    """Refuse flags that ask for what a step on the server cannot do. ``foreach`` and ``fused`` need no refusal.

    Raises:
        Unsupported: naming the flag.
    """
    for name, value in flags.items():
        if value:
            raise Unsupported(f"{name}=True is not supported by gradwire: a step is not recorded for backward")


def betas_of(betas: Iterable[float]) -> tuple[float, float]:
    """Two decay rates, checked.

    Raises:
        ArgumentValueError: when there are not two, or one is outside [0, 1).
    """
    pair = tuple(betas)
    if len(pair) != 2:
        raise ArgumentValueError(f"betas are two numbers, not {pair}")
    for i, beta in enumerate(pair):
        if not 0.0 <= beta < 1.0:
            raise ArgumentValueError(f"betas[{i}] must be in [0, 1), not {beta}")
    return pair
