"""The import hook: ``import torch.nn as nn`` gives ``gradwire.nn``, the very same module."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..absent import absent, absent_module
from .names import ELSEWHERE, PACKAGES, counterpart


class _Torch(Loader):
    """Makes ``torch`` itself."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from .facade import Facade

        return Facade(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        from .facade import fill

        fill(module)


class _Counterpart(Loader):
    """Hands out a module that exists under gradwire's name, and lets it tell what it lacks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        register_loaded()
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: it has run. The import machinery wrote its own spec over the module's."""
        module.__spec__ = self._spec


def register_loaded() -> None:
    """Enter gradwire's loaded modules under PyTorch's names, too.

    The import machinery then finds them without asking, and does not bind them in their package, where some names are
    functions that hide a module (``torch.autograd.gradcheck``).
    """
    for name, module in list(sys.modules.items()):
        first, _, rest = name.partition(".")
        parts = rest.split(".")
        if first == "gradwire" and parts[0] in PACKAGES and not any(part.startswith("_") for part in parts):
            tell_what_is_absent(module, f"torch.{rest}")
            if rest not in ELSEWHERE:
                sys.modules.setdefault(f"torch.{rest}", module)


def tell_what_is_absent(module: ModuleType, shown: str) -> None:
    """Let names that ``module`` lacks be a :class:`~gradwire.absent.Absent`, under the name ``shown``."""
    own = vars(module).get("__getattr__")

    def __getattr__(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        if name.startswith("__"):
            raise AttributeError(f"module {shown!r} has no attribute {name!r}", name=name, obj=module)
        raise absent(module, name, shown)

    if getattr(own, "__module__", "") != __name__:
        vars(module)["__getattr__"] = __getattr__
        vars(module).setdefault("__path__", [])  # else `from torch.x import missing` never asks the finders


class TorchFinder(MetaPathFinder):
    """Answers for ``torch`` and all that is below it, whether or not PyTorch is installed.

    Raises:
        AbsentModule: for a module below ``torch`` that gradwire lacks.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torch":
            return ModuleSpec(fullname, _Torch(), origin=__file__, is_package=True)
        if not fullname.startswith("torch."):
            return None
        name = counterpart(fullname.removeprefix("torch."))
        if name is None:
            raise absent_module(fullname)
        return ModuleSpec(fullname, _Counterpart(name))


class AbsentFinder(MetaPathFinder):
    """The last to be asked: says by name what ``from torch.nn import ...`` did not find in gradwire.

    Raises:
        AbsentModule: for any module below ``gradwire``, since all other finders have been asked.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("gradwire."):
            raise absent_module(fullname.replace("gradwire", "torch", 1))
        return None


def install() -> None:
    """Let ``torch`` mean gradwire in this process, from here on.

    Raises:
        RuntimeError: when PyTorch has been imported already.
    """
    if any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return
    if "torch" in sys.modules:
        raise RuntimeError("torch has been imported already: gradwire takes its place only in a program that starts")
    sys.meta_path.insert(0, TorchFinder())
    sys.meta_path.append(AbsentFinder())
