"""Classes and functions that the program lets files name: ``torch.serialization.add_safe_globals``."""

from __future__ import annotations

import _compat_pickle
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from gradwire_protocol.errors import ArgumentTypeError

from .naming import belongs_to_gradwire, name_of

Global: TypeAlias = Callable[..., Any] | tuple[Callable[..., Any], str]

_LISTED: Final[list[Global]] = []


def add_safe_globals(safe_globals: Iterable[Global]) -> None:
    """Let :func:`load` make objects of these classes, and call these functions, where a file names them.

    Objects get their attributes from the file, by their ``__setstate__`` if they have one.

    Args:
        safe_globals: classes and functions; or pairs of one and its name in files.
    """
    for entry in safe_globals:
        name_in_files(entry)
        if entry not in _LISTED:
            _LISTED.append(entry)


def get_safe_globals() -> list[Global]:
    """What was added."""
    return list(_LISTED)


def clear_safe_globals() -> None:
    """Forget what was added."""
    _LISTED.clear()


class safe_globals:
    """:func:`add_safe_globals` for the extent of a ``with``."""

    def __init__(self, safe_globals: Iterable[Global]) -> None:
        self._added = list(safe_globals)
        self._before: list[Global] = []

    def __enter__(self) -> None:
        self._before = list(_LISTED)
        add_safe_globals(self._added)

    def __exit__(self, *_: object) -> None:
        _LISTED[:] = self._before


def name_in_files(entry: Global) -> str:
    """The name of an entry, as ``"module name"``.

    Raises:
        ArgumentTypeError: for what has no name.
    """
    if isinstance(entry, tuple):
        found, dotted = entry
        if not callable(found) or not isinstance(dotted, str):
            raise ArgumentTypeError(f"a pair has a class or function, and its name in files: {entry!r:.80}")
        return " ".join(dotted.rsplit(".", 1))
    if not callable(entry) or not hasattr(entry, "__qualname__"):
        raise ArgumentTypeError(f"add_safe_globals takes classes and functions, not {entry!r:.80}")
    ours = name_of(entry) if belongs_to_gradwire(entry) else None
    return ours or f"{entry.__module__} {entry.__qualname__}"


def listed() -> dict[str, Callable[..., Any]]:
    """What was added, by name in files."""
    found = {name_in_files(entry): entry[0] if isinstance(entry, tuple) else entry for entry in _LISTED}
    return {_python2(name): value for name, value in found.items()} | found


def _python2(name: str) -> str:
    """The name in Python 2, which pickles of the protocols that it knew have."""
    module, _, inner = name.partition(" ")
    if (module, inner) in _compat_pickle.REVERSE_NAME_MAPPING:
        return " ".join(_compat_pickle.REVERSE_NAME_MAPPING[module, inner])
    return f"{_compat_pickle.REVERSE_IMPORT_MAPPING.get(module, module)} {inner}"


def refused(names: Iterable[str]) -> list[str]:
    """Those of the names in a file that may not stand there now, as ``module.name``."""
    from .allowed import allowed

    known = allowed()
    return [name.replace(" ", ".", 1) for name in names if name not in known]
