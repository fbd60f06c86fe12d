"""Python loads this before a program of ``gradwire run``, and before that program's Python child processes.

To cost nothing in programs without torch, it imports gradwire only at the first ``import torch``.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than everything here
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_STARTED = time.perf_counter()


class _LazyHook:
    """Installs gradwire's import hook at the first ``import torch``, or ``import functorch``."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.partition(".")[0] not in ("torch", "functorch"):
            return None
        sys.meta_path.remove(self)
        try:
            from gradwire.cli.running.finder import TorchFinder, replace_torch
        except ModuleNotFoundError as error:
            if error.name != "gradwire":
                raise
            return None  # another Python environment, without gradwire
        replace_torch()
        return TorchFinder().find_spec(fullname, path, target)

    def find_distributions(self, context: Any = None) -> Any:
        """The metadata of the distribution ``torch``, without loading gradwire."""
        from importlib.util import find_spec, module_from_spec, spec_from_file_location

        package = find_spec("gradwire")
        if package is None or package.origin is None:
            return []
        path = os.path.join(os.path.dirname(package.origin), "cli", "running", "distribution.py")
        spec = spec_from_file_location("gradwire_distribution", path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.find_distributions(context)


def _print_statistics() -> None:
    from gradwire.cli.running.statistics import print_statistics

    print_statistics(time.perf_counter() - _STARTED)


def _load_hidden_sitecustomize() -> None:
    """Load the sitecustomize that this one hides, if any."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError:
        if own is not None:
            sys.modules["sitecustomize"] = own


sys.meta_path.insert(0, _LazyHook())
if os.environ.get("GRADWIRE_RUN_STATS") in (
    str(os.getpid() if os.name == "posix" else os.getppid()),
    f"ranks of {os.getppid()}",
):
    atexit.register(_print_statistics)
_load_hidden_sitecustomize()
