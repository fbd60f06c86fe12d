"""``checkpoint_wrapper``: a module that keeps no intermediate results for backward, and computes them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from importlib import import_module
from typing import Any

from ...._core.modules.module import Module
from ...._core.surface.stand_ins import stand_ins as _stand_ins
from ....autograd.graph import save_on_cpu

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """PyTorch's two ways to compute again."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another, whose names are those of the inner one."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        inner: Any = self._checkpoint_wrapped_module
        return inner[key]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters, by their names in the inner module."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter


def _without_prefix(module: Any, state: Any, prefix: str, *args: Any) -> Any:
    start = prefix + _CHECKPOINT_PREFIX
    for name in [name for name in state if name.startswith(start)]:
        state[prefix + name.removeprefix(start)] = state.pop(name)
    return state


def _with_prefix(module: Any, state: Any, prefix: str, *args: Any) -> None:
    start = prefix + _CHECKPOINT_PREFIX
    for name in [name for name in state if name.startswith(prefix) and not name.startswith(start)]:
        state[start + name.removeprefix(prefix)] = state.pop(name)


class CheckpointWrapper(ActivationWrapper):
    """A module whose forward runs a second time in backward, rather than keep what it computed."""

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Any = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint = import_module("gradwire.utils.checkpoint").checkpoint  # utils.data imports this package
            checkpoint_fn = partial(checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT)
        self.checkpoint_fn: Callable[..., Any] = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the inner module gives."""
        inner: Any = self._checkpoint_wrapped_module
        if kwargs and self.checkpoint_impl is CheckpointImpl.REENTRANT:
            count = len(args)
            names = list(kwargs)
            return self.checkpoint_fn(
                lambda *given: inner(*given[:count], **dict(zip(names, given[count:], strict=True))), *args,
                *kwargs.values(),
            )  # fmt: skip
        return self.checkpoint_fn(inner, *args, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """A module whose intermediate results wait for backward in main memory."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the inner module gives."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Any = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:  # fmt: skip
    """The module, computed again in backward."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """The module, with intermediate results in main memory."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[..., Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True, auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Wrap those modules inside of ``model`` that ``check_fn``, or ``auto_wrap_policy``, chooses."""
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn, auto_wrap_policy)
        chosen = check_fn(child)
        if auto_wrap_policy is not None:
            size = sum(parameter.numel() for parameter in child.parameters())
            chosen = auto_wrap_policy(module=child, recurse=False, nonwrapped_numel=size)
        if chosen and not isinstance(child, ActivationWrapper):
            setattr(model, name, checkpoint_wrapper_fn(child))


globals().update(_stand_ins(__name__, "selective_checkpoint_wrapper", "checkpoint_wrapper wraps modules"))
