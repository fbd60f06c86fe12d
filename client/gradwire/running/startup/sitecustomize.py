"""Python loads this before a program of ``gradwire run``, and before the Python programs that it starts.

It must cost nothing where torch is never imported, so gradwire is imported when torch is.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

TYPE_CHECKING = False  # typing costs more to import than all that is done here
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_STARTED = time.perf_counter()


class _Door:
    """Waits for the first ``import torch``, and leaves the answer to gradwire."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        sys.meta_path.remove(self)
        try:
            from gradwire.running.finder import TorchFinder, install
        except ModuleNotFoundError as error:
            if error.name != "gradwire":
                raise
            return None  # another Python, which knows nothing of gradwire
        install()
        return TorchFinder().find_spec(fullname, path, target)


def _tell() -> None:
    from gradwire.running.statistics import tell

    tell(time.perf_counter() - _STARTED)


def _the_machines_own() -> None:
    """Load the sitecustomize that this one hides, if there is one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError:
        if own is not None:
            sys.modules["sitecustomize"] = own


sys.meta_path.insert(0, _Door())
if os.environ.get("GRADWIRE_RUN_STATS") == str(os.getpid() if os.name == "posix" else os.getppid()):
    atexit.register(_tell)
_the_machines_own()
