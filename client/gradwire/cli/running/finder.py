"""The import hook: ``import torch.nn as nn`` gives the module ``gradwire.nn`` itself."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

from ..._core.surface.unsupported import absent, absent_module
from .distribution import find_distributions
from .names import ELSEWHERE, FOLDER, MODULES, counterpart
from .safetensors_torch import SafetensorsFinder


class _Torch(Loader):
    """Creates the module ``torch``."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from .facade import Facade

        return Facade(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        from .facade import fill

        fill(module)


class _Counterpart(Loader):
    """Loads the gradwire module that stands for a module of ``torch``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        register_loaded()
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's spec, which the import machinery has overwritten. The module has run already."""
        module.__spec__ = self._spec


def register_loaded() -> None:
    """Register gradwire's loaded modules under PyTorch's names.

    The import machinery then finds them in ``sys.modules`` and does not bind them in their package, where a function
    may hide a module (``torch.autograd.gradcheck``).
    """
    for name, module in list(sys.modules.items()):
        first, _, rest = name.partition(".")
        if first == "gradwire" and rest.split(".", 1)[0] in MODULES:
            explain_absent_names(module, f"torch.{rest}")
            if rest not in ELSEWHERE:
                sys.modules.setdefault(f"torch.{rest}", module)


def explain_absent_names(module: ModuleType, shown: str) -> None:
    """Make missing names of ``module`` raise an error that names the module ``shown``."""
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
    """Finds ``torch`` and its submodules, whether or not PyTorch is installed.

    Raises:
        AbsentModule: for a submodule of ``torch`` that gradwire lacks.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torch":
            return torch_spec()
        if fullname.partition(".")[0] == "functorch":
            return ModuleSpec(fullname, _Counterpart(f"gradwire.{fullname}"), is_package=fullname == "functorch")
        if not fullname.startswith("torch."):
            return None
        name = counterpart(fullname.removeprefix("torch."))
        if name is not None:
            return ModuleSpec(fullname, _Counterpart(name))
        if _is_question():
            return None
        raise absent_module(fullname)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """The metadata of the distribution ``torch``."""
        return find_distributions(context)


def torch_spec() -> ModuleSpec:
    """The spec of ``torch``: a package whose file and folder are gradwire's."""
    spec = ModuleSpec("torch", _Torch(), origin=str(FOLDER / "__init__.py"), is_package=True)
    spec.submodule_search_locations = [str(FOLDER)]
    spec.has_location = True
    return spec


def _is_question() -> bool:
    """Whether ``importlib.util.find_spec`` looks for the module, which then is not there, and not an import."""
    try:
        return bool(sys._getframe(3).f_globals.get("__name__") == "importlib.util")
    except ValueError:
        return False


class AbsentFinder(MetaPathFinder):
    """The last finder: names the module that ``from torch.nn import ...`` did not find in gradwire.

    Raises:
        AbsentModule: for any submodule of ``gradwire``, since no other finder found it.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("gradwire.") and not _is_question():
            raise absent_module(fullname.replace("gradwire", "torch", 1))
        return None


def replace_torch() -> None:
    """Make ``import torch`` give gradwire from here on in this process, also in libraries that are imported later.

    ``gradwire run`` does this for a whole program; this function is for notebooks and scripts. A second call does
    nothing. Processes that this one starts are not affected.

    Raises:
        RuntimeError: when PyTorch is already imported.
    """
    if any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return  # under `gradwire run`, too
    if "torch" in sys.modules:
        raise RuntimeError("torch is already imported; call replace_torch before the first `import torch`")
    sys.meta_path[:0] = [TorchFinder(), SafetensorsFinder()]
    sys.meta_path.append(AbsentFinder())
