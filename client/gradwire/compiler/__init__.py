"""``torch.compiler``: what surrounds :func:`gradwire.compile`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload

from gradwire_protocol.errors import Unsupported

from .._core.compiling.function import compile, forget_all
from .._core.surface import stand_ins
from . import config

Anything = TypeVar("Anything")

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable",
           "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "keep_portable_guards_unsafe",
           "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts", "load_compiled_function",
           "nested_compile_region", "reset", "save_cache_artifacts", "set_default_backend",
           "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
           "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
           "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph", "wrap_numpy"]  # fmt: skip


def is_compiling() -> bool:
    """Never: what is recorded of a function is what it does."""
    return False


def is_dynamo_compiling() -> bool:
    """Never."""
    return False


@overload
def disable(fn: None = None, recursive: bool = True, **_: Any) -> Callable[[Anything], Anything]: ...
@overload
def disable(fn: Anything, recursive: bool = True, **_: Any) -> Anything: ...


def disable(fn: Any = None, recursive: bool = True, **_: Any) -> object:
    """The function, unchanged: what it does is recorded as part of what calls it."""
    return (lambda function: function) if fn is None else fn


def reset() -> None:
    """Forget all that was recorded for replays, of every compiled function."""
    forget_all()


def allow_in_graph(fn: Anything) -> Anything:
    """The function, unchanged."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """There are no graphs to begin."""


def is_exporting() -> bool:
    """Never: programs are not exported."""
    return False


def assume_constant_result(fn: Anything) -> Anything:
    """The function, unchanged: its result is what it returns."""
    return fn


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False,
    is_embedded_type: bool = False,
) -> Callable[[Anything], Anything]:  # fmt: skip
    """A decorator that changes nothing: what the original function does is recorded, so it needs no substitute."""
    return lambda traceable_fn: traceable_fn


def nested_compile_region(fn: Any = None, *_: Any, **__: Any) -> Any:
    """The function, unchanged: what it does is recorded as part of what calls it."""
    return (lambda function: function) if fn is None else fn


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors that calls ``fn`` with NumPy arrays, and makes tensors of the arrays that it returns.

    It waits for the values of its arguments, and has no gradients.
    """
    from functools import wraps

    import numpy as np

    from .._core.context.pytree import tree_map
    from .._core.surface.creation import from_numpy
    from .._core.tensor.tensor import Tensor

    def array(value: Any) -> Any:
        return value.numpy() if isinstance(value, Tensor) else value

    def tensor(value: Any) -> Any:
        return from_numpy(value) if isinstance(value, np.ndarray) else value

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return tree_map(tensor, fn(*tree_map(array, args), **tree_map(array, kwargs)))

    return call


def list_backends(exclude_tags: tuple[str, ...] | None = ("debug", "experimental")) -> list[str]:
    """The backends that ``torch.compile`` takes by PyTorch's default names. All do the same: calls are replayed."""
    return ["eager", "inductor"] if not exclude_tags else ["inductor"]


_STANCES: Final = ("default", "force_eager", "eager_on_recompile", "eager_then_compile", "aot_eager_then_compile",
                   "fail_on_recompile")  # fmt: skip
_default_backend: list[Any] = ["inductor"]


def get_default_backend() -> Any:
    """What :func:`set_default_backend` set."""
    return _default_backend[0]


def set_default_backend(backend: Any) -> None:
    """Stored, without effect: calls are replayed whatever the backend is called."""
    _default_backend[0] = backend


class set_stance:
    """How compiled functions are run from here on; with ``with`` or as a decorator, inside of it.

    Stored, without effect: a replay computes what the function computes.

    Raises:
        RuntimeError: for a stance that PyTorch does not know.
        Unsupported: for ``fail_on_recompile``; ``torch.compile(fullgraph=True)`` refuses what cannot be replayed.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"set_stance: stance {stance!r:.60} is none of {', '.join(_STANCES)}")
        if stance == "fail_on_recompile":
            raise Unsupported("set_stance('fail_on_recompile') is not supported by gradwire: use fullgraph=True")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, fn: Anything) -> Anything:
        return fn


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Without effect: ranks record for themselves. Returns False, what it was before."""
    return False


def _all(guards: list[Any]) -> list[bool]:
    return [True] * len(guards)


def keep_portable_guards_unsafe(guard_entries: list[Any]) -> list[bool]:
    """Without effect: gradwire checks its own conditions for replays."""
    return _all(guard_entries)


keep_tensor_guards_unsafe = skip_all_guards_unsafe = skip_guard_on_globals_unsafe = keep_portable_guards_unsafe
skip_guard_on_all_nn_modules_unsafe = skip_guard_on_inbuilt_nn_modules_unsafe = keep_portable_guards_unsafe


stand_ins.fill(
    __name__,
    ("load_cache_artifacts", "load_compiled_function", "save_cache_artifacts"),
    "what was recorded for replays lives as long as the process",
)
