"""The older names of ``functorch``: modules taken apart into a function and its parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from gradwire_protocol.errors import ArgumentError

from .._core.dispatch.dispatch import call
from .._core.modules.module import Module
from .._core.tensor.tensor import Tensor
from .modules import functional_call

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "make_functional",
    "make_functional_with_buffers",
]  # fmt: skip

Tensors = tuple[Tensor, ...]


class FunctionalModuleWithBuffers(Module):
    """A module without state: called with parameters and buffers before its arguments."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model: Module = stateless_model
        self.param_names: tuple[str, ...] = tuple(param_names)
        self.buffer_names: tuple[str, ...] = tuple(buffer_names)

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
        apart = copy.deepcopy(model)
        params, buffers = dict(apart.named_parameters()), dict(apart.named_buffers())
        every = [id(t) for _, t in apart.named_parameters(remove_duplicate=False)]
        if len(set(every)) < len(every):
            raise ArgumentError("make_functional: two parameters of the module are one tensor; use functional_call")
        if disable_autograd_tracking:
            for parameter in params.values():
                parameter.requires_grad_(False)
        made = FunctionalModuleWithBuffers(apart, list(params), list(buffers))
        return made, tuple(params.values()), tuple(buffers.values())

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these tensors."""
        given = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(Module):
    """A module without state: called with parameters before its arguments."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model: Module = stateless_model
        self.param_names: tuple[str, ...] = tuple(param_names)

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Tensors]:
        made, params, _ = FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)
        return FunctionalModule(made.stateless_model, made.param_names), params

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters."""
        given = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, Tensors]:
    """A module as a function of its parameters, and a copy of these.

    Raises:
        ArgumentError: for a module with buffers, or with one parameter at two places.
    """
    if next(model.buffers(), None) is not None:
        raise ArgumentError("make_functional: the module has buffers; make_functional_with_buffers takes it apart")
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, Tensors, Tensors]:
    """A module as a function of its parameters and buffers, and copies of these.

    Raises:
        ArgumentError: for a module with one parameter at two places.
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Callable[..., Any], Tensors, Tensors]:
    """Modules of one kind as one function, to be mapped over their stacked parameters and buffers.

    Raises:
        ArgumentError: for no modules, for modules of several classes, and for some in training and some not.
    """
    if not models:
        raise ArgumentError("combine_state_for_ensemble: at least one module is needed")
    if len({model.training for model in models}) > 1:
        raise ArgumentError("combine_state_for_ensemble: some modules are in training mode and some are not")
    if len({type(model) for model in models}) > 1:
        names = sorted({type(model).__name__ for model in models})
        raise ArgumentError(f"combine_state_for_ensemble: the modules are of several classes, {names}")
    parts = [make_functional_with_buffers(model) for model in models]
    stacked = [tuple(call("stack", list(row), 0) for row in zip(*[p[i] for p in parts], strict=True)) for i in (1, 2)]
    return parts[0][0], stacked[0], stacked[1]
