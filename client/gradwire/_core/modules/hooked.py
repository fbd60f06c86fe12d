"""The call of a module that has hooks, and how they are registered."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradwire_protocol.errors import ArgumentError, GraphError

from ..context.call_sites import user_depth
from ..context.hook_handles import HookTable, RemovableHandle
from .backward_hooks import Passage, watch_result
from .global_hooks import BACKWARD, BACKWARD_PRE, CALLS, FORWARD, FORWARD_PRE, MIXED, calls_of


class Hooked:
    """The half of :class:`Module` that calls it.

    ``_hooked`` is False while the module has no hooks of its own, so that a call has one thing to look at.
    """

    forward: Callable[..., Any]
    _hooked: bool
    _is_full_backward_hook: bool | None
    _forward_pre_hooks: HookTable
    _forward_hooks: HookTable
    _backward_pre_hooks: HookTable
    _backward_hooks: HookTable
    # Numbers of those hooks that take keyword arguments, and of those that are called after a failure, too.
    _forward_pre_hooks_with_kwargs: HookTable
    _forward_hooks_with_kwargs: HookTable
    _forward_hooks_always_called: HookTable

    def _init_hooks(self) -> None:
        plain = object.__setattr__
        plain(self, "_hooked", False)
        plain(self, "_is_full_backward_hook", None)
        plain(self, "_forward_pre_hooks", HookTable())
        plain(self, "_forward_hooks", HookTable())
        plain(self, "_backward_pre_hooks", HookTable())
        plain(self, "_backward_hooks", HookTable())
        plain(self, "_forward_pre_hooks_with_kwargs", HookTable())
        plain(self, "_forward_hooks_with_kwargs", HookTable())
        plain(self, "_forward_hooks_always_called", HookTable())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._hooked and not CALLS:
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = (self._forward_pre_hooks, self._forward_hooks, self._backward_pre_hooks, self._backward_hooks)
        self._hooked = any(own)
        full, older = self._backward_by_kind()
        before_backward = [h for (h,) in calls_of(BACKWARD_PRE)] + list(self._backward_pre_hooks.values())
        pending: list[Any] | None = None
        result = None
        try:
            args, kwargs = self._before_forward(args, kwargs)
            passage = Passage(self, full, before_backward) if full or before_backward else None
            if passage is not None:
                args = passage.enter(args)
            result = self.forward(*args, **kwargs)
            pending = self._after_forward()
            while pending:
                hook, with_kwargs, _ = pending.pop(0)
                changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                if changed is not None:
                    result = changed
            if passage is not None:
                result = passage.exit(result)
            if older:
                watch_result(self, older, args, result)
        except Exception:
            for hook, with_kwargs, always in self._after_forward() if pending is None else pending:
                if always:
                    self._after_failure(hook, (args, kwargs, result) if with_kwargs else (args, result))
            raise
        return result

    def _before_forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        named = self._forward_pre_hooks_with_kwargs
        own = [(hook, number in named) for number, hook in self._forward_pre_hooks.items()]
        for hook, with_kwargs in calls_of(FORWARD_PRE) + own:
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is None:
                continue
            if with_kwargs:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise ArgumentError(f"a pre-hook with kwargs returns None or (args, kwargs), not {changed!r:.60}")
                args, kwargs = changed
            else:
                args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _after_forward(self) -> list[Any]:
        named, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        return calls_of(FORWARD) + [
            (hook, number in named, number in always) for number, hook in self._forward_hooks.items()
        ]

    def _after_failure(self, hook: Callable[..., Any], values: tuple[Any, ...]) -> None:
        try:
            hook(self, *values)
        except Exception as error:
            warnings.warn(
                f"a forward hook of {type(self).__name__} with always_call raised {error!r} after forward had failed",
                stacklevel=user_depth(),
            )

    def _backward_by_kind(self) -> tuple[list[Any], list[Any]]:
        """The backward hooks that are full, and those of the older kind."""
        full: list[Any] = []
        older: list[Any] = []
        for hook, is_full in calls_of(BACKWARD):
            (full if is_full else older).append(hook)
        (full if self._is_full_backward_hook else older).extend(self._backward_hooks.values())
        return full, older

    # Registration

    def _register(
        self, table: HookTable, entry: Any, prepend: bool = False, marked: list[HookTable] | None = None
    ) -> RemovableHandle:
        self._hooked = True
        return table.register(entry, first=prepend, marked=marked or ())

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward; what it returns, if not None, replaces the arguments."""
        marked = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return self._register(self._forward_pre_hooks, hook, prepend, marked)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, result)`` after each forward; what it returns, if not None, replaces the result.

        With ``always_call`` it is called after a failure, too, with the result as far as there is one, or None. What
        it then raises is a warning.
        """
        marked = [self._forward_hooks_with_kwargs] if with_kwargs else []
        marked += [self._forward_hooks_always_called] if always_call else []
        return self._register(self._forward_hooks, hook, prepend, marked)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` once a backward has computed the gradients of the inputs.

        Both are tuples with one entry per positional argument and per result, None for what is no tensor. What the
        hook returns, if not None, replaces ``grad_input``. Inputs and results of the module become views, which cannot
        be changed in place. Where no input requires grad, the hook is called with the gradients of the results. It
        runs in the client, within the call of backward, and what it computes is recorded like anything else.

        Args:
            prepend: call it before the hooks that the module has already.

        Raises:
            GraphError: when the module has hooks of :meth:`register_backward_hook`.
        """
        self._be(full=True)
        return self._register(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before gradients go on into the module.

        ``grad_output`` is a tuple with one entry per result; what the hook returns, if not None, replaces it.
        """
        return self._register(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` at the one operation that made the module's result.

        Kept for old programs: a module of several operations has other gradients than this hook sees. Prefer
        :meth:`register_full_backward_hook`.

        Raises:
            GraphError: when the module has full backward hooks.
        """
        self._be(full=False)
        return self._register(self._backward_hooks, hook)

    def _be(self, *, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise GraphError(MIXED.format(type(self).__name__))
        self._is_full_backward_hook = full
