"""Modules as functions of their parameters: ``functional_call`` and ``stack_module_state``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from gradwire_protocol.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from .._core.context.modes import no_grad
from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.modules.parameter import Parameter
from .._core.tensor.tensor import Tensor

if TYPE_CHECKING:
    from .._core.modules.module import Module

__all__ = ["functional_call", "stack_module_state"]

Values: TypeAlias = dict[str, Tensor] | dict[str, Parameter]
"""Tensors by the names of parameters and buffers."""
_MISSING = object()


def functional_call(
    module: Module, parameter_and_buffer_dicts: Values | Sequence[Values], args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with replacements for its parameters and buffers.

    Args:
        parameter_and_buffer_dicts: tensors by the names of ``named_parameters`` and ``named_buffers``, as a dict or a
            sequence of dicts that share no name. What is not named stays as it is.
        args: the positional arguments of the module, as a tuple; anything else is the only one.
        tie_weights: a tensor given for one of several names of the same parameter stands for all of them.
        strict: demand a tensor for every name, and no others.

    Raises:
        ArgumentValueError: for a name that comes twice, tied names with different tensors, and what is no dict.
        ArgumentTypeError: for a value that is no tensor.
        ArgumentError: in strict mode, naming what is missing or superfluous.
        AttributeError: for a name that leads through a module that does not exist.
    """
    given = _joined(parameter_and_buffer_dicts)
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(f"functional_call: {name!r} is {type(value).__name__}, not a tensor")
    names = _names_by_tensor(module)
    if tie_weights:
        given = _tied(given, names)
    if strict:
        known = {name for group in names.values() for name in group}
        missing, superfluous = sorted(known - set(given)), sorted(set(given) - known)
        if missing or superfluous:
            raise ArgumentError(
                f"functional_call with strict=True: {type(module).__name__} misses {missing or 'nothing'} and does not "
                f"have {superfluous or 'anything else that was given'}"
            )
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _holding(module, given):
        return module(*arguments, **(kwargs or {}))


def _joined(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (list, tuple)):
        raise ArgumentValueError(f"functional_call takes a dict or a sequence of dicts, not {type(dicts).__name__}")
    found: dict[str, Any] = {}
    for part in dicts:
        if not isinstance(part, dict):
            raise ArgumentValueError(f"functional_call takes a sequence of dicts, one of them is {type(part).__name__}")
        twice = sorted(found.keys() & part.keys())
        if twice:
            raise ArgumentValueError(f"functional_call: {', '.join(map(repr, twice))} is in several of the dicts")
        found.update(part)
    return found


def _names_by_tensor(module: Any) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for members in (module.named_parameters, module.named_buffers):
        for name, tensor in members(remove_duplicate=False):
            found.setdefault(id(tensor), []).append(name)
    return found


def _tied(given: dict[str, Any], names: dict[int, list[str]]) -> dict[str, Any]:
    spread = dict(given)
    for group in names.values():
        values = [given[name] for name in group if name in given]
        if len({id(v) for v in values}) > 1:
            raise ArgumentValueError(
                f"functional_call: {', '.join(map(repr, group))} are names of one tensor, and several tensors were "
                "given for it: pass tie_weights=False"
            )
        if values:
            spread.update(dict.fromkeys(group, values[0]))
    return spread


@contextmanager
def _holding(module: Any, given: dict[str, Any]) -> Iterator[None]:
    """The module with other tensors, during a ``with``."""
    before: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for path, value in given.items():
            owner, _, name = path.rpartition(".")
            holder = module.get_submodule(owner) if owner else module
            table = next((t for t in (holder._parameters, holder._buffers) if name in t), holder._buffers)
            before.append((table, name, table.get(name, _MISSING)))
            table[name] = value
        yield
    finally:
        for table, name, value in reversed(before):
            if value is _MISSING:
                table.pop(name, None)
            else:
                table[name] = value


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of models of one architecture, stacked along a new first dimension, for
    ``vmap`` of :func:`functional_call`. The stacked parameters are leaves that require grad where the models' do.

    Raises:
        ArgumentError: for no models, and for models of different classes or modes.
    """
    if not models:
        raise ArgumentError("stack_module_state: there are no models to stack")
    if len({type(m) for m in models}) > 1:
        raise ArgumentError("stack_module_state: the models are of different classes")
    if len({m.training for m in models}) > 1:
        raise ArgumentError("stack_module_state: some models are in training mode and some are not")
    return (
        _stacked_by_name([dict(m.named_parameters()) for m in models]),
        _stacked_by_name([dict(m.named_buffers()) for m in models]),
    )


def _stacked_by_name(states: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: _stacked([state[name] for state in states]) for name in states[0]}


def _stacked(tensors: list[Any]) -> Any:
    required = {t.requires_grad for t in tensors}
    if len(required) > 1:
        raise ArgumentError("stack_module_state: a parameter requires grad in some of the models only")
    with no_grad():
        made = call("stack", list(tensors), 0)
    return made.requires_grad_() if True in required else made


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let no batch norm of a module keep running statistics, which ``vmap`` cannot write. Returns the module."""
    _BatchNorm = import_module("gradwire.nn.normalization")._BatchNorm  # which stands on this package

    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
