"""Kernels whose machine code is taken from the disk cache when it is first needed.

Taking in all of it keeps the interpreter busy for seconds, which the sessions of a new process would feel; a program
needs a tenth of it. Where the cache has a kernel's object code (:mod:`.object_code`), that is loaded and nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numba
from numba.core.typing.templates import Signature

from ...runtime.arrays import Native
from . import object_code

Kernel = Callable[..., Any]

log = logging.getLogger("gradwire.compiled")

_place: Path | None = None
_objects: Path | None = None
_names: Final[Counter[str]] = Counter()
_LOCK: Final = threading.RLock()


def take_later(place: Path | None) -> None:
    """Let kernels that are made from now on be taken from this folder when they are called; with None let them be
    compiled, or taken from where Numba is told to look, as they are made."""
    global _place, _objects
    _place = place
    _objects = None if place is None else object_code.kept(place)
    _names.clear()


def later() -> Path | None:
    """The folder, where kernels are taken when they are called."""
    return _place


def object_file(function: Kernel) -> Callable[[Native | None], str]:
    """The name of the file with a kernel's object code for a dtype. A module makes its kernels in the same order
    whenever it is imported, which tells those of one name apart."""
    name = function.__name__
    _names[name] += 1
    name = f"{name}-{_names[name]}"
    return lambda dtype: name if dtype is None else f"{name}-{dtype}"


class LoadedLater:
    """A kernel of which the machine code is loaded for one dtype at a time, at the first call with it.

    Where the cache was removed or damaged meanwhile, it is compiled there and then: a session that has begun with
    compiled kernels has to go on with them.

    Args:
        load: gives the kernel for these dtypes (None where ``at`` is).
        dtypes: all there are.
        at: which argument has the dtype that the machine code depends on; None where there is one code for all calls.
        file: the name of the file with the object code for a dtype.
        from_object: gives the kernel for a dtype from that file.
    """

    __slots__ = (
        "_at", "_dtypes", "_file", "_found", "_from_object", "_load", "_objects", "_place", "_whole", "by_threads",
        "py_func",
    )  # fmt: skip

    def __init__(
        self, function: Kernel, load: Callable[[Sequence[Native | None]], Any], dtypes: Sequence[Native | None],
        at: int | None, place: Path, file: Callable[[Native | None], str],
        from_object: Callable[[Path, Native | None], Any],
    ) -> None:  # fmt: skip
        self.py_func = function
        self.by_threads: LoadedLater | None = None
        self._load = load
        self._dtypes = dtypes
        self._at = at
        self._place = place
        self._objects = _objects
        self._file = file
        self._from_object = from_object
        self._whole: Any = None
        self._found: dict[Native | None, Kernel] = {}

    def __call__(self, *args: Any) -> Any:
        at = self._at
        dtype = None if at is None else args[at].dtype
        found = self._found.get(dtype)
        if found is None:
            found = self.of(dtype)
        return found(*args)

    def of(self, dtype: Native | None) -> Kernel:
        """The machine code for a dtype."""
        with _LOCK:
            found = self._found.get(dtype)
            if found is None:
                found = self._found[dtype] = self._alone(dtype) or self._taken([dtype])
            return found

    def _alone(self, dtype: Native | None) -> Any:
        """The kernel by its object code alone; None where that is not possible."""
        if self._objects is None:
            return None
        try:
            return self._from_object(self._objects / self._file(dtype), dtype)
        except Exception as error:
            log.debug("kernel %s cannot be taken from its object code: %s", self.py_func.__name__, error)
            return None

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes it for, where it compiles another kernel that calls this one."""
        with _LOCK:
            if self._whole is None:  # kept, since a type does not keep it
                self._whole = self._taken(self._dtypes)
            return numba.typeof(self._whole)  # type: ignore[no-untyped-call]

    def _taken(self, dtypes: Sequence[Native | None]) -> Any:
        try:
            return self._from(self._place, dtypes)
        except Exception as error:
            log.warning("kernel %s cannot be loaded and is compiled: %s", self.py_func.__name__, error)
            with TemporaryDirectory(prefix="gradwire-kernel-") as elsewhere:
                return self._from(Path(elsewhere), dtypes)

    def _from(self, place: Path, dtypes: Sequence[Native | None]) -> Any:
        setattr(numba.config, "CACHE_DIR", str(place))  # noqa: B010  (read as a function is cached)
        return self._load(dtypes)


def now_or_later(function: Kernel, signatures: dict[Native | None, Signature], at: int | None, **options: Any) -> Any:
    """A function as machine code, for these signatures by the dtype of the argument ``at``: compiled now, or loaded at
    its first calls."""

    file = object_file(function)

    def load(dtypes: Sequence[Native | None]) -> Any:
        return numba.njit([signatures[dtype] for dtype in dtypes], cache=True, **options)(function)

    def from_object(path: Path, dtype: Native | None) -> Any:
        return object_code.dispatcher(path, function, signatures[dtype], options)

    if _place is not None:
        return LoadedLater(function, load, list(signatures), at, _place, file, from_object)
    made = load(list(signatures))
    for dtype, signature in signatures.items():
        object_code.note(file(dtype), partial(object_code.code_of, made.overloads[signature.args]))
    return made


def loaded(kernel: Kernel, dtype: Native) -> Kernel:
    """A kernel as its machine code alone, for a dtype."""
    return kernel.of(dtype) if type(kernel) is LoadedLater else kernel
