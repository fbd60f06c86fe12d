"""``torch.jit``: nothing is compiled from Python source here. What only marks code is accepted.

``script`` and ``trace`` return what they are given: a function or module that runs as Python. ``torch.compile``
replays calls. Files of scripts are neither written nor read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Self, TypeVar

from .._core.surface import stand_ins
from .._jit_internal import _isinstance as isinstance
from .._jit_internal import _overload as _overload
from .._jit_internal import _overload_method as _overload_method
from .._jit_internal import export, ignore, unused
from .._jit_internal import is_scripting as is_scripting
from ..futures import Future
from ..nn import Module as _Module

del annotations  # else it would hide the module of that name

Anything = TypeVar("Anything")

__all__ = ["Attribute", "CompilationUnit", "Error", "Future", "ScriptFunction", "ScriptModule", "annotate",
           "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "ignore", "interface", "isinstance",
           "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script", "script_if_tracing",
           "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait"]  # fmt: skip


class Error(Exception):
    """An error inside of a script: never raised, since none runs."""


class TracerWarning(Warning):
    """Warns of what a trace misses: never given, since none is taken."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Without effect: there are no such warnings."""


class Attribute(NamedTuple):
    """A value of a ``ScriptModule`` and its type."""

    value: Any
    type: Any


class ScriptModule(_Module):
    """A module like any other. Its methods run as Python."""


class RecursiveScriptModule(ScriptModule):
    """What PyTorch makes of a scripted module. ``script`` makes none here: a program only asks ``isinstance``."""


class TracedModule(ScriptModule):
    """What PyTorch makes of a traced module. ``trace`` makes none here: a program only asks ``isinstance``."""


class TopLevelTracedModule(TracedModule):
    """What PyTorch makes of a traced module. ``trace`` makes none here: a program only asks ``isinstance``."""


def is_tracing() -> bool:
    """Whether a trace is being taken: never."""
    return False


def script(
    obj: Anything, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Anything:
    """The function, module or class itself: it runs as Python."""
    return obj


def script_if_tracing(fn: Anything) -> Anything:
    """The function itself: no trace is taken."""
    return fn


_script_if_tracing = script_if_tracing


def script_method(fn: Anything) -> Anything:
    """The method itself."""
    return fn


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: dict[str, Any] | None = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """Run a function or module on its example once, and return the function or module itself.

    Unlike PyTorch's trace, what is returned follows the program's control flow at each call.
    """
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    elif example_inputs is None:
        raise RuntimeError("torch.jit.trace requires example_inputs or example_kwarg_inputs")
    else:
        func(*(example_inputs if type(example_inputs) in (tuple, list) else (example_inputs,)))
    return func


def trace_module(mod: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
    """Run methods of a module on their examples once, and return the module itself; see :func:`trace`."""
    for name, example in inputs.items():
        call = mod if name == "forward" else getattr(mod, name)
        call(*(example if type(example) in (tuple, list) else (example,)))
    return mod


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True,
    preserve_parameters: bool = False,
) -> Any:  # fmt: skip
    """The module itself.

    Raises:
        RuntimeError: when it is in training mode.
    """
    if getattr(mod, "training", False):
        raise RuntimeError("Freezing module in training mode is not supported: call eval() first")
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """The module itself, in evaluation mode."""
    return mod.eval() if hasattr(mod, "training") else mod


def annotate(the_type: Any, the_value: Anything) -> Anything:
    """The value. Its type is for PyTorch's compiler."""
    return the_value


def interface(obj: Anything) -> Anything:
    """The class itself, which declares methods for PyTorch's compiler."""
    return obj


def fork(func: Callable[..., Anything], *args: Any, **kwargs: Any) -> Future[Anything]:
    """Call the function now and return a future with its result, as PyTorch does outside of scripts."""
    future: Future[Anything] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Anything]) -> Anything:
    """The value of a future of :func:`fork`."""
    return future.wait()


_fork, _wait = fork, wait

_settings: Final[dict[str, Any]] = {"onednn": False, "strategy": [("STATIC", 2), ("DYNAMIC", 10)]}


def onednn_fusion_enabled() -> bool:
    """What :func:`enable_onednn_fusion` set."""
    return bool(_settings["onednn"])


def enable_onednn_fusion(enabled: bool) -> None:
    """Stored, without effect: nothing is fused on the client."""
    _settings["onednn"] = enabled


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Stored, without effect. Returns the strategy before."""
    before: list[tuple[str, int]] = _settings["strategy"]
    _settings["strategy"] = strategy
    return before


_set_fusion_strategy = set_fusion_strategy


class strict_fusion:
    """``with`` without effect: nothing is fused on the client."""

    def __init__(self) -> None:
        warnings.warn("torch.jit.strict_fusion has no effect outside of scripts", stacklevel=2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """``with`` without effect: there is no other execution."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """``with`` without effect: nothing is fused on the client.

    Raises:
        ValueError: for a name that PyTorch does not know.
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise ValueError(f"unrecognized fuser option (name: {name})")
    yield


stand_ins.fill(
    __name__,
    ("CompilationUnit", "ONNXTracedModule", "ScriptFunction", "export_opnames", "jit_module_from_flatbuffer", "load",
     "save", "save_jit_module_to_flatbuffer"),
    "nothing is compiled from Python source, and files of scripts are neither written nor read",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("_recursive", "_script", "_state", "_trace", "annotations"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
