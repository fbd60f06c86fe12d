"""What a module's backward hooks see: the gradients where they enter and leave one call of the module."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from gradwire_protocol.errors import ArgumentTypeError, GraphError

from ..backward.function import Function
from ..context.call_sites import user_depth
from ..context.modes import is_grad_enabled
from ..tensor.tensor import Tensor

Hook = Callable[..., Any]


class BackwardHookFunction(Function):
    """Passes tensors on unchanged. All gradients of one side of a module's call meet in its node."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients


class Passage:
    """One call of a module with full backward hooks.

    The hooks are those that were registered when the call was made. ``grad_output`` is what the last backward brought
    to the results and no hook has consumed yet.

    Args:
        module: what the hooks get as their first argument.
        hooks: called with the gradients of the inputs and of the results.
        before: called with the gradients of the results, before they go on into the module.
    """

    def __init__(self, module: Any, hooks: Sequence[Hook], before: Sequence[Hook]) -> None:
        self._module = module
        self._hooks = hooks
        self._before = before
        self._inputs = _Side(0, None)
        self._results = _Side(0, None)
        self._grad_output: Any = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that forward gets."""
        args, self._inputs = _through(args, self._leaving)
        return args

    def exit(self, result: Any) -> Any:
        """The result that the caller gets."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                f"{type(self._module).__name__} returned {type(result).__name__}: its backward hooks are called only "
                "for a tensor or a tuple of tensors",
                stacklevel=user_depth(),
            )
        several = isinstance(result, tuple)
        results, self._results = _through(result if several else (result,), self._arriving)
        return results if several else results[0]

    def _arriving(self, _: Any, gradients: tuple[Any, ...]) -> Any:
        found: Any = self._results.spread(gradients)
        for hook in self._before:
            changed = hook(self._module, found)
            if changed is not None:
                _check_count(changed, found, "pre-hook", "grad_output")
                found = changed
        if self._inputs.tensors is None:
            self._without_inputs(found)
        else:
            self._grad_output = found
        return self._results.gather(found)

    def _without_inputs(self, grad_output: Any) -> None:
        warnings.warn(
            f"no input of {type(self._module).__name__} requires grad: its full backward hooks are called with the "
            "gradients of its results alone",
            stacklevel=user_depth(),
        )
        nothing = self._inputs.spread(())
        for hook in self._hooks:
            changed = hook(self._module, nothing, grad_output)
            if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                raise GraphError(
                    f"a backward hook of {type(self._module).__name__} returned gradients, but no input requires grad"
                )

    def _leaving(self, gradients: tuple[Any, ...], _: Any) -> Any:
        if self._grad_output is None:
            return None  # a derivative of a derivative comes to the inputs without passing the results
        found: Any = self._inputs.spread(gradients)
        for hook in self._hooks:
            changed = hook(self._module, found, self._grad_output)
            if changed is not None:
                _check_count(changed, found, "hook", "grad_input")
                found = changed
        self._grad_output = None
        return self._inputs.gather(found)


class _Side:
    """The arguments of a call, or its results: how many there are and which of them are tensors.

    ``tensors`` is None where nothing is watched, since no tensor requires grad.
    """

    __slots__ = ("count", "tensors")

    def __init__(self, count: int, tensors: list[int] | None) -> None:
        self.count = count
        self.tensors = tensors

    def spread(self, gradients: Sequence[Any]) -> tuple[Any, ...]:
        """One gradient per value, None for what is no tensor."""
        found = [None] * self.count
        for i, gradient in zip(self.tensors or (), gradients, strict=True):
            found[i] = gradient
        return tuple(found)

    def gather(self, gradients: Any) -> tuple[Any, ...]:
        """The gradients of the tensors alone."""
        return tuple([gradients[i] for i in self.tensors or ()])


def _through(values: tuple[Any, ...], hook: Hook) -> tuple[Any, _Side]:
    """The values with their tensors passed through a node that has the hook, unless none requires grad."""
    tensors = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not is_grad_enabled() or not any(values[i].requires_grad for i in tensors):
        return values, _Side(len(values), None)
    passed = BackwardHookFunction.apply(*[values[i] for i in tensors])
    next(t.grad_fn for t in passed if t.requires_grad).register_hook(hook)
    items = list(values)
    for i, tensor in zip(tensors, passed, strict=True):
        items[i] = tensor
    made = tuple(items) if type(values) is tuple else type(values)(*items)
    return made, _Side(len(values), tensors)


def _check_count(changed: Any, expected: Any, who: str, what: str) -> None:
    if len(changed) != len(expected):
        raise GraphError(f"a backward {who} returned {len(changed)} gradients for {what}, which has {len(expected)}")


def watch_result(module: Any, hooks: Sequence[Hook], args: Any, result: Any) -> None:
    """Register backward hooks of the older kind, at the node that made the (first) result.

    Such a hook sees the gradients of that one node. Where these are not those of the module, a FutureWarning says so.
    """
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next((v for v in first.values() if isinstance(v, Tensor)), None)
        elif isinstance(first, (tuple, list)):
            first = first[0]
        else:
            raise ArgumentTypeError(
                f"{type(module).__name__} has a backward hook, but no tensor comes first in its result"
            )
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_Bound(hook, module))
    missing = _missing(args, result, node)
    if missing:
        warnings.warn(
            f"a backward hook of {type(module).__name__} will not see all gradients, since {missing}: "
            "use register_full_backward_hook",
            FutureWarning,
            stacklevel=user_depth(),
        )


def _missing(args: Any, result: Any, node: Any) -> str | None:
    """Why the node that made the first result does not have all gradients of the module; None where it has."""
    results = (result,) if isinstance(result, Tensor) else result
    if not _only_tensors(results):
        return "its result is neither a tensor nor a tuple of tensors"
    if not _only_tensors(args):
        return "not all of its arguments are tensors"
    makers = {r.grad_fn for r in results} - {None}
    if makers != {node}:
        return "its results were made by different operations"
    before = {e[0] if e is not None else None for e in node.edges}
    if {a.grad_fn for a in args} - {None} != before:
        return "its forward consists of several operations"
    return None


def _only_tensors(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)


class _Bound:
    """A hook with its module in front, which the graph does not keep alive."""

    def __init__(self, hook: Hook, module: Any) -> None:
        self._hook = hook
        self._module = ref(module)

    def __call__(self, *gradients: Any) -> Any:
        module = self._module()
        if module is None:
            raise GraphError("the module of a backward hook is gone: keep it until backward has run")
        return self._hook(module, *gradients)
