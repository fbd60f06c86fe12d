"""The gradwire module for each PyTorch module."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

PACKAGES: Final = frozenset({
    "accelerator", "amp", "autograd", "backends", "compiler", "cpu", "cuda", "distributed", "distributions", "fft",
    "func", "jit", "linalg", "masked", "mps", "multiprocessing", "nn", "optim", "overrides", "profiler", "random",
    "serialization", "signal", "special", "storage", "testing", "types", "utils", "xpu",
})  # fmt: skip
"""Submodules of ``torch`` that gradwire has, at least in part, under the same name. Their own submodules have the same
name, too, except those in the next table."""

ELSEWHERE: Final = {
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.random": "cuda",
    "functional": "_core.surface.methods",
    "nn.utils.convert_parameters": "nn.utils.vector",
    "profiler.profiler": "profiler",
    "autograd.profiler_util": "profiler.events",
    "_tensor": "_core.tensor.tensor",
    "_utils": "_utils",
    "version": "cli.running.version",
}
"""Modules with another name in gradwire."""


def counterpart(name: str) -> str | None:
    """The gradwire module for a module of ``torch``, named without ``torch.``; ``None`` if there is none."""
    found = ELSEWHERE.get(name)
    if found is None and (name.split(".", 1)[0] not in PACKAGES or any(p.startswith("_") for p in name.split("."))):
        return None
    full = f"gradwire.{found or name}"
    try:
        return full if find_spec(full) is not None else None
    except ModuleNotFoundError:
        return None  # its parent is not a package, or does not exist
