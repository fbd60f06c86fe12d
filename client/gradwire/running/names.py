"""Which module of gradwire stands for which of PyTorch's."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

PACKAGES: Final = frozenset({
    "accelerator", "amp", "autograd", "backends", "compiler", "cpu", "cuda", "distributed", "distributions", "fft",
    "func", "jit", "linalg", "masked", "mps", "multiprocessing", "nn", "optim", "overrides", "profiler", "random",
    "serialization", "signal", "special", "testing", "types", "utils", "xpu",
})  # fmt: skip
"""Modules of ``torch`` itself that gradwire has under the same name, as far as it has them. What lies below them has
the same name, too, unless it is in the next table."""

ELSEWHERE: Final = {
    "cuda.amp.autocast_mode": "cuda.amp",
    "cuda.amp.grad_scaler": "cuda.amp",
    "cuda.random": "cuda",
    "functional": "methods",
    "optim.adamw": "optim.adam",
    "nn.utils.convert_parameters": "nn.utils.vector",
    "profiler.profiler": "profiler",
    "autograd.profiler_util": "profiler.events",
    "_tensor": "tensor",
    "version": "running.version",
}  # fmt: skip
"""Modules that have another name or place in gradwire."""


def counterpart(name: str) -> str | None:
    """The module of gradwire that stands for a module below ``torch``, given without that first part.

    ``None`` where there is none.
    """
    found = ELSEWHERE.get(name)
    if found is None and (name.split(".", 1)[0] not in PACKAGES or any(p.startswith("_") for p in name.split("."))):
        return None
    full = f"gradwire.{found or name}"
    try:
        return full if find_spec(full) is not None else None
    except ModuleNotFoundError:
        return None  # its package is a module, or does not exist
