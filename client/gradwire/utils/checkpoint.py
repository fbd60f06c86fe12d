"""``torch.utils.checkpoint``: keep less for backward, and compute it again there.

The function runs a second time in the client, at the line that calls backward. What it records is sent on without
waiting, so that a checkpointed segment costs no round trip.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import Any, Final, TypeVar

from gradwire_protocol.errors import ArgumentValueError, CheckpointError, GraphError
from gradwire_protocol.table import TABLE

from .._core.backward.checkpoint_regions import CheckpointRegion, control
from .._core.backward.client_backward import current_backward
from .._core.backward.function import Function
from .._core.context.modes import MODES, enable_grad, is_grad_enabled, is_inference_mode_enabled, no_grad
from .._core.dispatch.autocasting import AsNow
from .._core.graph.inplace import settle
from .._core.session.current_session import current_session
from .._core.tensor.saved_tensors import SavedTensor
from .._core.tensor.tensor import Tensor
from ..autograd import backward

__all__ = [
    "CheckpointError", "CheckpointPolicy", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "get_device_states", "noop_context_fn",
    "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

CHECKS: Final = ("default", "none")
Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def noop_context_fn() -> Contexts:
    """The contexts of the first run and of the second: none."""
    return nullcontext(), nullcontext()


class CheckpointPolicy(Enum):
    """What shall become of the results of an operation in :func:`checkpoint`."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., CheckpointPolicy] | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> Contexts:
    """Contexts of the first run and of the second that do nothing: which results are kept is a hint, which changes
    time and memory and no value. Here all are computed again.

    Args:
        policy_fn_or_list: which results to keep: a function that returns a :class:`CheckpointPolicy` for an operation,
            or a list of operations. It is not asked.

    Raises:
        TypeError: when it is neither.
    """
    if not callable(policy_fn_or_list) and not isinstance(policy_fn_or_list, (list, tuple)):
        raise TypeError(
            f"policy_fn_or_list is a function or a list of operations, not {type(policy_fn_or_list).__name__}"
        )
    return nullcontext(), nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, tensors among them without history but with their ``requires_grad``.

    Raises:
        RuntimeError: when they are no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable takes a tuple, not {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn when no tensor among the inputs requires grad."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


Returned = TypeVar("Returned")


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Accepted for PyTorch's sake: the second run always goes to the function's end."""
    yield


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Accepted for PyTorch's sake: a :class:`CheckpointError` always names the operations that differ."""
    yield


def checkpoint(
    function: Callable[..., Returned],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Returned:
    """Call ``function`` without keeping what its operations save for backward; backward calls it again.

    Args:
        use_reentrant: ``False`` records the operations as usual, and they fetch what they need when backward comes;
            ``True`` runs the function without gradients, and runs backward inside backward. ``None`` warns and
            means ``True``, as in PyTorch.
        context_fn: returns the context managers of the first and the second run.
        determinism_check: ``"default"`` compares names, shapes and dtypes of both runs, ``"none"`` their number.
        preserve_rng_state: draw the same random numbers in the second run.

    Raises:
        CheckpointError: from backward, when the second run does something else than the first.
        ArgumentValueError: for arguments that the reentrant form does not take, or an unknown check.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint() without use_reentrant takes the reentrant form: pass use_reentrant=False (better) or True",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    if determinism_check not in CHECKS:
        raise ArgumentValueError(f"determinism_check is one of {', '.join(CHECKS)}, not {determinism_check!r}")
    if use_reentrant:
        if kwargs:
            raise ArgumentValueError(f"the reentrant form passes no keyword arguments: {', '.join(sorted(kwargs))}")
        if context_fn is not noop_context_fn or debug:
            raise ArgumentValueError("context_fn and debug are for use_reentrant=False")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    first, again = context_fn()
    if is_grad_enabled() and any(isinstance(a, Tensor) and a._inference for a in args):
        raise GraphError(
            "checkpoint() keeps its tensors for backward, which those made in inference mode are not: clone them"
        )
    if not is_grad_enabled() or is_inference_mode_enabled():  # nothing is recorded
        with first:
            return function(*args, **kwargs)
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            settle(value)  # else the first run would record a view's new history, and the second would not
    packed = MODES.packing != ()
    region = CheckpointRegion(
        _session_of(args, kwargs), function, () if packed else args, kwargs, preserve_rng_state=preserve_rng_state,
        compare=determinism_check == "default", again=again if context_fn is not noop_context_fn else None,
        unpack=_packed(args) if packed else None,
    )  # fmt: skip
    return region.run(args, kwargs, first)


def _packed(args: tuple[Any, ...]) -> Callable[[], tuple[Any, ...]]:
    """The arguments as the innermost hooks for saved tensors keep them: whatever is changed in place, they have it."""
    kept = [SavedTensor(a, None, False) if isinstance(a, Tensor) else a for a in args]
    return lambda: tuple([a.unpack() if isinstance(a, SavedTensor) else a for a in kept])


def _session_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            return value._session
    return current_session()


class CheckpointFunction(Function):
    """The reentrant form: a Function whose backward runs the program's function and backward again."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        if nothing_requires_grad(args):
            warnings.warn(
                "none of the inputs of checkpoint() requires grad: no gradient will arrive at what it computes",
                UserWarning,
                stacklevel=4,
            )
        ctx.call = function
        ctx.session = _session_of(args, {})
        ctx.state = control(ctx.session, "get_rng_state", []) if preserve else None
        ctx.casts = AsNow()
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        if not current_backward().to_all_leaves:
            raise GraphError(
                "checkpoint(use_reentrant=True) works with backward() to all leaves only, not with grad() or inputs=: "
                "use use_reentrant=False"
            )
        args = list(ctx.args)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        session, now = ctx.session, None
        if ctx.state is not None:
            now = control(session, "get_rng_state", [])
            session.record(TABLE["set_rng_state"], [ctx.state], 0)
        try:
            with enable_grad(), ctx.casts:
                output = ctx.call(*args)
        finally:
            if now is not None:
                session.record(TABLE["set_rng_state"], [now], 0)
        outputs = output if isinstance(output, tuple) else (output,)
        pairs = [(o, g) for o, g in zip(outputs, gradients, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise GraphError(
                "none of the results of the checkpointed function requires grad: checkpoint() is not needed there"
            )
        backward([o for o, _ in pairs], [g for _, g in pairs])
        with no_grad():
            return (None, None, *[a.grad if isinstance(a, Tensor) else None for a in args])


def nothing_requires_grad(args: tuple[Any, ...]) -> bool:
    """Whether none of the tensors among the arguments requires grad."""
    return not any(isinstance(a, Tensor) and a.requires_grad for a in args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run modules (or functions) one after another, in segments of which all but the last are checkpointed.

    Args:
        functions: a ``Sequential`` or a list.
        segments: into how many segments they are divided.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential() without use_reentrant takes the reentrant form: pass use_reentrant=False "
            "(recommended) or True",
            UserWarning,
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ArgumentValueError(f"checkpoint_sequential() got unexpected arguments: {', '.join(sorted(kwargs))}")
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def forward(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return forward

    at = 0
    for _ in range(segments - 1):
        input = checkpoint(run(at, at + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
        at += size
    return run(at, len(steps))(input)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The GPUs of the tensors in ``args``, nested ones included, and the state of random numbers for each."""
    from .. import cuda
    from ._pytree import tree_leaves

    devices = [leaf.get_device() for leaf in tree_leaves(args) if isinstance(leaf, Tensor) and leaf.is_cuda]
    return devices, [cuda.get_rng_state(number) for number in devices]


def set_device_states(devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None) -> None:
    """Go on from states that :func:`get_device_states` gave. ``device_type`` can only be a GPU's."""
    from .. import cuda

    if device_type == "meta":
        return
    for number, state in zip(devices, states, strict=False):
        cuda.set_rng_state(state, number)
