"""The gradwire module for each PyTorch module."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

FOLDER: Final = Path(__file__).parents[2]
"""The folder of the package ``gradwire``."""

OWN: Final = frozenset({"__main__", "_core", "aio", "cli", "functorch", "viz"})
"""Submodules of gradwire that ``torch`` does not have."""

MODULES: Final = frozenset(found.name for found in iter_modules([str(FOLDER)])) - OWN
"""Submodules of ``torch`` that gradwire has, at least in part, under the same name. Their own submodules have the same
name, too, except those in the next table. Private modules of PyTorch's are among them (``torch._C``)."""

ELSEWHERE: Final = {
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.random": "cuda",
    "profiler.profiler": "profiler",
    "autograd.profiler_util": "profiler.events",
    "version": "cli.running.version",
}
"""Modules with another name in gradwire."""


def counterpart(name: str) -> str | None:
    """The gradwire module for a module of ``torch``, named without ``torch.``; ``None`` if there is none."""
    found = ELSEWHERE.get(name)
    if found is None and name.split(".", 1)[0] not in MODULES:
        return None
    full = f"gradwire.{found or name}"
    try:
        return full if find_spec(full) is not None else None
    except ModuleNotFoundError:
        return None  # its parent is not a package, or does not exist
