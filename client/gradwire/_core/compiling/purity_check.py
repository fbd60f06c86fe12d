"""What a function runs while it is being recorded: which of the program's code, and whether it can be left out later.

A call of something outside of the program and of gradwire may look at the world (a clock, a random number, a file) or
change it. Only what is known to do neither is let pass.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FrameType, ModuleType
from typing import Any, Final

import numpy as np

from ..context.call_sites import PACKAGE, shown_file, spell_place

OURS, LIBRARY, PROGRAM = range(3)

_SITE: Final = tuple({sysconfig.get_paths()[k] for k in ("purelib", "platlib")})
_STDLIB: Final = tuple({sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib")})
_NUMPY: Final = str(Path(np.__file__).parent)
_PROTOCOL: Final = str(Path(PACKAGE).parent.parent / "protocol" / "gradwire_protocol")
_CARRIERS: Final = ("websockets", "httpx", "httpcore", "anyio", "h11", "msgspec", "ml_dtypes", "stamina", "certifi")
"""Packages that gradwire itself calls to send what was recorded."""

_PURE_MODULES: Final = frozenset({
    "builtins", "math", "cmath", "_operator", "operator", "itertools", "_functools", "functools", "_collections",
    "collections", "_abc", "_struct", "_bisect", "_heapq", "numpy", "numpy._core._multiarray_umath",
    "numpy.core._multiarray_umath", "_typing", "_weakref",
})  # fmt: skip
_IMPURE_BUILTINS: Final = frozenset(
    {"print", "input", "open", "exec", "eval", "compile", "globals", "locals", "breakpoint", "id", "__import__"}
)
_PURE_OWNERS: Final[tuple[type, ...]] = (
    str, bytes, list, tuple, dict, set, frozenset, int, float, complex, bool, range, slice, type(None), type({}.keys()),
    type({}.values()), type({}.items()), type(_ for _ in ()), np.ndarray, np.generic, property,
)  # fmt: skip

_WAITS: Final = frozenset({"start_new_thread", "start_joinable_thread", "acquire", "join"})

_kinds: dict[str, int] = {}


def kind_of(file: str) -> int:
    """Whose code a file holds."""
    found = _kinds.get(file)
    if found is None:
        found = _kinds[file] = _kind(file)
    return found


def _kind(file: str) -> int:
    if file.startswith((PACKAGE, _PROTOCOL)):
        return OURS
    if file.startswith((_NUMPY, "<frozen")):
        return LIBRARY
    for site in _SITE:
        if file.startswith(site):
            package = Path(file).relative_to(site).parts[0]
            return OURS if package.startswith(("gradwire", *_CARRIERS)) else PROGRAM
    return LIBRARY if file.startswith(_STDLIB) else PROGRAM


def module_kind(module: ModuleType) -> int:
    """Whose a module is. One without a file is Python's own."""
    file = getattr(module, "__file__", None)
    return LIBRARY if file is None else kind_of(file)


class PurityCheck:
    """A ``with`` during which this thread's calls are looked at.

    Attributes:
        codes: the program's own code that ran.
        reason: why what ran cannot be left out another time, if so.
        waits: called before the program starts a thread, or waits for one.
    """

    waits: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.reason: str | None = None
        self._before: Any = None

    def __enter__(self) -> PurityCheck:
        self._before = sys.getprofile()
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        self._before = None

    def _event(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if kind_of(code.co_filename) == PROGRAM and not (code.co_filename[0] == "<" and _generated_by_us(frame)):
                self.codes.add(code)
        elif event == "c_call" and _of_the_program(frame) and not _harmless(arg):
            if arg.__name__ in _WAITS:
                self.waits()
            if self.reason is not None:
                return
            owner = getattr(arg, "__self__", None)
            inside = getattr(arg, "__module__", None) or type(owner).__qualname__
            place = spell_place(shown_file(frame.f_code.co_filename), frame.f_lineno)
            self.reason = f"it calls {inside}.{arg.__name__} ({place}), which may look at the world or change it"


def _generated_by_us(frame: FrameType) -> bool:
    """Whether code without a file, such as a named tuple's, is run for gradwire."""
    return frame.f_back is not None and kind_of(frame.f_back.f_code.co_filename) != PROGRAM


def _of_the_program(frame: FrameType) -> bool:
    """Whether a call is made by the program, be it through Python's library; what gradwire does is its own affair."""
    walker: FrameType | None = frame
    while walker is not None:
        kind = kind_of(walker.f_code.co_filename)
        if kind != LIBRARY:
            return kind == PROGRAM
        walker = walker.f_back
    return False


def _harmless(called: Any) -> bool:
    owner = getattr(called, "__self__", None)
    if isinstance(called, (BuiltinFunctionType, BuiltinMethodType)) and (
        owner is None or isinstance(owner, ModuleType)
    ):
        name = called.__name__
        return called.__module__ in _PURE_MODULES and not (called.__module__ == "builtins" and name in _IMPURE_BUILTINS)
    if owner is None or isinstance(owner, type):  # a method of a class, such as object.__new__ or dict.fromkeys
        cls = owner if owner is not None else getattr(called, "__objclass__", None)
        return cls is object or cls is type or (cls is not None and issubclass(cls, _PURE_OWNERS))
    return isinstance(owner, (*_PURE_OWNERS, super)) or _of_ours(type(owner))


def _of_ours(cls: type) -> bool:
    """Whether a method that C code runs (``object.__setattr__`` and the like) is of an object of gradwire's."""
    return any(base.__module__.startswith("gradwire") for base in cls.__mro__)


class Unwatched(PurityCheck):
    """A ``with`` during which nothing is looked at: what runs is known to be pure."""

    def __enter__(self) -> Unwatched:
        return self

    def __exit__(self, *_: object) -> None:
        pass
