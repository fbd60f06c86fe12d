"""``torch._ops``: the operations under ``torch.ops``: a program's own, and gradwire's functions as ``aten``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from gradwire_protocol.errors import Unsupported

from ._core.backward.registered_ops import REGISTERED, RegisteredOp
from ._core.surface.layout_names import refusing
from ._core.surface.methods import FUNCTIONS
from ._core.surface.unsupported import where
from ._core.tensor.tensor import Tensor


class LibraryNotLoaded(OSError, Unsupported):
    """A compiled library of operations cannot be loaded: an ``OSError``, as PyTorch raises, and ``Unsupported``."""

    def __init__(self, path: object) -> None:
        Unsupported.__init__(
            self,
            f"torch.ops.load_library({str(path)!r:.200}): code that is compiled for PyTorch does not run; {where()}",
        )


class OperatorBase:
    """What an operation of PyTorch's is. Only subclasses are operations."""


class OpOverload(OperatorBase):
    """One overload of an operation of ``torch.ops.aten``: the function of gradwire with its name."""

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__module__ = packet.__module__
        self.namespace = packet.namespace

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def name(self) -> str:
        """Its full name."""
        return f"{self.overloadpacket._qualified_op_name}.{self._overloadname}".removesuffix(".default")

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self.namespace}.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"
        )  # fmt: skip

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


class OpOverloadPacket(OperatorBase):
    """An operation of ``torch.ops.aten``: the function of gradwire with its name.

    Its overloads are all the same function, which tells them by their arguments.
    """

    def __init__(self, namespace: str, name: str, function: Callable[..., Any]) -> None:
        self.namespace, self.__name__, self._function = namespace, name, function
        self.__module__ = f"torch.ops.{namespace}"
        self._qualified_op_name = f"{namespace}::{name}"
        self._overloads: dict[str, OpOverload] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):
            raise AttributeError(f"operation {self._qualified_op_name} has no attribute {name!r}", name=name, obj=self)
        return self._overloads.setdefault(name, OpOverload(self, name))

    def overloads(self) -> list[str]:
        """The names of the overloads that were used."""
        return list(self._overloads)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"


class HigherOrderOperator(OperatorBase):
    """An operation on functions, of a library's own subclass, which defines what a call does."""

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        self._name = self.__name__ = name
        self.namespace = "higher_order"

    def name(self) -> str:
        """Its name."""
        return self._name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"higher-order operation {self._name} is not supported by gradwire; {where()}")


class _OpNamespace(ModuleType):
    """The operations of one namespace."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            found = REGISTERED.get(self._name, {}).get(name)
            if found is not None and found.exists:
                return found
            if self._name == "aten" and (function := _aten(name)) is not None:
                packet = OpOverloadPacket("aten", name, function)
                setattr(self, name, packet)
                return packet
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'", name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTERED.get(self._name, {}))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *REGISTERED.get(self._name, {})]


_PREFIXES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}


def _aten(name: str) -> Callable[..., Any] | None:
    """The function of gradwire that has the name of an operation of PyTorch's; for one that gradwire lacks, a function
    that says so when it is called. None for a name that PyTorch does not have either."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    for prefix, home in _PREFIXES.items():
        if name.startswith(prefix):
            found = getattr(_module(home), name.removeprefix(prefix), None)
            if callable(found):
                return found
    gradwire = sys.modules["gradwire"]
    for owner in (gradwire, _module("nn.functional"), Tensor, _module("_core.composed.aten")):
        found = vars(owner).get(name)
        if callable(found) and not isinstance(found, type):
            return found
    if name in gradwire._INSIDE_OF or name.startswith("_foreach_"):
        found = getattr(gradwire, name, None)
        if callable(found) and not isinstance(found, type):
            return found
    if name in _module("_core.surface.aten_names").NAMES:
        return refusing(f"torch.ops.aten.{name}", where())
    return None


def _module(name: str) -> ModuleType:
    from importlib import import_module

    return import_module(f"gradwire.{name}")


__all__ = ["HigherOrderOperator", "LibraryNotLoaded", "OpOverload", "OpOverloadPacket", "OperatorBase", "RegisteredOp"]
