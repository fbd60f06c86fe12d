"""``safetensors.torch`` under ``gradwire run``: where it would read a tensor's memory at its address, it asks gradwire.

Everything else of the library stays as it is: what it checks, how it finds shared memory, its file format.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

import numpy as np

from gradwire_protocol.errors import Unsupported

NAME: Final = "safetensors.torch"


class SafetensorsFinder(MetaPathFinder):
    """Finds the library as usual, and changes it once it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != NAME:
            return None
        for finder in sys.meta_path:
            found = None if finder is self else finder.find_spec(fullname, path, target)
            if found is not None:
                if found.loader is not None:
                    found.loader = _Changed(found.loader)
                return found
        return None


class _Changed(Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        change(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def change(module: ModuleType) -> None:
    """Let the functions that turn tensors into bytes read them from the server, all of one call in one round trip.

    A version of the library without those that are known is not let near an address: its functions raise.
    """
    there = vars(module)
    values = _Values()
    if "_to_ndarray" in there and "_flatten_as_ptr" in there:
        there["_to_ndarray"] = lambda tensor: (values.of(tensor), tensor)
        there["_flatten_as_ptr"] = values.read_before(there["_flatten_as_ptr"])
    elif "_tobytes" in there and "_flatten" in there:
        checked = there["_tobytes"]

        def _tobytes(tensor: Any, name: str) -> bytes:
            if not tensor.is_contiguous():
                checked(tensor, name)  # raises the library's error
            return values.of(tensor).tobytes()

        there["_tobytes"] = _tobytes
        there["_flatten"] = values.read_before(there["_flatten"])
    else:
        for name in ("save", "save_file", "save_model"):
            there[name] = _refusing(name)


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Unsupported(
            f"safetensors.torch.{name}: this version of safetensors reads memory in a way that gradwire does not know: "
            "use torch.save to a path that ends in .safetensors, or safetensors 0.8"
        )

    return refuse


class _Values:
    """The values of tensors that are being saved."""

    def __init__(self) -> None:
        self._read: dict[int, np.ndarray[Any, Any]] = {}

    def of(self, tensor: Any) -> np.ndarray[Any, Any]:
        """A tensor's bytes, in the order of its elements."""
        found = self._read.get(id(tensor))
        array = tensor.detach()._fetch() if found is None else found
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def read_before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of a dictionary of tensors, which reads them together first."""

        @wraps(function)
        def reading(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            from gradwire import Tensor

            given = [t for t in tensors.values() if isinstance(t, Tensor)] if isinstance(tensors, dict) else []
            by_session: dict[Any, list[Any]] = {}
            for tensor in given:
                if not tensor.is_meta and tensor.is_contiguous():
                    by_session.setdefault(tensor._session, []).append(tensor)
            try:
                for session, several in by_session.items():
                    for tensor, value in zip(several, session.read(several), strict=True):
                        self._read[id(tensor)] = value
                return function(tensors, *args, **kwargs)
            finally:
                self._read.clear()

        return reading
