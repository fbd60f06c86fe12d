"""``torch.nn.modules``: the module classes, and a file for each of PyTorch's by the name it has there.

They are imported when they are first named, since programs name few.
"""

from importlib import import_module
from typing import Any

from . import module

_FILES = frozenset({
    "activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance", "dropout", "flatten",
    "fold", "instancenorm", "lazy", "linear", "linear_cross_entropy_options", "loss", "normalization", "padding",
    "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling", "utils",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return import_module(f"{__name__}.{name}")
    if name == "__all__":
        return _classes()
    if name in _classes():
        return getattr(import_module("gradwire.nn"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _classes() -> list[str]:
    """What ``gradwire.nn`` exports beside its namespaces, parameters and buffers."""
    exported = import_module("gradwire.nn").__all__
    kept = {"Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter"}
    return [name for name in exported if name[0].isupper() and name not in kept]


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES, *_classes(), module.__name__.rpartition(".")[2]})
